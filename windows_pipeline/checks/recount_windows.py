"""What the records themselves say of each window, by other code than made the windows.

The engine's kernels walk two pointers over each key's records; this counts, by binary search,
what had entered by a window's end less what had left, and plays the records of sessions again as
they came. The two agree or a check fails.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.checks.recount_kernel import EvidenceKernel, difference_of
from windows_pipeline.checks.recount_session_kernel import ADDED, SessionEvidenceKernel
from windows_pipeline.engine.lateness import is_late, is_outside_windows, last_end_ms, last_instant
from windows_pipeline.engine.radix_sort import in_radix_order
from windows_pipeline.engine.time_shards import (
    IN_HOME_SHARD,
    TIME_SHARD,
    length_for_look_back,
    with_home_shard,
    within_a_day,
)
from windows_pipeline.incremental.windows import ARRIVAL
from windows_pipeline.tuning import TUNING, Tuning
from windows_pipeline.windows import FixedWindows, SessionWindows

_GROUPED = ("_computed_day", "key")
_RECORD_COLUMNS = (*_GROUPED, "_event_time_ms", "_close_time_ms", "_is_new")
_WINDOW_COLUMNS = (
    *_GROUPED,
    "_window_start_ms",
    "_window_end_ms",
    "_first_event_time_ms",
    "_last_event_time_ms",
    "record_count",
    "closed",
)
_ADDED = (
    T.StructType()
    .add("recount", T.LongType())
    .add("recount_first_ms", T.LongType())
    .add("recount_last_ms", T.LongType())
    .add("departed_on_bound", T.BooleanType())
    .add("near_partly_late", T.LongType())
    .add("same_records", T.LongType())
    .add("same_end", T.LongType())
    .add("counted", T.LongType())
)


def window_evidence(
    records: DataFrame,
    windows: DataFrame,
    spec: FixedWindows | SessionWindows,
    tuning: Tuning = TUNING,
) -> DataFrame:
    """Puts beside each window what its records say, and says which new records none holds.

    Args:
        records: What `stream_time.records_to_read` gives.
        windows: `_computed_day`, `key`, `_window_start_ms`, `_window_end_ms`,
            `_first_event_time_ms`,
            `_last_event_time_ms`, `record_count`, `closed`; any others are left out.
        spec: The windows' definition.
        tuning: How finely a key's time is cut into time shards.

    Returns:
        A row a window (`is_window`), its columns and: `recount`, `recount_first_ms`,
        `recount_last_ms` of the records in it (the times are null where there are none); and
        `same_end`, how many windows of its target and key end then.

        Of sliding, hopping and tumbling windows also `departed_on_bound`, whether a record left
        just before it; `near_partly_late`, how many records that may be partly late are within
        reach (if any, `recount_first_ms` is only a lower bound); and `same_records`, how many of
        its key's windows say that they hold the same records (null where a partly late one is
        near, or none is held). Of sessions `beyond_grace`, how many of its records came later
        than the grace; and `previous_end_ms`, the end before of its key's windows, null of the
        first.

        A row a new record that no window holds (not `is_window`): `_computed_day`, `key`,
        `_event_time_ms`, `_close_time_ms` and `last_instant_ms`, the last instant of the last
        window that may count it. And rows of each target and key with new records, one a shard
        of its time: `_computed_day`, `key`, `counted`, how many of them windows hold. Milliseconds
        and counts are bigint; what a row has no value for is null. In no order.
    """
    if isinstance(spec, SessionWindows):
        return _of_sessions(records, windows, spec)
    return _of_fixed(records, windows, spec, tuning)


def _of_fixed(
    records: DataFrame, windows: DataFrame, spec: FixedWindows, tuning: Tuning
) -> DataFrame:
    in_time = records.where(~is_late(spec) & ~is_outside_windows(spec)).select(*_RECORD_COLUMNS)
    rows = _in_time_shards(in_time, windows.select(*_WINDOW_COLUMNS), spec, tuning)
    given = [
        field for field in rows.schema if field.name not in ("_is_new", TIME_SHARD, IN_HOME_SHARD)
    ]
    # Within a group any order does.
    grouped = in_radix_order(rows, [*_GROUPED, TIME_SHARD])
    beside = grouped.mapInArrow(EvidenceKernel(spec), T.StructType([*given, *_ADDED]))
    return beside.withColumn("last_instant_ms", last_instant(spec, last_end_ms(spec)))


def _in_time_shards(
    records: DataFrame, windows: DataFrame, spec: FixedWindows, tuning: Tuning
) -> DataFrame:
    """Records and windows, those of each time shard with what they are judged by.

    A window is judged by the records that it holds or that have just left, and the windows that
    may hold the same ones; a record by the windows that may hold it. None is further away than
    the windows are long. What may be partly late tells of these other windows, too, whether it
    is near: so it reaches twice as far.
    """
    difference_ms = difference_of(spec)
    reach_ms = difference_ms + 1
    length_ms = within_a_day(length_for_look_back(reach_ms, tuning), tuning)
    if length_ms is None:
        whole = {TIME_SHARD: F.lit(0).cast("bigint"), IN_HOME_SHARD: F.lit(True)}
        return _together(records, windows).withColumns(whole)
    # Half a shard later than the engine's shards, so that what it loses at a cut is seen.
    time_ms, reach = F.col("_event_time_ms") - F.lit(length_ms // 2), F.lit(reach_ms)
    last_ms = last_instant(spec, F.col("_window_end_ms")) - F.lit(length_ms // 2)
    held_until_ms = time_ms + F.lit(difference_ms)
    further = F.when(F.col("_close_time_ms") > F.col("_event_time_ms"), reach).otherwise(0)
    reached_ms = [time_ms - further, time_ms + reach + further]
    return _together(
        with_home_shard(records, held_until_ms, reached_ms, length_ms),
        with_home_shard(windows, last_ms, [last_ms - reach, last_ms + reach], length_ms),
    )


def _of_sessions(records: DataFrame, windows: DataFrame, spec: SessionWindows) -> DataFrame:
    rows = _together(records.select(*_RECORD_COLUMNS, *ARRIVAL), windows.select(*_WINDOW_COLUMNS))
    given = [field for field in rows.schema if field.name not in ("_is_new", *ARRIVAL)]
    arrived = (*_GROUPED, "_close_time_ms", *ARRIVAL)
    in_order = rows.repartition(*_GROUPED).sortWithinPartitions(*arrived)
    schema = T.StructType([*given, *(T.StructField(name, T.LongType()) for name in ADDED)])
    return in_order.mapInArrow(SessionEvidenceKernel(spec.gap_ms), schema)


def _together(records: DataFrame, windows: DataFrame) -> DataFrame:
    is_window = "is_window"
    return records.withColumn(is_window, F.lit(False)).unionByName(
        windows.withColumn(is_window, F.lit(True)), allowMissingColumns=True
    )


def account_for_records(
    evidence: DataFrame, late: DataFrame, rejected: DataFrame, units: DataFrame
) -> DataFrame:
    """Says of each unit where its records went (rule A5).

    Args:
        evidence: What `window_evidence` or `row_evidence` gives, for all windows that the unit
            changed; the windows may be left out.
        late: late_records that these units list: `arrival_unit`, `record_arrival_unit`.
        rejected: rejected_records of these units: `arrival_unit`.
        units: One row a unit: `arrival_unit`, `_computed_day`, `ingested` (bigint),
            `_close_after_ms`
            (bigint) and `held_back_by` (date: the missing unit; null where none is).

    Returns:
        `arrival_unit`, `ingested`, `counted`, `late`, `too_late` (those of them that a window
        would have
        covered), `rejected`, `held_back_by`, and `pending`: no window that is there counts them,
        but one that is open may (rule B5).
    """
    open_still = F.col("last_instant_ms") >= F.col("_close_after_ms")
    counts = (
        evidence.where(~F.col("is_window"))
        .join(F.broadcast(units), "_computed_day")
        .groupBy("arrival_unit")
        .agg(F.sum("counted").alias("counted"), F.count_if(open_still).alias("pending"))
    )
    own_late = late.where(F.col("arrival_unit") == F.col("record_arrival_unit"))
    of_late = own_late.groupBy("arrival_unit").agg(
        F.count("*").alias("late"),
        F.count_if(F.col("reason") != "outside_windows").alias("too_late"),
    )
    return (
        units.join(counts, "arrival_unit", "left")
        .join(of_late, "arrival_unit", "left")
        .join(
            rejected.groupBy("arrival_unit").agg(F.count("*").alias("rejected")),
            "arrival_unit",
            "left",
        )
        .fillna(0, ["counted", "pending", "late", "too_late", "rejected"])
        .select(
            *("arrival_unit", "ingested", "counted", "pending", "late", "too_late", "rejected"),
            "held_back_by",
        )
    )
