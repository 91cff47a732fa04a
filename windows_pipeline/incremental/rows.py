"""Results a row of the records that a pipeline's arrival units bring (rules F1, F2, F5).

One pass finds the rows of all units that are asked for: a row that is final never changes, so
each is of the one unit whose close times enclose its window's end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.aggregates import Aggregate, Function
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.engine.row_kernel import NUMBER, ROWS_THERE, result_column
from windows_pipeline.engine.row_time_shards import row_slice_length_ms, rows_in_slices
from windows_pipeline.engine.rows import evaluate_rows
from windows_pipeline.engine.time_shards import SLICE, within_a_day
from windows_pipeline.kernels.time import NEVER_MS
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

_TIME_MS = "_event_time_ms"
_OF_RECORDS = {
    "record_count": Function.COUNT,
    "_first_event_time_ms": Function.MIN,
    "_last_event_time_ms": Function.MAX,
}
"""What each result says of its records beside the aggregates."""


def reach_of_rows_ms(spec: GracedRows) -> int | None:
    """How far before a close time records lie that rows final after it look at; None: anywhere."""
    match spec.window:
        case SlideRows(unit=FrameUnit.RANGE, back=int(back), ahead=int(ahead)):
            return max(back, 0) + max(ahead, 0)
        case TumbleRows(unit=FrameUnit.RANGE, size=size_ms):
            return size_ms
        case _:
            return None


def unit_rows(
    in_time: DataFrame,
    spec: GracedRows,
    aggregates: Sequence[Aggregate],
    closings: Mapping[int, Closing],
) -> DataFrame:
    """Computes the rows that became final with each target unit.

    Args:
        in_time: Records, each once, none of them late: `key`, `event_time`, `_event_time_ms`,
            `arrival_unit`, `source_partition`, `offset` and what the aggregates take.
        spec: The windows.
        aggregates: What to compute.
        closings: By target, the close times before and after it.

    Returns:
        The columns that `evaluation.evaluate` gives of windows, all closed, and those that name
        the row, in no order.
    """
    found = _answered(_that_count(in_time, spec, closings), spec, aggregates)
    start_ms, end_ms = _bounds_ms(spec)
    final = _of_targets(
        found.where(_has_result(spec)).withColumns(
            {"_window_start_ms": start_ms, "_window_end_ms": end_ms}
        ),
        closings,
    )
    results = (
        F.col(result_column(place)).alias(one.name)
        for place, one in enumerate(aggregates, len(_OF_RECORDS))
    )
    bounds = ("_window_start_ms", "_window_end_ms")
    return final.select(
        "_computed_day",
        "key",
        *bounds,
        *_OF_RECORDS,
        *results,
        F.lit(True).alias("closed"),
        *ROW_KEY,
    )


def _that_count(in_time: DataFrame, spec: GracedRows, closings: Mapping[int, Closing]) -> DataFrame:
    """Without those after all that closes, which no final row sees; but they count by arrival."""
    if spec.by_arrival:
        return in_time
    after_ms = max((closing.after_ms for closing in closings.values()), default=NEVER_MS)
    return in_time.where(F.col(_TIME_MS) < F.lit(after_ms))


def _answered(records: DataFrame, spec: GracedRows, aggregates: Sequence[Aggregate]) -> DataFrame:
    """Each record with what its window says of its records, and the aggregates after these."""
    # By names of the engine's own: a value's may be any.
    values = {one.column: f"_value_{one.column}" for one in aggregates}
    of_records = [Aggregate(name, how, _TIME_MS) for name, how in _OF_RECORDS.items()]
    wanted = [*of_records, *(replace(one, column=values[one.column]) for one in aggregates)]
    rows = records.select(
        F.lit(0).alias("_computed_day"),
        "key",
        _TIME_MS,
        "event_time",
        F.col("arrival_unit").alias("record_arrival_unit"),
        "source_partition",
        "offset",
        *(F.col(name).alias(own) for name, own in values.items()),
    )
    frame, keys = spec.frame, ["key"]
    length_ms = within_a_day(row_slice_length_ms(frame))
    if length_ms is not None:
        rows, keys = rows_in_slices(rows, frame, length_ms), ["key", SLICE]
    keep = ["key", _TIME_MS, *ROW_KEY]
    numbers = length_ms is None
    found = evaluate_rows(rows, {0: frame}, keys, wanted, ROW_KEY[1:], keep, tells_number=numbers)
    return found.withColumnsRenamed(
        {result_column(place): name for place, name in enumerate(_OF_RECORDS)}
    )


def _has_result(spec: GracedRows) -> Column:
    """Whether a row has a result: all its followers are there, or it fills a count window."""
    match spec.window:
        case SlideRows(unit=FrameUnit.ROWS, ahead=int(ahead)) if ahead > 0:
            return F.col(NUMBER) + F.lit(ahead) <= F.col(ROWS_THERE)
        case CountWindows(size=size, advance=advance, short_first=short_first):
            beyond_first = F.col(NUMBER) - F.lit(advance if short_first else size)
            return (beyond_first >= 0) & (beyond_first % F.lit(advance) == 0)
        case _:
            return F.lit(True)


def _bounds_ms(spec: GracedRows) -> tuple[Column, Column]:
    """Where a row's window starts, and the last instant that its result hangs on."""
    time_ms, first_ms = F.col(_TIME_MS), F.least(_TIME_MS, "_first_event_time_ms")
    match spec.window:
        case SlideRows(unit=FrameUnit.RANGE, back=back, ahead=int(ahead)):
            start_ms = first_ms if back is None else time_ms - F.lit(max(back, 0))
            return start_ms, time_ms + F.lit(max(ahead, 0))
        case TumbleRows(unit=FrameUnit.RANGE) | SessionRows():
            return F.col("_window_start_ms"), time_ms
        case _:
            return first_ms, F.greatest(_TIME_MS, "_last_event_time_ms")


def _of_targets(rows: DataFrame, closings: Mapping[int, Closing]) -> DataFrame:
    """The rows whose window ends between the close times of a target, with that target."""
    units = small_frame(
        rows.sparkSession,
        [(target, *closing) for target, closing in closings.items()],
        "_computed_day int, _before_ms bigint, after_ms bigint",
    )
    closed = (F.col("_window_end_ms") >= F.col("_before_ms")) & (
        F.col("_window_end_ms") < F.col("after_ms")
    )
    return rows.join(F.broadcast(units), closed)
