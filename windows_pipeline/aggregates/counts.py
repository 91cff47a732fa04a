"""Counts of records, of values and of distinct values."""

from __future__ import annotations

from windows_pipeline.aggregates.aggregation import Aggregation, ColumnOrName, aggregation_of
from windows_pipeline.aggregates.function import Function, Takes, bigint

COUNT = Function(
    "count",
    bigint,
    takes=Takes.ANY,
    other_names=("countnonnull", "size", "len", "length"),
    counts_records=True,
)
COUNT_DISTINCT = Function(
    "count_distinct",
    bigint,
    other_names=(
        *("nunique", "ndistinct", "distinct", "unique", "uniq", "uniqexact", "countunique"),
        *("dcount", "approxcountdistinct", "approxdistinct", "distinctcount", "cardinality"),
    ),
)


def count(column: ColumnOrName | None = None) -> Aggregation:
    """Counts the records, or the values of a column that are not null: bigint.

    `count("*")` is `count()`.
    """
    if column is None or (isinstance(column, str) and column == "*"):
        return Aggregation(COUNT, name="count")
    return aggregation_of(COUNT, column)


def count_distinct(column: ColumnOrName) -> Aggregation:
    """Counts the distinct values, exactly: bigint."""
    return aggregation_of(COUNT_DISTINCT, column)
