"""Reads a YAML file as plain data, together with the line of each field."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from windows_pipeline.text.counts import counted
from windows_pipeline.text.files import read_text
from windows_pipeline.text.limits import (
    MAX_DEPTH,
    MAX_ENTRIES,
    MAX_PROBLEMS,
    MAX_TEXT,
    MAX_VALUES,
    shown,
)
from windows_pipeline.text.problems import ConfigError, FieldPath
from windows_pipeline.text.references import Referring, reference_problem, refers
from windows_pipeline.text.values import cut
from windows_pipeline.text.yaml_mistakes import yaml_mistake

_OWN_TAGS = "tag:yaml.org,2002:"
_PIPELINE = "a pipeline, beginning with its name"
_MAPPING, _SEQUENCE, _TEXT = (f"{_OWN_TAGS}{kind}" for kind in ("map", "seq", "str"))

ANY = "*"
"""Stands for any name in the path of a field."""
_NAME = re.compile(r"[\w.#/-]+")
_LONGEST_NAME = 200
_LONGEST_PROBLEM = 4_000
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
"""Characters that no path, name or UTF-8 file can hold; escapes such as ``"\\0"`` write them."""
_ESCAPED = "holds an escape for NUL or half a character (\\0, \\ud800); write text without it"


@dataclass(slots=True)
class Document:
    """A file's data, with the line and the text of each field.

    Attributes:
        file: The file, as the caller wrote its path.
        data: The data: mappings, lists and scalars.
        lines: The line of each field, by its path; the first line of a repeated field.
        texts: Each scalar's text in the file, by its path.
        hidden: The fields whose values may be secrets; no problem shows values below them.
        faulty: The fields whose values are wrong whatever the field; each has a problem already.
        problems: Mistakes so far, as lines of a `ConfigError`; some are valid YAML, such as a
            name that occurs twice.
    """

    file: Path
    data: object = None
    lines: dict[FieldPath, int] = field(default_factory=dict)
    texts: dict[FieldPath, str] = field(default_factory=dict)
    hidden: tuple[FieldPath, ...] = ()
    faulty: set[FieldPath] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    def line(self, path: FieldPath) -> int:
        """Returns the line of a field, or of the nearest field around it that has a line."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def hides(self, path: FieldPath, value: object) -> bool:
        """Whether a field's value may be a secret, or contain one."""
        holds = isinstance(value, (list, dict)) and any(
            len(path) <= len(root) and is_below(path, root[: len(path)]) for root in self.hidden
        )
        return holds or self.is_below_hidden(path)

    def is_below_hidden(self, path: FieldPath) -> bool:
        """Whether a field is hidden, or below a hidden field."""
        return any(is_below(path, root) for root in self.hidden)

    def require_no_problems(self) -> None:
        """Raises the document's problems, each once, if there are any.

        Raises:
            ConfigError: There are problems; it lists the first `MAX_PROBLEMS`.
        """
        problems = list(dict.fromkeys(self.problems))
        more = len(problems) - MAX_PROBLEMS
        if more > 0:
            text = f"{self.file}: has {counted(more, 'more mistake')}; correct those above first"
            problems = [*problems[:MAX_PROBLEMS], text]
        if problems:
            raise ConfigError(problems)

    def location(self, path: FieldPath, line: int | None = None) -> str:
        """Returns `file:line: field`; shows at most one name below a hidden field."""
        for root in self.hidden:
            if is_below(path, root):
                below = (name for name in path[len(root) :][:1] if _is_name(name))
                path = (*path[: len(root)], *below)
        name = ".".join(cut(_printable(part), _LONGEST_NAME) for part in path) or "the file"
        return f"{self.file}:{line or self.line(path)}: {name}"

    def report(self, path: FieldPath, text: str, line: int | None = None) -> None:
        """Adds a problem of a field; shows at most one name below a hidden field."""
        self.problems.append(
            f"{self.location(path, line)}: {cut(_printable(text), _LONGEST_PROBLEM)}"
        )

    def refuse(self, path: FieldPath, text: str, line: int | None = None) -> None:
        """Adds a problem of a field's value, which gets no other problem."""
        self.report(path, text, line)
        self.faulty.add(path)


def is_below(path: FieldPath, root: FieldPath) -> bool:
    """Whether a field is that of another path, or below it; `ANY` there stands for any name."""
    return len(path) >= len(root) and all(
        wanted in (ANY, name) for name, wanted in zip(path, root, strict=False)
    )


def _is_name(text: str) -> bool:
    """Whether a text is a name and nothing else: 'password=x' contains a value as well."""
    return _NAME.fullmatch(text) is not None


def _printable(text: str) -> str:
    """Escapes line breaks and other characters that would not show, or break the error's line."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


class _LimitError(yaml.MarkedYAMLError):
    """A file is YAML, and larger than a file of its kind may be."""


class _Loader(yaml.SafeLoader):
    """Reads plain values within limits, and refuses aliases: every value must be written out."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._values = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            event: Any = self.peek_event()  # type: ignore[no-untyped-call]  # its stub
            problem = "aliases (*name) are not supported; write the value out"
            raise yaml.MarkedYAMLError(None, None, problem, event.start_mark)
        self._depth += 1
        self._values += 1
        self._require_within_limits(parent)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def _require_within_limits(self, parent: yaml.Node | None) -> None:
        problem = None
        if self._depth > MAX_DEPTH:
            problem = (
                f"is nested too deeply: a file must have at most {MAX_DEPTH} levels, and here "
                f"level {self._depth} begins; simplify it"
            )
        elif isinstance(parent, yaml.CollectionNode) and len(parent.value) >= MAX_ENTRIES:
            problem = (
                f"a mapping or list must have at most {MAX_ENTRIES:,} entries, and the one that "
                f"begins in line {parent.start_mark.line + 1} has more; remove entries"
            )
        elif self._values > MAX_VALUES:
            problem = (
                f"a file must have at most {MAX_VALUES:,} names and values, but has more from "
                "here on; divide it into several files, or remove some"
            )
        if problem is not None:
            event: Any = self.peek_event()  # type: ignore[no-untyped-call]  # its stub
            raise _LimitError(None, None, problem, event.start_mark)


