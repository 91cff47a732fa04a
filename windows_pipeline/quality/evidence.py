"""What the records themselves say of each window, by other code than made the windows.

The engine's kernel walks two pointers over each key's records; this counts, in SQL, what had
entered by a window's end less what had left. The two agree or a check fails.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from windows_pipeline.engine.sliding import is_late, is_uncovered
from windows_pipeline.windows import SlidingWindows

_WINDOW_COLUMNS = (
    "target",
    "key",
    "window_start_ms",
    "window_end_ms",
    "first_event_time_ms",
    "last_event_time_ms",
    "record_count",
    "closed",
)


def sliding_evidence(records: DataFrame, windows: DataFrame, spec: SlidingWindows) -> DataFrame:
    """Puts beside each window what its records say, and beside each new record its window.

    Args:
        records: What `stream_time.records_to_read` gives.
        windows: `target`, `key`, `window_start_ms`, `window_end_ms`, `first_event_time_ms`,
            `last_event_time_ms`, `record_count`, `closed`; any others are left out.
        spec: The windows' definition.

    Returns:
        A row a window (`is_window`), its columns and: `recount`, `recount_first_ms`,
        `recount_last_ms` of the records in it; `departed_on_bound`, whether a record left
        just before it; `near_partly_late`, how many partly late records are within reach.
        And a row a new record (not `is_window`): `target`, `key`, `event_time_ms`,
        `close_time_ms`, `held`, whether a window holds it.
    """
    in_order = (
        windows.select(*_WINDOW_COLUMNS)
        .withColumn("at_ms", F.col("window_end_ms"))
        .withColumn("is_window", F.lit(True))
    )
    return _beside(_steps(records, spec).unionByName(in_order, allowMissingColumns=True), spec)


def _steps(records: DataFrame, spec: SlidingWindows) -> DataFrame:
    """What each record does to the count as window ends go on: enter, leave, come near."""
    reach = F.lit(spec.time_difference_ms)
    time_ms, close_ms = F.col("event_time_ms"), F.col("close_time_ms")
    left_end_ms = time_ms
    if spec.first_window_start_ms is not None:
        left_end_ms = F.greatest(time_ms, F.lit(spec.first_window_start_ms) + reach)
    leaves_ms = time_ms + reach + 1
    enter = _step(F.greatest(left_end_ms, close_ms), inside=1, entered_ms=time_ms)
    leave = _step(leaves_ms, inside=-1, left_ms=leaves_ms)
    # A partly late record touches the windows that end while it could be in one, and the next.
    near = _step(left_end_ms, near=1)
    far = _step(leaves_ms + 1, near=-1)
    in_time = F.array(enter, leave)
    return (
        records.where(~is_late(spec) & ~is_uncovered(spec))
        .withColumn(
            "step",
            F.explode(
                F.when(close_ms > left_end_ms, F.array(enter, leave, near, far)).otherwise(in_time)
            ),
        )
        .select(
            "target",
            "key",
            "step.*",
            F.when(F.col("step.entered_ms").isNotNull(), F.col("is_new")).alias("is_new"),
            "event_time_ms",
            "close_time_ms",
            F.lit(False).alias("is_window"),
        )
    )


def _step(
    at_ms: Column,
    inside: int = 0,
    near: int = 0,
    entered_ms: Column | None = None,
    left_ms: Column | None = None,
) -> Column:
    none = F.lit(None).cast("bigint")
    return F.struct(
        at_ms.alias("at_ms"),
        F.lit(inside).alias("inside"),
        F.lit(near).alias("near"),
        (none if entered_ms is None else entered_ms).alias("entered_ms"),
        (none if left_ms is None else left_ms).alias("left_ms"),
    )


def _beside(steps: DataFrame, spec: SlidingWindows) -> DataFrame:
    by_key = Window.partitionBy("target", "key")
    # A window comes after the steps of its own last instant; going back, before them.
    so_far = by_key.orderBy("at_ms", "is_window").rowsBetween(Window.unboundedPreceding, 0)
    from_here = by_key.orderBy(F.desc("at_ms"), F.desc("is_window")).rowsBetween(
        Window.unboundedPreceding, 0
    )
    next_leave = F.min("left_ms").over(from_here)
    next_window = F.min("window_end_ms").over(from_here)
    last_end = F.col("event_time_ms") + F.lit(spec.time_difference_ms)
    return (
        steps.withColumn("recount", F.sum("inside").over(so_far))
        .withColumn("recount_last_ms", F.max("entered_ms").over(so_far))
        .withColumn("departed_on_bound", F.max("left_ms").over(so_far).eqNullSafe(F.col("at_ms")))
        .withColumn("near_partly_late", F.coalesce(F.sum("near").over(so_far), F.lit(0)))
        .withColumn("recount_first_ms", next_leave - F.lit(spec.time_difference_ms) - 1)
        .withColumn("held", F.coalesce(next_window <= last_end, F.lit(False)))
        .where(F.col("is_window") | F.col("is_new"))
        .drop("inside", "entered_ms", "left_ms", "near", "at_ms")
    )


def account_for_records(
    evidence: DataFrame, late: DataFrame, rejected: DataFrame, units: DataFrame
) -> DataFrame:
    """Says of each unit where its records went (rule A5).

    Args:
        evidence: What `sliding_evidence` gives, for all windows that the unit changed.
        late: late_records that these units list: `unit`, `arrived_unit`.
        rejected: rejected_records of these units: `unit`.
        units: One row a unit: `unit`, `target`, `ingested` (bigint), `close_after_ms`
            (bigint), `held_back_by` (date: the missing unit; null where none is) and
            `time_difference_ms` (bigint).

    Returns:
        `unit`, `ingested`, `counted`, `late`, `rejected`, `held_back_by`, and `pending`: no
        window counts them so far, but one that is open still may (rule B5).
    """
    last_end = F.col("event_time_ms") + F.col("time_difference_ms")
    open_still = ~F.col("held") & (last_end >= F.col("close_after_ms"))
    counts = (
        evidence.where(~F.col("is_window"))
        .join(F.broadcast(units), "target")
        .groupBy("unit")
        .agg(F.count_if("held").alias("counted"), F.count_if(open_still).alias("pending"))
    )
    own_late = late.where(F.col("unit") == F.col("arrived_unit"))
    return (
        units.join(counts, "unit", "left")
        .join(own_late.groupBy("unit").agg(F.count("*").alias("late")), "unit", "left")
        .join(rejected.groupBy("unit").agg(F.count("*").alias("rejected")), "unit", "left")
        .fillna(0, ["counted", "pending", "late", "rejected"])
        .select("unit", "ingested", "counted", "pending", "late", "rejected", "held_back_by")
    )
