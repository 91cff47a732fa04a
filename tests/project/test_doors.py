"""How many names of each package other packages import (docs/decisions/doors.md).

import-linter holds which modules are doors; it cannot count names.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "windows_pipeline"
MOST_NAMES = 10
RECORD = ROOT / "docs" / "decisions" / "doors.md"


def package_of(path: Path) -> str:
    """The package of the library that a file belongs to, or the folder of another file."""
    parts = path.relative_to(ROOT).parts
    return parts[1] if parts[0] == LIBRARY.name else parts[0]


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """Each module of the library that a file imports from, with the name that it imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("windows_pipeline."):
            for alias in node.names:
                yield str(node.module), alias.name


def names_outside() -> dict[str, set[str]]:
    """The names of each package that files outside it import, tests aside."""
    found: dict[str, set[str]] = defaultdict(set)
    for folder in ("windows_pipeline", "assets", "resources", "demo"):
        for path in (ROOT / folder).rglob("*.py"):
            for module, name in imported(path):
                package = module.split(".")[1]
                is_package = (LIBRARY / package).is_dir()
                if is_package and package != package_of(path):
                    found[package].add(f"{module}.{name}")
    return found


def recorded() -> dict[str, int]:
    rows = re.findall(r"^\| `(\w+)/` \| (\d+) \|", RECORD.read_text(), re.MULTILINE)
    return {package: int(number) for package, number in rows}


def test_a_package_offers_ten_names_or_the_number_on_record() -> None:
    counts = {package: len(names) for package, names in names_outside().items()}
    assert len(counts) > len(recorded()) > 0
    more = {package: number for package, number in counts.items() if number > MOST_NAMES}
    assert more == recorded(), "lower the number in docs/decisions/doors.md, or import less"
