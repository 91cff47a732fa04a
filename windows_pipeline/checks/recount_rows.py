"""What the records themselves say of each row's window, by Spark's own frames.

The engine's kernel finds frames by places that move on in NumPy; here Spark counts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.kernels.windows.chunk import Closing
from windows_pipeline.windows import (
    ROW_KEY,
    CountWindows,
    GracedRows,
    SessionRows,
    SlideRows,
    TumbleRows,
)
from windows_pipeline.windows.row_bounds import FrameUnit

_ARRIVAL = ROW_KEY[1:]
_TIME_MS = "_event_time_ms"
_ALL_BEFORE = Window.unboundedPreceding
_NEVER_SETTLED_MS = 2**62


class _Expected(NamedTuple):
    """What a row's window should be.

    Attributes:
        frame: The records that it holds.
        start_ms: Where it starts; may ask for `recount_first_ms`.
        settled_ms: The last instant that it hangs on, null while that is not known; may ask for
            `recount_last_ms`.
        has_result: Whether the row has one.
    """

    frame: WindowSpec
    start_ms: Column
    settled_ms: Column
    has_result: Column


def row_evidence(
    records: DataFrame, rows: DataFrame, spec: GracedRows, closings: Mapping[int, Closing]
) -> DataFrame:
    """Puts beside each row what its records say, and says which new records no row counts.

    Args:
        records: The records that the rows of the judged units need, each once.
        rows: Rows of keyed_windows of these units, with `_computed_day` and milliseconds.
        spec: The windows.
        closings: By judged unit, the close times before and after it.

    Returns:
        A row a result that is there or should be (`is_window`): its columns and `found`, how
        many results its record has; `expected`, whether it should have one in that unit; and
        `recount`, `recount_first_ms`, `recount_last_ms`, `recount_start_ms`, `settled_ms`.

        A row a new record that came in time (not `is_window`): `_computed_day`, `counted` (1 or 0)
        and, of one that no result counts, `last_instant_ms`: when the first should that holds it.
    """
    recounted = _recounted(records, spec)
    by_record = Window.partitionBy(*_ARRIVAL)
    results = rows.select(
        *_ARRIVAL,
        "_computed_day",
        "key",
        F.unix_millis("event_time").alias("row_time_ms"),
        *("_window_start_ms", "_window_end_ms", "_first_event_time_ms", "_last_event_time_ms"),
        "record_count",
        F.count("*").over(by_record).alias("found"),
    )
    beside = _beside(results, recounted, closings)
    return beside.unionByName(_accounted(results, recounted, spec), allowMissingColumns=True)


def _recounted(records: DataFrame, spec: GracedRows) -> DataFrame:
    """Each record that came in time, with the window that it should have."""
    in_time = records.where(F.col(_TIME_MS) >= F.col("_close_time_ms")).select(
        "key",
        _TIME_MS,
        F.col("arrival_unit").alias("record_arrival_unit"),
        "source_partition",
        "offset",
        "_is_new",
    )
    expected = _expected(spec)
    in_frame = {
        "recount": F.count("*"),
        "recount_first_ms": F.min(_TIME_MS),
        "recount_last_ms": F.max(_TIME_MS),
    }
    told = _in_parts(in_time, spec).withColumns(
        {name: of_frame.over(expected.frame) for name, of_frame in in_frame.items()}
    )
    settled_ms = F.when(expected.has_result, expected.settled_ms)
    return told.withColumns({"recount_start_ms": expected.start_ms, "settled_ms": settled_ms})


def _in_parts(in_time: DataFrame, spec: GracedRows) -> DataFrame:
    """Adds `part`, the part of its key that a record's window lies in, by arrival also `number`."""
    if spec.by_arrival:
        in_time = in_time.withColumn("number", F.row_number().over(_by_arrival("key")))
    time_ms, part = F.col(_TIME_MS), F.lit(0)
    match spec.window:
        case TumbleRows(unit=FrameUnit.RANGE, size=size):
            part = time_ms - F.expr(f"pmod({_TIME_MS}, {size}L)")
        case TumbleRows(size=size):
            part = F.floor((F.col("number") - 1) / F.lit(size))
        case SessionRows(gap_ms=gap_ms):
            by_time = _by_time("key")
            in_time = in_time.withColumn("silence_ms", time_ms - F.lag(_TIME_MS).over(by_time))
            begins = F.when(F.col("silence_ms") > F.lit(gap_ms), 1).otherwise(0)
            part = F.sum(begins).over(by_time.rowsBetween(_ALL_BEFORE, 0))
    return in_time.withColumn("part", part)


