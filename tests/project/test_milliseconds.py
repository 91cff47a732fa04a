"""Times become milliseconds, and timestamps again, in four modules, and in the SQL of one more."""

from __future__ import annotations

import ast
import re
from pathlib import Path

LIBRARY = Path(__file__).parents[2] / "windows_pipeline"
# A user's frame, a landed record, a table.
BOUNDARIES = {
    *("dataframe/inputs.py", "sources/metadata.py", "sources/typed_texts.py"),
    *("sources/validation.py", "storage/instants.py"),
}
CONVERSION = re.compile(r"F\.(unix|timestamp)_(millis|micros|seconds)\b")
# Parts of rules, as text (docs/decisions/times-in-sql-text.md).
IN_SQL = {"checks/own_checks.py"}
SQL_CONVERSION = re.compile(r"\b(unix|timestamp)_(millis|micros|seconds)\s*\(", re.IGNORECASE)


def test_only_the_boundaries_convert_times() -> None:
    found = {
        str(path.relative_to(LIBRARY))
        for path in LIBRARY.rglob("*.py")
        if CONVERSION.search(path.read_text())
    }
    assert found == BOUNDARIES, "convert by windows_pipeline.storage.instants"


def texts(path: Path) -> list[str]:
    """The strings of a module, without its docstrings; of an f-string its fixed parts."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    constants = (node for node in nodes if isinstance(node, ast.Constant) and id(node) not in alone)
    return [node.value for node in constants if isinstance(node.value, str)]


def test_only_rules_convert_times_in_the_text_of_sql() -> None:
    found = {
        str(path.relative_to(LIBRARY))
        for path in LIBRARY.rglob("*.py")
        if any(SQL_CONVERSION.search(text) for text in texts(path))
    }
    assert found == IN_SQL, "convert by windows_pipeline.storage.instants"
