"""Records that no window counts, with the reason (rule A5)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windows_pipeline.engine.lateness import is_late, is_outside_windows
from windows_pipeline.engine.windows import late
from windows_pipeline.incremental.windows import ARRIVAL
from windows_pipeline.kernels.windows.chunk import ComputedDay
from windows_pipeline.windows import (
    FixedWindows,
    GracedRows,
    PipelineWindows,
    SessionWindows,
)


def late_records(
    records: DataFrame,
    computed: DataFrame | None,
    spec: PipelineWindows,
    values: Sequence[str],
    targets: Sequence[int],
) -> DataFrame:
    """Lists the records that a target unit settled and that no window counts.

    The reasons: `uncovered`, it lies below the first window or between two; `late`, all its
    windows were closed when it arrived; `uncounted`, it came in time for some window, but none
    was made that holds it until they all were closed.

    Args:
        records: What `stream_time.records_to_read` gives.
        computed: What `unit_windows.unit_windows` gives for these records; of sessions and row
            windows it is not asked for.
        spec: The windows.
        values: The value columns to keep.
        targets: The target units.

    Returns:
        The columns of the table late_records, in no order.
    """
    if isinstance(spec, SessionWindows):
        judged = late(records, {target: ComputedDay(spec) for target in targets}, ["key"], ARRIVAL)
        found = judged.where("_is_new")
    elif isinstance(spec, GracedRows):
        found = records.where(F.col("_is_new") & is_late(spec)).withColumn("reason", F.lit("late"))
    elif computed is None:
        raise ValueError("computed: which records stay uncounted follows from the windows")
    else:
        found = _of_fixed(records, computed, spec)
    # That in force where it is later, as for all that follows from it (rule A4).
    met_ms = F.col("_close_time_ms") + F.lit(spec.close_delay_ms)
    # Records of row windows are there once, whatever the targets are.
    settled = (
        F.unix_date("arrival_unit") if isinstance(spec, GracedRows) else F.col("_computed_day")
    )
    return found.select(
        F.date_from_unix_date(settled).alias("arrival_unit"),
        F.col("arrival_unit").alias("record_arrival_unit"),
        "source_partition",
        "offset",
        "key",
        "event_time",
        "reason",
        F.timestamp_millis(met_ms).alias("stream_time"),
        F.timestamp_millis("_close_time_ms").alias("close_time"),
        (F.col("_close_time_ms") - F.col("_event_time_ms")).alias("late_by_ms"),
        *values,
    )


def _of_fixed(records: DataFrame, computed: DataFrame, spec: FixedWindows) -> DataFrame:
    """What is late or uncovered on arrival, and what settles uncounted."""
    uncounted = computed.where(F.col("_partly_late_time_ms").isNotNull()).select(
        "_computed_day",
        "key",
        F.col("_partly_late_time_ms").alias("_event_time_ms"),
        F.col("_partly_late_close_ms").alias("_close_time_ms"),
    )
    reason = F.when(is_outside_windows(spec), "outside_windows").when(is_late(spec), "late")
    judged = records.withColumn("reason", reason)
    on_arrival = judged.where(F.col("_is_new") & F.col("reason").isNotNull())
    same = [
        # A null key is a key (rule A6).
        F.col(f"record.{name}").eqNullSafe(F.col(f"settled.{name}"))
        for name in ("_computed_day", "key", "_event_time_ms", "_close_time_ms")
    ]
    on_settling = (
        judged.where(F.col("reason").isNull())
        .alias("record")
        .join(F.broadcast(uncounted).alias("settled"), same, "semi")
        .withColumn("reason", F.lit("partly_late"))
    )
    return on_arrival.unionByName(on_settling)
