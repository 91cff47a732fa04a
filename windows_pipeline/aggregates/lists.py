"""Lists of a window's values."""

from __future__ import annotations

from windows_pipeline.aggregates.aggregation import Aggregation, ColumnOrName, aggregation_of
from windows_pipeline.aggregates.function import Function


def _array(column_type: str) -> str:
    return f"array<{column_type}>"


COLLECT_LIST = Function(
    "collect_list",
    _array,
    other_names=("arrayagg", "listagg", "list", "grouparray"),
    lists_values=True,
)


def collect_list(column: ColumnOrName) -> Aggregation:
    """All non-null values, ordered by event time and, at one time, by value: an array."""
    return aggregation_of(COLLECT_LIST, column)
