"""docs/security.md names tests that are there, and each exception to ruff's security rules."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import windows_pipeline
from windows_pipeline.kernels.aggregates import exact_sum

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()
FOLDERS = ("assets", "benchmarks", "demo", "resources", "tests", "tools", "windows_pipeline")
MOST_LINES = 130


def rows_of(title: str) -> list[list[str]]:
    """The rows of the table of a part of the page, without its head."""
    (part,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    table = [line for line in part.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table[2:]]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_the_page_is_short() -> None:
    assert len(PAGE.splitlines()) < MOST_LINES


def test_each_threat_names_tests_that_are_there() -> None:
    rows = rows_of("Threats")
    assert len(rows) > 10
    for threat, _, proof in rows:
        if proof in ("by hand", "none"):
            continue
        file, *functions = named(proof)
        text = (ROOT / "tests" / file).read_text()
        assert functions, threat
        assert [name for name in functions if f"def {name}(" not in text] == [], threat


def test_the_page_lists_each_exception_to_the_security_rules() -> None:
    listed = {
        (path, rule.strip())
        for rules, paths, _ in rows_of("Exceptions to the linter's security rules")
        for path in named(paths)
        for rule in rules.split(",")
    }
    assert listed == set(exceptions())


def exceptions() -> Iterator[tuple[str, str]]:
    """Each file, or pattern of files, with a rule that does not count there."""
    ruff = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    assert [rule for rule in ruff["ignore"] if is_security(rule)] == []
    for pattern, rules in ruff["per-file-ignores"].items():
        yield from ((pattern, rule) for rule in rules if is_security(rule))
    files = [
        *ROOT.glob("*.py"),
        *(file for name in FOLDERS for file in (ROOT / name).rglob("*.py")),
    ]
    for file in files:
        for rules in re.findall(r"# noqa: ([A-Z][A-Z0-9, ]*[0-9])", file.read_text()):
            path = file.relative_to(ROOT).as_posix()
            yield from ((path, rule) for rule in re.split("[, ]+", rules) if is_security(rule))


def is_security(rule: str) -> bool:
    return re.fullmatch(r"S\d*", rule) is not None


@pytest.mark.skipif("NUMBA_CACHE_DIR" in os.environ, reason="another folder is named")
def test_compiled_code_is_cached_in_the_packages_own_folder() -> None:
    """Whoever writes there can write the code itself."""
    folder = Path(exact_sum.rounded.stats.cache_path)  # type: ignore[attr-defined]
    assert folder.is_relative_to(Path(windows_pipeline.__file__).parent)
