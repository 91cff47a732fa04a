"""A name that a reader searches for is one thing: a class, a file of tests; and each is used."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "windows_pipeline"
NAMED_IN_TEXTS = {"fetch_too_many", "of_flip_11", "by_event_time"}
"""A function that a test starts in another process, and two of a program for a type checker."""


def classes(module: Path) -> list[str]:
    """The names of a module's classes, without private ones."""
    tree = ast.parse(module.read_text())
    named = (node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return [name for name in named if not name.startswith("_")]


def shared(named: Iterable[tuple[str, Path]]) -> dict[str, list[str]]:
    """The names that stand in more than one file, with the files."""
    files: dict[str, list[str]] = defaultdict(list)
    for name, path in named:
        files[name].append(str(path.relative_to(ROOT)))
    return {name: paths for name, paths in files.items() if len(paths) > 1}


def test_no_two_classes_of_the_library_share_a_name() -> None:
    modules = sorted(LIBRARY.rglob("*.py"))
    found = [(name, module) for module in modules for name in classes(module)]
    assert len(found) > 200
    assert shared(found) == {}, "name the less general one by what it is"


def test_no_two_files_of_tests_share_a_name() -> None:
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    assert len(files) > 150
    assert shared((file.name, file) for file in files) == {}


def own_names(tree: ast.Module) -> set[str]:
    """The names that a module defines, but functions that a decorator registers and tests."""
    found: set[str] = set()
    for node in tree.body:
        match node:
            case ast.FunctionDef(decorator_list=[]) | ast.ClassDef(decorator_list=[]):
                found.add(node.name)
            case ast.Assign(targets=targets):
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
    started_by_name = ("test_", "pytest_", "Test", "__")
    return {name for name in found if not name.startswith(started_by_name)}


def used_names(tree: ast.Module) -> Iterator[str]:
    """The names that a module reads or imports, also as attributes or within texts."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name):
                yield name
            case ast.ImportFrom(names=names):
                yield from (each.name for each in names)
            case ast.Constant(value=str(text)) if text.isidentifier():
                yield text


def test_each_name_of_a_module_is_used() -> None:
    """A private one in its module, another one in some module of the project."""
    folders = ("windows_pipeline", "assets", "benchmarks", "demo", "resources", "tests", "tools")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    trees = {path: ast.parse(path.read_text()) for path in (*paths, ROOT / "definitions.py")}
    used = {path: set(used_names(tree)) for path, tree in trees.items()}
    entry_points = re.findall(r":(\w+)\"", (ROOT / "pyproject.toml").read_text())
    anywhere = {*entry_points, *NAMED_IN_TEXTS}.union(*used.values())
    unused = [
        f"{path.relative_to(ROOT)}: {name}"
        for path, tree in trees.items()
        for name in own_names(tree)
        if name not in (used[path] if name.startswith("_") else anywhere)
    ]
    assert len(anywhere) > 5_000
    assert unused == []
