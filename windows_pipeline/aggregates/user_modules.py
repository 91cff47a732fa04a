"""Loads a user's aggregates and window functions from the files of `modules`.

The list is in settings.yaml, or an argument of `sql` by that name.

A module is not put into `sys.modules`, so it hides no other module. Spark then pickles its
functions by value, like those of a program's main module, so that workers need no file.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from threading import Lock
from traceback import extract_tb
from types import FunctionType, ModuleType
from typing import Any, ClassVar, NamedTuple

from windows_pipeline.aggregates.user_aggregate import UserAggregate
from windows_pipeline.text.limits import shown
from windows_pipeline.text.problems import listed, nearest

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LIBRARY = "windows_pipeline"
_LOADING = Lock()


@dataclass(frozen=True, slots=True)
class ProjectAggregate(UserAggregate):
    """A user's aggregate that a pipeline's file names.

    Attributes:
        reference: How the file names it: `my_module:spread`.
        file: The module's file.
        digest: The SHA-256 of the module's text, in hex.
        BEFORE_REASON: What the engine writes between the name of a failed aggregate and the
            reason.
    """

    BEFORE_REASON: ClassVar[str] = "\n"
    reference: str = ""
    file: str = ""
    digest: str = ""

    @property
    def name(self) -> str:
        """How texts name the aggregate."""
        return self.reference

    @property
    def module(self) -> str:
        """The module's name."""
        return self.reference.partition(":")[0]

    def of_library(self) -> UserAggregate:
        """The same aggregate without its module: `failed` then has names without reasons."""
        return UserAggregate(**_values(self))


def _values(aggregate: UserAggregate) -> dict[str, Any]:
    return {each.name: getattr(aggregate, each.name) for each in fields(UserAggregate)}


class UserFunction(NamedTuple):
    """A user's function that a pipeline's file names.

    Attributes:
        call: The function.
        file: The module's file.
        module: The module's name.
        digest: The SHA-256 of the module's text, in hex.
    """

    call: Callable[..., Any]
    file: str
    module: str
    digest: str


class _Code(NamedTuple):
    """A module that was run: its names with their values, its file, and its text's digest."""

    values: dict[str, object]
    file: Path
    digest: str


@dataclass(frozen=True, slots=True)
class UserModules:
    """The modules whose aggregates and functions pipelines may name.

    A module is read once, so a running pipeline does not see a later edit.

    Attributes:
        files: Their files.
        listed_in: What lists the files.
        fix: How to list one more file there; in braces its name, or those of all.
        texts: The texts of the modules that were read.
    """

    files: tuple[Path, ...] = ()
    listed_in: str = "settings.yaml"
    fix: str = "write there: modules: [{modules}]"
    texts: dict[Path, str] = field(default_factory=dict, compare=False, repr=False)

    def aggregate(self, reference: str) -> ProjectAggregate:
        """Loads an aggregate.

        Args:
            reference: `my_module:spread`.

        Raises:
            ValueError: The module is not among these, has a mistake, or has no such aggregate.
        """
        code, name = self._code(reference)
        found, file = code.values, code.file
        aggregates = {
            key: value for key, value in found.items() if isinstance(value, UserAggregate)
        }
        if name not in aggregates:
            what = f"{name!r} is no UserAggregate" if name in found else f"there is no {name!r}"
            fix = f"write one, as in {name} = UserAggregate(create, ...)"
            if aggregates:
                fix = nearest(name, aggregates, f"use one of {', '.join(aggregates)}")
            raise ValueError(f"{what} in {file}; {fix}")
        values = _values(aggregates[name])
        return ProjectAggregate(**values, reference=reference, file=str(file), digest=code.digest)

    def function(self, reference: str) -> UserFunction:
        """Loads a function.

        Args:
            reference: `my_module:warn`.

        Raises:
            ValueError: The module is not among these, has a mistake, or has no such function.
        """
        code, name = self._code(reference)
        functions = {
            key: value for key, value in code.values.items() if isinstance(value, FunctionType)
        }
        if name not in functions:
            known = name in code.values
            what = f"{name!r} is no function" if known else f"there is no {name!r}"
            fix = f"write it, as in def {name}(key, window, content, context): ..."
            if functions:
                fix = nearest(name, functions, f"use one of {listed(functions)}")
            raise ValueError(f"{what} in {code.file}; {fix}")
        module = reference.partition(":")[0]
        return UserFunction(functions[name], str(code.file), module, code.digest)

    def _code(self, reference: str) -> tuple[_Code, str]:
        """Runs the module of a reference; returns the module, and the name after the colon."""
        module, _, name = reference.partition(":")
        if not _NAME.fullmatch(module) or not _NAME.fullmatch(name):
            raise ValueError(
                f"{reference!r} is not the name of code; write module:name, where module is a "
                "file's name without .py, without dots and slashes, as in my_module:spread"
            )
        files = {file.stem: file for file in self.files}
        if module not in files:
            if module in sys.stdlib_module_names:
                raise ValueError(
                    f"{module!r} is a module of Python, and code comes from the project's files "
                    f"alone; write a file of another name, and list it in {self.listed_in}"
                )
            known = f" ({', '.join(files)})" if files else ""
            fix = self.fix.format(module=module, modules=", ".join([*files, module]))
            raise ValueError(
                f"{module!r} is not one of the modules of {self.listed_in}{known}; "
                f"{nearest(module, files, f'to let this code run, {fix}')}"
            )
        file = files[module]
        if file not in self.texts:
            self.texts[file] = _text(file)
        text = self.texts[file]
        digest = hashlib.sha256(text.encode()).hexdigest()
        return _Code(_loaded(file, text), file, digest), name


