"""Doors: the modules of a package that others import (docs/decisions/doors.md).

import-linter holds that the library keeps to the doors that pyproject.toml lists. This module
holds that the list has every package, that each door is used, and that code outside of the library
keeps to the doors, too.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "windows_pipeline"
OUTSIDE = ("windows_pipeline", "assets", "resources", "demo")
"""What keeps to the doors: all but tests, tools and benchmarks."""


def package_of(path: Path) -> str:
    """The package of the library that a file belongs to, or the folder of another file."""
    parts = path.relative_to(ROOT).parts
    return parts[1] if parts[0] == LIBRARY.name else parts[0]


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """Each module of the library that a file imports from, with the name; '' if it has no name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("windows_pipeline."):
                    yield alias.name, ""
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("windows_pipeline."):
            for alias in node.names:
                yield str(node.module), alias.name


def from_outside() -> Iterator[tuple[str, str, str]]:
    """The package, module and name of each import from outside the package."""
    for folder in OUTSIDE:
        for path in (ROOT / folder).rglob("*.py"):
            for module, name in imported(path):
                package = module.split(".")[1]
                if (LIBRARY / package).is_dir() and package != package_of(path):
                    yield package, module, name


def packages() -> list[str]:
    return sorted(path.parent.name for path in LIBRARY.glob("*/__init__.py"))


def contracts() -> list[dict[str, Any]]:
    """The contracts of import-linter."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found: list[dict[str, Any]] = settings["tool"]["importlinter"]["contracts"]
    return found


def doors() -> dict[str, set[str]]:
    """The doors of each package, by the contract that protects all its other modules."""
    found: dict[str, set[str]] = {}
    for contract in contracts():
        if contract["name"].startswith("Outside "):
            [package] = contract["protected_modules"]
            assert contract["allowed_importers"] == [package], "others import it by its doors"
            listed = [line.split(" -> ") for line in contract.get("ignore_imports", ())]
            importers = {importer for importer, _ in listed}
            assert importers <= {"windows_pipeline", "windows_pipeline.**"}, "a door is for all"
            found[package.removeprefix("windows_pipeline.")] = {door for _, door in listed}
    return found


def module_of(module: str, name: str) -> str:
    """The module that an import of a name from a module, or a package, is of."""
    if not name:
        return module
    inner = ROOT.joinpath(*module.split("."), name)
    return f"{module}.{name}" if inner.is_dir() or inner.with_suffix(".py").exists() else module


def test_every_package_protects_all_modules_but_its_doors() -> None:
    assert sorted(doors()) == packages()


def test_others_import_doors_only_and_every_door() -> None:
    """A module that nobody outside needs any more is no door."""
    found: dict[str, set[str]] = {package: set() for package in packages()}
    for package, module, name in from_outside():
        found[package].add(module_of(module, name))
    assert found == doors()


def test_every_package_but_dagster_is_kept_from_dagster() -> None:
    """A new package, or module at the top, is named in the contract as well."""
    [contract] = [one for one in contracts() if "dagster" in one.get("forbidden_modules", ())]
    named = {module.removeprefix("windows_pipeline.") for module in contract["source_modules"]}
    modules = {path.stem for path in LIBRARY.glob("*.py")} - {"__init__"}
    assert named == {*packages(), *modules} - {"dagster"}
