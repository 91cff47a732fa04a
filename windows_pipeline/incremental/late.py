"""Finds the records that no window counts, with the reason (rule A5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windows_pipeline.engine.lateness import is_late, is_outside_windows
from windows_pipeline.engine.windows import late
from windows_pipeline.incremental.closed_days import ClosedDays
from windows_pipeline.incremental.windows import ARRIVAL
from windows_pipeline.kernels.windows.chunk import ComputedDay
from windows_pipeline.storage.instants import ms_to_timestamp
from windows_pipeline.windows import PipelineWindows, WindowSpec


def late_records(
    records: DataFrame,
    computed: DataFrame | None,
    spec: PipelineWindows,
    values: Sequence[str],
    computed_days: Sequence[int],
    closed_days: ClosedDays | None = None,
) -> DataFrame:
    """Lists the records of which each computed day decides that no window counts them.

    The reasons: `outside_windows`, the record lies before the first window or between two;
    `late`, all its windows were closed when it arrived; `partly_late`, one of its windows was
    open, but all closed before any of them counted it.

    Args:
        records: The frame that `records.records_to_read` returns; see `arrival_unit_windows`.
        computed: The frame that `windows.arrival_unit_windows` returns for these records; None for
            sessions and row windows.
        spec: The windows.
        values: The value columns to keep.
        computed_days: The computed days, by number.
        closed_days: The days that closed windows, if a computed day stands for several.

    Returns:
        The columns of the table late_records, in no order.
    """
    if spec.late_after_ms is None:
        found = _judged_together(records, spec, computed_days)
    else:
        found = _judged_alone(records, computed, spec)
    # The watermark if it is later than the partition's stream time (rule A4).
    stream_time_ms = F.col("_close_time_ms") + F.lit(spec.close_delay_ms)
    # Its own day lists a late record; a later day may list a record that was partly late.
    later = F.date_from_unix_date("_computed_day")
    if closed_days is not None and spec.length_ms is not None:
        later = closed_days.closing_day(F.col("_event_time_ms") + F.lit(spec.length_ms))
    listed_by = F.when(F.col("reason") == "partly_late", later).otherwise(F.col("arrival_unit"))
    return found.select(
        listed_by.alias("arrival_unit"),
        F.col("arrival_unit").alias("record_arrival_unit"),
        "source_partition",
        "offset",
        "key",
        "event_time",
        "reason",
        ms_to_timestamp(stream_time_ms).alias("stream_time"),
        ms_to_timestamp("_close_time_ms").alias("close_time"),
        (F.col("_close_time_ms") - F.col("_event_time_ms")).alias("late_by_ms"),
        *values,
    )


def _judged_together(
    records: DataFrame, spec: PipelineWindows, computed_days: Sequence[int]
) -> DataFrame:
    """Late records, where other records decide which ones are late."""
    windows = cast("WindowSpec", spec)  # a record with a row of its own is judged alone
    judged = late(records, {day: ComputedDay(windows) for day in computed_days}, ["key"], ARRIVAL)
    return judged.where("_is_new")


def _judged_alone(
    records: DataFrame, computed: DataFrame | None, spec: PipelineWindows
) -> DataFrame:
    """Records late or outside windows on arrival, and partly late ones when all windows closed."""
    reason = F.when(is_outside_windows(spec), "outside_windows").when(is_late(spec), "late")
    judged = records.withColumn("reason", reason)
    on_arrival = judged.where(F.col("_is_new") & F.col("reason").isNotNull())
    if spec.row_order:  # a record's own row counts it
        return on_arrival
    if computed is None:
        raise ValueError(
            "computed: must be the windows of these records, not None: the partly late records "
            "that no window counts follow from them; pass what arrival_unit_windows returned"
        )
    partly_late = computed.where(F.col("_partly_late_time_ms").isNotNull()).select(
        "_computed_day",
        "key",
        F.col("_partly_late_time_ms").alias("_event_time_ms"),
        F.col("_partly_late_close_ms").alias("_close_time_ms"),
    )
    same = [
        # A null key is a key (rule A6).
        F.col(f"record.{name}").eqNullSafe(F.col(f"partly_late.{name}"))
        for name in ("_computed_day", "key", "_event_time_ms", "_close_time_ms")
    ]
    at_the_end = (
        judged.where(F.col("reason").isNull())
        .alias("record")
        .join(F.broadcast(partly_late).alias("partly_late"), same, "semi")
        .withColumn("reason", F.lit("partly_late"))
    )
    return on_arrival.unionByName(at_the_end)