def _text(file: Path) -> str:
    """The text of a module's file.

    Raises:
        ValueError: There is no such file, or it lies outside its folder.
    """
    if not file.exists():
        raise ValueError(f"there is no file {file}; write it, or take it out of modules")
    if file.resolve().parent != file.parent.resolve():
        raise ValueError(
            f"{file} leads to {file.resolve()}, outside the project's folder; put the file there"
        )
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} cannot be read: {error}; save it as UTF-8") from None


@lru_cache(maxsize=100)
def _loaded(file: Path, text: str) -> dict[str, object]:
    """The names of a module, which is run once for each text that it has.

    Raises:
        ValueError: The module is not valid Python, imports another file of the project, or raises.
    """
    try:
        tree = ast.parse(text, str(file))
    except (SyntaxError, ValueError) as error:
        line, reason = getattr(error, "lineno", 1), error.args[0]
        raise ValueError(f"{file}, line {line}: is not Python: {reason}; correct it") from None
    for line, imported in _imports(tree):
        beside = (file.parent / f"{imported}.py", file.parent / imported / "__init__.py")
        if imported != _LIBRARY and any(map(Path.exists, beside)):
            raise ValueError(
                f"{file}, line {line}: imports {imported!r}, another file of the project; put "
                "what the code needs into one module"
            )
    module = ModuleType(file.stem)
    module.__file__ = str(file)
    with _LOADING:
        _run(compile(tree, str(file), "exec"), module)
    return dict(vars(module))


def _imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The first part of each name that a module imports, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, each.name.partition(".")[0]) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            name = node.module or node.names[0].name
            yield node.lineno, name.partition(".")[0]


def _run(code: object, module: ModuleType) -> None:
    """Runs a module; it is in `sys.modules` meanwhile, where dataclasses look it up."""
    before = sys.modules.get(module.__name__)
    sys.modules[module.__name__] = module
    try:
        exec(code, vars(module))  # type: ignore[arg-type]  # noqa: S102  settings.yaml names it
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  whatever the user's code raises: sys.exit(), too
        called = extract_tb(error.__traceback__)
        line = [each.lineno for each in called if each.filename == module.__file__][-1]
        fix = "correct it"
        if isinstance(error, ModuleNotFoundError):
            fix = "install the package that has it (pip install), or correct the name"
        raise ValueError(f"{module.__file__}, line {line}: {shown(error, 200)}; {fix}") from None
    finally:
        if before is None:
            del sys.modules[module.__name__]
        else:
            sys.modules[module.__name__] = before
