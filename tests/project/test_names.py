"""A name that a reader searches for is one thing: a class of the library, a file of tests."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "windows_pipeline"


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
