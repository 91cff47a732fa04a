"""The order of arrival within a unit, and the log of the units (rules A1, A2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from windows_pipeline.compat.local_frame import small_frame

PLACE = ["arrival_unit", "source_partition"]
"""The columns within which arrival is ordered."""
_CARRIED = {"file", "reason", "original"}
"""What a record carries along that is not its own: where it stood, and why it is rejected."""


def in_arrival_order(
    accepted: DataFrame, arrival: str | None, stretch: str | None = None
) -> DataFrame:
    """Numbers the records of each unit and source partition by arrival (rules A1, A2).

    The order is by the arrival column, then event time, then every other column of the
    record: records that tie in all of them are alike, so the numbers don't depend on how a
    unit was split into files. Without an arrival column it is by event time within a file, files
    by name: the order of what a commit added to a table. (Lines of landed files have an order of
    their own: `arrival_lines`.)

    Args:
        accepted: The columns `arrival_unit`, `source_partition`, `event_time` (ms), `file`, the
            arrival column if there is one, and any others of types that can be ordered;
            `file`, `reason` and `original` are no part of a record. Rejected records, whose
            source partition is null, may be among them: their numbers mean nothing.
        arrival: The arrival column's name; None for no such column.
        stretch: A column whose values each stand for a range of the order, which is numbered as
            if it were all there is; None for no such column.

    Returns:
        The records, unordered, with `offset` (bigint, 0 for the first
        of its unit and source partition) and `running_max` (bigint, ms: the largest event
        time of the unit and source partition up to and including the record).
    """
    within = PLACE if stretch is None else [*PLACE, stretch]
    columns = [name for name in accepted.columns if name != stretch]
    order = Window.partitionBy(*within).orderBy(*order_of_arrival(columns, arrival))
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return accepted.select(
        "*",
        (F.row_number().over(order).cast("bigint") - 1).alias("offset"),
        F.max("event_time").over(so_far).alias("running_max"),
    )


def order_of_arrival(columns: Sequence[str], arrival: str | None) -> list[Column]:
    """What orders the records of a unit and source partition; see `in_arrival_order`."""
    leading = ["file" if arrival is None else arrival, "event_time"]
    others = [name for name in columns if name not in {*leading, *PLACE, *_CARRIED}]
    return [F.col(f"`{name}`") for name in dict.fromkeys(leading + others)]


def arrival_log(ordered: DataFrame, rejected: DataFrame, days: Iterable[date]) -> DataFrame:
    """Sums up each unit: the rows by which a later one knows that it is there (rule A2).

    Args:
        ordered: The accepted records: `arrival_unit`, `source_partition`, `offset`, `event_time`.
        rejected: The rejected ones: `arrival_unit`.
        days: The units, those without any record included.

    Returns:
        One row a unit and source partition, unordered: `arrival_unit`, `source_partition`,
        `first_offset`, `last_offset`, `rows`, `max_event_time` (bigint, ms) and
        `unit_rejected` (bigint: of the whole unit, the same in each of its rows). A unit
        without accepted records has one row, with 0 `rows`, and null for the source
        partition, the offsets and the event time.
    """
    units = small_frame(
        ordered.sparkSession, [(day,) for day in sorted(set(days))], "arrival_unit date"
    )
    of_partition = ordered.groupBy(*PLACE).agg(
        F.min("offset").alias("first_offset"),
        F.max("offset").alias("last_offset"),
        F.count("*").alias("rows"),
        F.max("event_time").alias("max_event_time"),
    )
    of_unit = rejected.groupBy("arrival_unit").agg(F.count("*").alias("unit_rejected"))
    return (
        units.join(of_partition, "arrival_unit", "left")
        .join(of_unit, "arrival_unit", "left")
        .fillna(0, ["rows", "unit_rejected"])
        .select(*PLACE, "first_offset", "last_offset", "rows", "max_event_time", "unit_rejected")
    )