def _expected(spec: GracedRows) -> _Expected:
    time_ms, always = F.col(_TIME_MS), F.lit(True)
    first_ms = F.least(_TIME_MS, "recount_first_ms")
    last_ms = F.greatest(_TIME_MS, "recount_last_ms")
    by_time, by_arrival = _by_time("key", "part"), _by_arrival("key", "part")
    match spec.window:
        case SlideRows(unit=FrameUnit.RANGE, back=back, ahead=int(ahead)):
            peers = Window.partitionBy("key", "part").orderBy(_TIME_MS)
            frame = peers.rangeBetween(_ALL_BEFORE if back is None else -back, ahead)
            start_ms = first_ms if back is None else F.least(time_ms, time_ms - F.lit(back))
            return _Expected(frame, start_ms, F.greatest(time_ms, time_ms + F.lit(ahead)), always)
        case SlideRows(back=back, ahead=int(ahead)):
            frame = by_time.rowsBetween(_ALL_BEFORE if back is None else -back, ahead)
            settled_ms = F.lead(_TIME_MS, ahead).over(by_time) if ahead > 0 else time_ms
            return _Expected(frame, first_ms, settled_ms, always)
        case TumbleRows(unit=FrameUnit.RANGE):
            return _Expected(by_time.rowsBetween(_ALL_BEFORE, 0), F.col("part"), time_ms, always)
        case SessionRows():
            return _Expected(by_time.rowsBetween(_ALL_BEFORE, 0), first_ms, time_ms, always)
        case CountWindows(size=size, advance=advance, short_first=short_first):
            since = F.col("number") - F.lit(advance if short_first else size)
            fires = (since >= 0) & (since % F.lit(advance) == 0)
            return _Expected(by_arrival.rowsBetween(1 - size, 0), first_ms, last_ms, fires)
        case _:
            return _Expected(by_arrival.rowsBetween(_ALL_BEFORE, 0), first_ms, last_ms, always)


def _beside(results: DataFrame, recounted: DataFrame, closings: Mapping[int, Closing]) -> DataFrame:
    """The results that are there or should be, side by side."""
    units = small_frame(
        results.sparkSession,
        [(target, *closing) for target, closing in closings.items()],
        "expected_target int, _before_ms bigint, after_ms bigint",
    )
    settles = (F.col("settled_ms") >= F.col("_before_ms")) & (
        F.col("settled_ms") < F.col("after_ms")
    )
    told = ("recount", "recount_first_ms", "recount_last_ms", "recount_start_ms", "settled_ms")
    expected = recounted.join(F.broadcast(units), settles).select(
        *_ARRIVAL, "expected_target", F.col("key").alias("expected_key"), _TIME_MS, *told
    )
    is_expected = (
        F.col("_computed_day").eqNullSafe(F.col("expected_target"))
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
    """Each new record, and whether a result of its own unit counts it."""
    of_records = results.select(*_ARRIVAL, F.col("_computed_day").alias("found_target")).distinct()
    own_target = F.unix_date("record_arrival_unit")
    each = recounted.join(of_records, list(_ARRIVAL), "left")
    found, settled_ms = F.col("found_target"), F.col("settled_ms")
    if isinstance(spec.window, CountWindows):
        # A record is in the windows that end with it or one of the next.
        holding = _by_arrival("key").rowsBetween(0, spec.window.size - 1)
        found, settled_ms = F.min(found).over(holding), F.min(settled_ms).over(holding)
    counted = F.coalesce((found == own_target).cast("bigint"), F.lit(0).cast("bigint"))
    judged = each.select(
        "_is_new",
        own_target.alias("_computed_day"),
        counted.alias("counted"),
        F.coalesce(settled_ms, F.lit(_NEVER_SETTLED_MS)).alias("last_instant_ms"),
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
