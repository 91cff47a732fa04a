"""Recounts windows from their records with code that is independent of the engine.

The engine's kernels move two pointers over each key's records. The recount takes, by binary search,
the records that had entered by a window's end less those that had left, and it replays sessions in
the order of arrival. If engine and recount differ, a check fails.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.checks.recounts.kernel import GROUP, difference_of, window_recount
from windows_pipeline.checks.recounts.session_kernel import ADDED, ORDER, session_recount
from windows_pipeline.checks.recounts.shards import (
    IS_OWN,
    SHARD,
    between_sessions,
    by_group,
    near_in_shards,
    recount_shard_ms,
)
from windows_pipeline.compat.python_workers import in_workers
from windows_pipeline.incremental.definition_records import PASSES
from windows_pipeline.incremental.windows import ARRIVAL
from windows_pipeline.kernels.windows.chunk import Closing
from windows_pipeline.tuning import Tuning
from windows_pipeline.windows import FixedWindows, SessionWindows

_RECORD_COLUMNS = (*GROUP, "_event_time_ms", "_close_time_ms", "_is_new")
_WINDOW_COLUMNS = (
    *GROUP,
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
OF_ACCOUNTS = ("is_window", "_computed_day", "counted", "last_instant_ms")
"""The columns of recounted rows that `account_for_records` needs."""


def recount_fixed(
    records: DataFrame,
    windows: DataFrame,
    spec: FixedWindows,
    closings: Mapping[int, Closing],
    tuning: Tuning,
) -> DataFrame:
    """Recounts windows of one length; see `window_rules.recount_windows`."""
    del closings
    in_time = records.where(_may_count(spec)).select(*_RECORD_COLUMNS)
    rows = _in_time_shards(in_time, windows.select(*_WINDOW_COLUMNS), spec, tuning)
    carried = [field for field in rows.schema if field.name not in ("_is_new", SHARD, IS_OWN)]
    # The recount needs whole groups, but no order within them.
    grouped = by_group(rows, [*GROUP, SHARD])
    recounted = in_workers(grouped, window_recount(spec), T.StructType([*carried, *_ADDED]))
    return recounted.withColumn("last_instant_ms", _last_instant_ms(spec))


def _last_start_ms(spec: FixedWindows) -> Column:
    """When the last window begins that holds a record; in a gap, the window before (rule C1)."""
    time_ms = F.col("_event_time_ms")
    if spec.step_ms is None:
        return time_ms
    # Spark's remainder has the sign of the time.
    since_ms = time_ms % F.lit(spec.step_ms)
    return time_ms - since_ms - F.when(since_ms < 0, spec.step_ms).otherwise(0)


def _last_instant_ms(spec: FixedWindows) -> Column:
    """The last millisecond of that window."""
    return _last_start_ms(spec) + F.lit(difference_of(spec))


def _may_count(spec: FixedWindows) -> Column:
    """Whether a window may count a record: the record is neither late nor outside every window."""
    last_ms = _last_instant_ms(spec)
    in_time = F.coalesce(last_ms >= F.col("_close_time_ms"), F.lit(True))
    if spec.first_window_start_ms is not None:
        in_time &= _last_start_ms(spec) >= F.lit(spec.first_window_start_ms)
    return in_time & (last_ms >= F.col("_event_time_ms"))


def _in_time_shards(
    records: DataFrame, windows: DataFrame, spec: FixedWindows, tuning: Tuning
) -> DataFrame:
    """Puts records and windows into time shards, each with the neighbours that it depends on.

    The recount of a window depends on the records that it holds or that have just left, and on
    the windows that may hold the same records. The recount of a record depends on the windows
    that may hold it. All of these lie within one window length. A possibly partly late record
    also matters to the windows near such windows, so it goes into shards twice as far away.
    """
    difference_ms = difference_of(spec)
    near_ms = difference_ms + 1
    length_ms = recount_shard_ms(near_ms, tuning)
    if length_ms is None:
        whole = {SHARD: F.lit(0).cast("bigint"), IS_OWN: F.lit(True)}
        return _together(records, windows).withColumns(whole)
    time_ms, near = F.col("_event_time_ms"), F.lit(near_ms)
    last_ms = F.col("_window_end_ms") - F.lit(spec.length_ms - difference_ms)
    held_until_ms = time_ms + F.lit(difference_ms)
    further_ms = F.when(F.col("_close_time_ms") > F.col("_event_time_ms"), near).otherwise(0)
    matters_at_ms = [time_ms - further_ms, time_ms + near + further_ms]
    return _together(
        near_in_shards(records, held_until_ms, matters_at_ms, length_ms),
        near_in_shards(windows, last_ms, [last_ms - near, last_ms + near], length_ms),
    )


def recount_sessions(
    records: DataFrame,
    windows: DataFrame,
    spec: SessionWindows,
    closings: Mapping[int, Closing],
    tuning: Tuning,
) -> DataFrame:
    """Recounts sessions; see `window_rules.recount_windows`."""
    del closings
    rows = _together(records.select(*_RECORD_COLUMNS, *ARRIVAL), windows.select(*_WINDOW_COLUMNS))
    # A window lies where its last record does.
    time_ms = F.coalesce("_event_time_ms", "_window_end_ms")
    rows = between_sessions(rows, time_ms, spec.gap_ms, tuning)
    group = [*GROUP, *([SHARD] if SHARD in rows.columns else [])]
    input_only = ("_is_new", SHARD, *ARRIVAL)
    carried = [field for field in rows.schema if field.name not in input_only]
    in_order = by_group(rows, group, ORDER)
    schema = T.StructType([*carried, *(T.StructField(name, T.LongType()) for name in ADDED)])
    return in_workers(in_order, session_recount(spec.gap_ms, group), schema)


def _together(records: DataFrame, windows: DataFrame) -> DataFrame:
    is_window = "is_window"
    return records.withColumn(is_window, F.lit(False)).unionByName(
        windows.withColumn(is_window, F.lit(True)), allowMissingColumns=True
    )


def account_for_records(
    recounted: DataFrame,
    late: DataFrame,
    rejected: DataFrame,
    arrival_units: DataFrame,
    undecided: DataFrame | None = None,
    marked: DataFrame | None = None,
) -> DataFrame:
    """Accounts for the records of each arrival unit: counted, pending, late or rejected (rule A5).

    Args:
        recounted: The frame that `window_rules.recount_windows` returns for all windows that
            the arrival units changed; the rows of windows may be left out.
        late: Rows of late_records of these arrival units: `arrival_unit`, `record_arrival_unit`,
            `reason`.
        rejected: Rows of rejected_records of these arrival units: `arrival_unit`.
        arrival_units: One row for each arrival unit: `arrival_unit`, `_computed_day`, `ingested`
            (bigint), `_close_after_ms` (bigint) and `blocked_by` (date: the missing arrival
            unit; null without one).
        undecided: The closed windows of these arrival units with a rule that could not be evaluated
            (rule G3), as rows of keyed_windows with `undecided_rules` (list of their names); None
            if every rule can be evaluated.
        marked: The frame that `definition_records` returns for these arrival units, if the
            definition has a filter (rule A9); None if it has none.

    Returns:
        `arrival_unit`, `blocked_by`, and numbers of records (bigint): `ingested`, `counted`,
        `pending` (no window counts them yet, but an open window may, rule B5), `late` (all of
        late_records), `too_late` (those of `late` that some window covers) and `rejected`. With
        `marked` also `filtered`, the records that do not pass the filter. With `undecided` also
        their number, and of one of them `first_undecided` (string: its key, bounds, failed
        aggregates and such rules).
    """
    is_open = F.col("last_instant_ms") >= F.col("_close_after_ms")
    counts = (
        recounted.where(~F.col("is_window"))
        .join(F.broadcast(arrival_units), "_computed_day")
        .groupBy("arrival_unit")
        .agg(F.sum("counted").alias("counted"), F.count_if(is_open).alias("pending"))
    )
    own_late = late.where(F.col("arrival_unit") == F.col("record_arrival_unit"))
    of_late = own_late.groupBy("arrival_unit").agg(
        F.count("*").alias("late"),
        F.count_if(F.col("reason") != "outside_windows").alias("too_late"),
    )
    accounts = (
        arrival_units.join(counts, "arrival_unit", "left")
        .join(of_late, "arrival_unit", "left")
        .join(
            rejected.groupBy("arrival_unit").agg(F.count("*").alias("rejected")),
            "arrival_unit",
            "left",
        )
        .fillna(0, ["counted", "pending", "late", "too_late", "rejected"])
        .select(
            *("arrival_unit", "ingested", "counted", "pending", "late", "too_late", "rejected"),
            "blocked_by",
        )
    )
    if marked is not None:
        counts = marked.groupBy("arrival_unit").agg(F.count_if(~F.col(PASSES)).alias("filtered"))
        accounts = accounts.join(counts, "arrival_unit", "left").fillna(0, ["filtered"])
    if undecided is None:
        return accounts
    shown = F.struct("key", "window_start", "window_end", "failed", "undecided_rules")
    of_windows = undecided.groupBy("arrival_unit").agg(
        F.count("*").alias("undecided"), F.min(shown).cast("string").alias("first_undecided")
    )
    return accounts.join(of_windows, "arrival_unit", "left").fillna(0, ["undecided"])
