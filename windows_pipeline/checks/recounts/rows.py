"""Recounts row windows from their records with Spark's own window frames.

The engine's kernel finds frames with moving indices in NumPy; the recount lets Spark find them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.kernels.windows.chunk import Closing
from windows_pipeline.storage.instants import timestamp_to_ms
from windows_pipeline.tuning import Tuning
from windows_pipeline.windows import (
    ROW_KEY,
    CountWindows,
    GracedRows,
    SessionRows,
    SeveralRows,
    SlideRows,
    TumbleRows,
)
from windows_pipeline.windows.frames.bounds import FrameUnit

_ARRIVAL = ROW_KEY[1:]
_TIME_MS = "_event_time_ms"
_ALL_BEFORE = Window.unboundedPreceding
_NEVER_FINAL_MS = 2**62


class _Expected(NamedTuple):
    """What a row's window, or one of the frames that together are its window, should be.

    Attributes:
        frame: The records that the window holds.
        start_ms: The start of the window; may use the column `recount_first_ms`.
        last_instant_ms: The last instant that the result depends on; null while unknown. May use
            the column `recount_last_ms`.
        has_result: Whether the row has a result.
    """

    frame: WindowSpec
    start_ms: Column
    last_instant_ms: Column
    has_result: Column


def recount_rows(
    records: DataFrame,
    rows: DataFrame,
    spec: GracedRows,
    closings: Mapping[int, Closing],
    tuning: Tuning,
) -> DataFrame:
    """Recounts each result of a row window, and finds the new records that no result counts.

    Args:
        records: The records that the rows of the checked arrival units need, each once.
        rows: Rows of keyed_windows of these arrival units, with `_computed_day` and milliseconds.
        spec: The windows.
        closings: The close times before and after each checked arrival unit, by day number.
        tuning: Not used.

    Returns:
        One row for each result that exists or should exist (`is_window`): its columns; `found` (how
        many results its record has); `expected` (whether the record should have this result in this
        arrival unit); and `recount`, `recount_first_ms`, `recount_last_ms`, `recount_start_ms` and
        `recount_end_ms` of the window.

        One row for each new record that is not late (not `is_window`): `_computed_day`, `counted`
        (1 or 0) and, if no result counts the record, `last_instant_ms`: the last instant of the
        first window that should hold it.
    """
    del tuning
    recounted = _recounted(records, spec)
    by_record = Window.partitionBy(*_ARRIVAL)
    results = rows.select(
        *_ARRIVAL,
        "_computed_day",
        "key",
        timestamp_to_ms("event_time").alias("row_time_ms"),
        *("_window_start_ms", "_window_end_ms", "_first_event_time_ms", "_last_event_time_ms"),
        "record_count",
        F.count("*").over(by_record).alias("found"),
    )
    joined = _joined(results, recounted, closings)
    return joined.unionByName(_accounted(results, recounted, spec), allowMissingColumns=True)


def _recounted(records: DataFrame, spec: GracedRows) -> DataFrame:
    """Each record that is not late, with the window that it should have."""
    in_time = records.where(F.col(_TIME_MS) >= F.col("_close_time_ms")).select(
        "key",
        _TIME_MS,
        F.col("arrival_unit").alias("record_arrival_unit"),
        "source_partition",
        "offset",
        "_is_new",
        # The block or session of a record within its key, if windows have such parts.
        F.lit(0).alias("part"),
    )
    return _RECOUNTED[type(spec.window)](in_time, spec.window)


def _counted(records: DataFrame, expected: _Expected) -> DataFrame:
    """Each record with what Spark counts in its window."""
    in_frame = {
        "recount": F.count("*"),
        "recount_first_ms": F.min(_TIME_MS),
        "recount_last_ms": F.max(_TIME_MS),
    }
    counted = records.withColumns(
        {name: of_frame.over(expected.frame) for name, of_frame in in_frame.items()}
    )
    end_ms = F.when(expected.has_result, expected.last_instant_ms)
    return counted.withColumns({"recount_start_ms": expected.start_ms, "recount_end_ms": end_ms})


def _of_several(in_time: DataFrame, window: SeveralRows) -> DataFrame:
    """Each record with the window from the first to the last record of its outermost frames.

    Each of these frames holds the record itself, so there are no records between two frames.
    """
    numbered = in_time.withColumn("_position", F.row_number().over(_by_time("key", "part")))
    frames = [_of_slide(frame) for frame in window.outer_on(_TIME_MS)]
    least = {"_first_position": "_position", "recount_first_ms": _TIME_MS}
    most = {"_last_position": "_position", "recount_last_ms": _TIME_MS}
    counted = numbered.withColumns(
        {
            **{
                name: _of_all(F.least, [F.min(of).over(each.frame) for each in frames])
                for name, of in least.items()
            },
            **{
                name: _of_all(F.greatest, [F.max(of).over(each.frame) for each in frames])
                for name, of in most.items()
            },
        }
    )
    ends_ms = [each.last_instant_ms for each in frames]
    known = reduce(and_, [each.isNotNull() for each in ends_ms])
    return counted.withColumns(
        {
            "recount": F.col("_last_position") - F.col("_first_position") + F.lit(1).cast("bigint"),
            "recount_start_ms": _of_all(F.least, [each.start_ms for each in frames]),
            "recount_end_ms": F.when(known, _of_all(F.greatest, ends_ms)),
        }
    )


def _of_all(choose: Callable[..., Column], columns: Sequence[Column]) -> Column:
    """The least or greatest of one or more columns."""
    return columns[0] if len(columns) == 1 else choose(*columns)


def _of_slides(in_time: DataFrame, window: SlideRows) -> DataFrame:
    return _counted(in_time, _of_slide(window))


def _of_slide(window: SlideRows) -> _Expected:
    always, time_ms, by_time = F.lit(True), F.col(_TIME_MS), _by_time("key", "part")
    back, ahead = window.back, window.ahead
    assert ahead is not None  # noqa: S101  without an end, no row of a pipeline would be final
    first = _ALL_BEFORE if back is None else -back
    if window.unit is FrameUnit.ROWS:
        end_ms = F.lead(_TIME_MS, ahead).over(by_time) if ahead > 0 else time_ms
        return _Expected(by_time.rowsBetween(first, ahead), _first_ms(), end_ms, always)
    peers = Window.partitionBy("key", "part").orderBy(_TIME_MS)
    start_ms = _first_ms() if back is None else F.least(time_ms, time_ms - F.lit(back))
    end_ms = F.greatest(time_ms, time_ms + F.lit(ahead))
    return _Expected(peers.rangeBetween(first, ahead), start_ms, end_ms, always)


def _of_tumbles(in_time: DataFrame, window: TumbleRows) -> DataFrame:
    time_ms, always = F.col(_TIME_MS), F.lit(True)
    if window.unit is FrameUnit.ROWS:
        block = F.floor((F.col("number") - 1) / F.lit(window.size))
        frame = _by_arrival("key", "part").rowsBetween(_ALL_BEFORE, 0)
        blocks = _numbered(in_time).withColumn("part", block)
        return _counted(blocks, _Expected(frame, _first_ms(), _last_ms(), always))
    part = time_ms - F.expr(f"pmod({_TIME_MS}, {window.size}L)")
    frame = _by_time("key", "part").rowsBetween(_ALL_BEFORE, 0)
    expected = _Expected(frame, F.col("part"), time_ms, always)
    return _counted(in_time.withColumn("part", part), expected)


def _of_sessions(in_time: DataFrame, window: SessionRows) -> DataFrame:
    time_ms, by_time = F.col(_TIME_MS), _by_time("key")
    silent = in_time.withColumn("silence_ms", time_ms - F.lag(_TIME_MS).over(by_time))
    begins = F.when(F.col("silence_ms") > F.lit(window.gap_ms), 1).otherwise(0)
    sessions = silent.withColumn("part", F.sum(begins).over(by_time.rowsBetween(_ALL_BEFORE, 0)))
    frame = _by_time("key", "part").rowsBetween(_ALL_BEFORE, 0)
    return _counted(sessions, _Expected(frame, _first_ms(), time_ms, F.lit(True)))


def _of_counts(in_time: DataFrame, window: CountWindows) -> DataFrame:
    first = window.advance if window.short_first else window.size
    since = F.col("number") - F.lit(first)
    fires = (since >= 0) & (since % F.lit(window.advance) == 0)
    frame = _by_arrival("key", "part").rowsBetween(1 - window.size, 0)
    return _counted(_numbered(in_time), _Expected(frame, _first_ms(), _last_ms(), fires))


_RECOUNTED: Mapping[type, Callable[[DataFrame, Any], DataFrame]] = {
    SlideRows: _of_slides,
    TumbleRows: _of_tumbles,
    SessionRows: _of_sessions,
    SeveralRows: _of_several,
    CountWindows: _of_counts,
}
"""What adds the window that it should have to each record, by kind of window."""


def _numbered(in_time: DataFrame) -> DataFrame:
    """Adds `number`, that of a record of its key by arrival."""
    return in_time.withColumn("number", F.row_number().over(_by_arrival("key")))


def _first_ms() -> Column:
    return F.least(_TIME_MS, "recount_first_ms")


def _last_ms() -> Column:
    return F.greatest(_TIME_MS, "recount_last_ms")


def _joined(results: DataFrame, recounted: DataFrame, closings: Mapping[int, Closing]) -> DataFrame:
    """Joins the stored results with the expected ones; either may lack the other."""
    arrival_units = small_frame(
        results.sparkSession,
        [(day, *closing) for day, closing in closings.items()],
        "expected_day int, _before_ms bigint, _after_ms bigint",
    )
    becomes_final = (F.col("recount_end_ms") >= F.col("_before_ms")) & (
        F.col("recount_end_ms") < F.col("_after_ms")
    )
    of_window = ("recount_first_ms", "recount_last_ms", "recount_start_ms", "recount_end_ms")
    expected = recounted.join(F.broadcast(arrival_units), becomes_final).select(
        *(*_ARRIVAL, "expected_day", F.col("key").alias("expected_key"), _TIME_MS),
        *("recount", *of_window),
    )
    is_expected = (
        F.col("_computed_day").eqNullSafe(F.col("expected_day"))
        & F.col("key").eqNullSafe(F.col("expected_key"))
        & F.col("row_time_ms").eqNullSafe(F.col(_TIME_MS))
    )
    return results.join(expected, list(_ARRIVAL), "full").withColumns(
        {
            "is_window": F.lit(True),
            "found": F.coalesce("found", F.lit(0).cast("bigint")),
            "expected": is_expected,
        }
    )


def _accounted(results: DataFrame, recounted: DataFrame, spec: GracedRows) -> DataFrame:
    """Each new record that is not late, and whether a result of its own arrival unit counts it."""
    of_records = results.select(*_ARRIVAL, F.col("_computed_day").alias("found_day")).distinct()
    own_day = F.unix_date("record_arrival_unit")
    joined = recounted.join(of_records, list(_ARRIVAL), "left")
    found_day, end_ms = F.col("found_day"), F.col("recount_end_ms")
    size = spec.window.result_rows.size
    if size > 1:
        # A record is in the windows that end with it or with one of the next size - 1 records.
        holding = _by_arrival("key").rowsBetween(0, size - 1)
        found_day, end_ms = F.min(found_day).over(holding), F.min(end_ms).over(holding)
    counted = F.coalesce((found_day == own_day).cast("bigint"), F.lit(0).cast("bigint"))
    judged = joined.select(
        "_is_new",
        own_day.alias("_computed_day"),
        counted.alias("counted"),
        F.coalesce(end_ms, F.lit(_NEVER_FINAL_MS)).alias("last_instant_ms"),
    )
    return judged.where("_is_new").select(
        "_computed_day",
        "counted",
        F.when(F.col("counted") == 0, F.col("last_instant_ms")).alias("last_instant_ms"),
        F.lit(False).alias("is_window"),
    )


def _by_time(*parts: str) -> WindowSpec:
    return Window.partitionBy(*parts).orderBy(_TIME_MS, *_ARRIVAL)


def _by_arrival(*parts: str) -> WindowSpec:
    return Window.partitionBy(*parts).orderBy(*_ARRIVAL)
