"""Numbers records in their order of arrival, and says which columns order it (rules A1, A2)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from windows_pipeline.sources.landed_columns import AMBIGUOUS

ORDERED_WITHIN = ["arrival_unit", "source_partition"]
"""Arrival is ordered within each value of these columns."""
_CARRIED = {"file", "reason", "original", AMBIGUOUS}
"""Columns about how a record was read; with an arrival column they do not order records."""


def in_arrival_order(
    accepted: DataFrame, arrival: str | None, stretch: str | None = None
) -> DataFrame:
    """Numbers the records of each arrival unit and source partition by arrival (rules A1, A2).

    The arrival column orders the records, then event time, then every other column. Records that
    tie in all columns are equal, so the numbers don't depend on how an arrival unit was split into
    files. Without an arrival column, the file's name orders the records, then event time: names of
    a Delta table's files are in the order in which commits added them. (`arrival.lines` numbers the
    lines of landed files.)

    Args:
        accepted: The columns `arrival_unit`, `source_partition`, `_event_time_ms` (ms), `file`, the
            arrival column if there is one, and any others of types that can be ordered.
            `reason`, `original` and `_ambiguous` do not order records, and `file` only without an
            arrival column. The frame may hold rejected records, whose source partition is null;
            their numbers mean nothing.
        arrival: The arrival column's name; None for no such column.
        stretch: A column that cuts the order into stretches; each stretch is numbered from 0.
            None to number the whole order.

    Returns:
        The records, unordered, with `offset` (bigint, 0 for the first record of the arrival unit
        and source partition) and `_running_max_ms` (bigint, ms: the largest event time of the
        arrival unit and source partition up to and including the record).
    """
    within = ORDERED_WITHIN if stretch is None else [*ORDERED_WITHIN, stretch]
    columns = [name for name in accepted.columns if name != stretch]
    order_by = [F.col(f"`{name}`") for name in order_of_arrival(columns, arrival)]
    order = Window.partitionBy(*within).orderBy(*order_by)
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return accepted.select(
        "*",
        (F.row_number().over(order).cast("bigint") - 1).alias("offset"),
        F.max("_event_time_ms").over(so_far).alias("_running_max_ms"),
    )


def order_of_arrival(columns: Sequence[str], arrival: str | None) -> list[str]:
    """The columns that order an arrival unit's source partition, most significant first."""
    leading = ["file" if arrival is None else arrival, "_event_time_ms"]
    others = [name for name in columns if name not in {*leading, *ORDERED_WITHIN, *_CARRIED}]
    return list(dict.fromkeys(leading + others))