def read_yaml(path: Path, holds: str = _PIPELINE, hidden: Sequence[FieldPath] = ()) -> Document:
    """Reads one YAML document.

    Args:
        path: The file.
        holds: What the file must contain, for the error about an empty file.
        hidden: The fields whose values no problem may show.

    Raises:
        ConfigError: The file cannot be read, is not YAML, or is not a mapping.
    """
    text = read_text(path)
    try:
        return _document(path, text, holds, hidden)
    except _LimitError as error:
        line = 1 if error.problem_mark is None else error.problem_mark.line + 1
        raise ConfigError([f"{path}:{line}: {error.problem}"]) from None
    except yaml.MarkedYAMLError as error:
        raise ConfigError([f"{path}:{yaml_mistake(error, text)}"]) from None
    except yaml.YAMLError as error:
        reason = str(error).splitlines()[0]
        raise ConfigError([f"{path}:1: not YAML: {reason}; remove that character"]) from None
    except RecursionError:
        raise ConfigError([f"{path}:1: is nested too deeply; simplify it"]) from None


def _document(path: Path, text: str, holds: str, hidden: Sequence[FieldPath]) -> Document:
    document = Document(path, hidden=tuple(hidden))
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            raise ConfigError([f"{path}:1: is empty; write {holds}"])
        if not isinstance(root, yaml.MappingNode):
            line = root.start_mark.line + 1
            raise ConfigError([f"{path}:{line}: is not a mapping; write 'name: value' lines"])
        document.lines[()] = root.start_mark.line + 1
        document.data = _plain(loader, root, (), document)
    finally:
        loader.dispose()
    return document


def _plain(loader: _Loader, node: yaml.Node, path: FieldPath, document: Document) -> object:
    if isinstance(node, yaml.MappingNode) and node.tag == _MAPPING:
        return _mapping(loader, node, path, document)
    if isinstance(node, yaml.SequenceNode) and node.tag == _SEQUENCE:
        return [
            _plain(loader, item, (*path, str(number)), document)
            for number, item in enumerate(node.value)
        ]
    is_scalar = isinstance(node, yaml.ScalarNode)
    document.texts[path] = node.value if is_scalar else node.tag
    if is_scalar and _NO_TEXT.search(node.value):
        document.report(path, _ESCAPED, node.start_mark.line + 1)
        document.faulty.add(path)
        return node.value
    if is_scalar and len(node.value) > MAX_TEXT:
        # Reading such a text as a number or a time can take very long.
        return _text(node.value, path, document)
    try:
        value = loader.construct_object(node, deep=True)
        return _text(value, path, document) if isinstance(value, str) else value
    except yaml.YAMLError:
        raise
    except (ValueError, ArithmeticError, LookupError, AttributeError):
        # Without a tag of its own, as in 2013-02-30, the text goes to the field's own check.
        if not is_scalar or _implied_tag(loader, node.value) != node.tag:
            tag = node.tag.removeprefix(_OWN_TAGS)
            text = f"is not a value of its tag, !!{tag}; remove the tag, or correct the value"
            document.refuse(path, text, node.start_mark.line + 1)
        return node.value


def _text(value: str, path: FieldPath, document: Document) -> str:
    """Returns a text, which knows where it stands if it refers to the environment."""
    if not refers(value):
        return value
    problem = reference_problem(value)
    if problem is not None:
        document.refuse(path, problem)
    return Referring(value, document.location(path))


def _implied_tag(loader: _Loader, text: str) -> object:
    """Returns the tag that YAML gives to a text without a tag."""
    return loader.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]


def _mapping(
    loader: _Loader, node: yaml.MappingNode, path: FieldPath, document: Document
) -> dict[Hashable, object]:
    data: dict[Hashable, object] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode) or key.tag != _TEXT:
            is_shown = isinstance(key, yaml.ScalarNode) and not document.is_below_hidden(path)
            name = shown(key.value) if is_shown else "a number, list or mapping"
            text = f"{name} is not text, as a name must be; put it in quotes, or use another name"
            document.report(path, text, line)
            continue
        field_path = (*path, key.value)
        if _NO_TEXT.search(key.value):
            document.report(field_path, _ESCAPED, line)
            continue
        if refers(key.value):
            document.report(path, "a name has no references; write ${env:NAME} in values", line)
            continue
        if key.value in data:
            is_shown = not document.is_below_hidden(path) or (
                not document.is_below_hidden(path[:-1]) and _is_name(key.value)
            )
            name = shown(key.value) if is_shown else "a name"
            text = (
                f"{name} occurs twice, on line {document.lines[field_path]} and on "
                f"line {line}; rename or remove one of them"
            )
            document.report(field_path, text, line)
            continue
        document.lines[field_path] = line
        data[key.value] = _plain(loader, value, field_path, document)
    return data
