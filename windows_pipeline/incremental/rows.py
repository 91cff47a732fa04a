"""Row windows of a pipeline: a result per record, in the arrival unit that makes it final.

Rules F1, F2 and F5.

One pass computes the rows of all computed days. A final row never changes, so it belongs to the
one day whose close times enclose the end of its window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.aggregates import FUNCTIONS, Aggregate
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.engine.lateness import is_late
from windows_pipeline.engine.record_shards import in_record_shards
from windows_pipeline.engine.row_kernel import GROUP_ROWS, NUMBER, result_column
from windows_pipeline.engine.row_time_shards import rows_in_time_shards
from windows_pipeline.engine.rows import evaluate_rows
from windows_pipeline.engine.running_shards import in_running_shards
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.kernels.windows.chunk import Closing
from windows_pipeline.tuning import Tuning
from windows_pipeline.windows import ROW_KEY, GracedRows, RowWindow

_TIME_MS = "_event_time_ms"
_OF_RECORDS = {
    "record_count": "count",
    "_first_event_time_ms": "min",
    "_last_event_time_ms": "max",
}
"""The columns that each result has besides its aggregates."""


def arrival_unit_rows(
    records: DataFrame,
    spec: GracedRows,
    aggregates: Sequence[Aggregate],
    closings: Mapping[int, Closing],
    *,
    only_closed: bool,
    tuning: Tuning,
) -> DataFrame:
    """Computes the rows that became final with each computed day.

    Args:
        records: Records, each once: `key`, `event_time`, `_event_time_ms`, `_close_time_ms`,
            `arrival_unit`, `source_partition`, `offset` and the aggregates' columns.
        spec: The windows.
        aggregates: What to compute.
        closings: The close times before and after each computed day, by day number.
        only_closed: Means nothing here, as rows are always final.
        tuning: How finely records are cut into shards.

    Returns:
        The columns that `engine.windows.evaluate_windows` returns for windows, all closed, and the
        columns that name the row. In no order.
    """
    del only_closed
    in_time = _up_to_last_close(records.where(~is_late(spec)), spec, closings)
    found = _with_results(in_time, spec, aggregates, tuning)
    start_ms, end_ms = _bounds_ms(spec)
    final = _final_in(
        found.where(_has_result(spec)).withColumns(
            {"_window_start_ms": start_ms, "_window_end_ms": end_ms}
        ),
        closings,
    )
    results = (
        F.col(result_column(index)).alias(aggregate.name)
        for index, aggregate in enumerate(aggregates, len(_OF_RECORDS))
    )
    bounds = ("_window_start_ms", "_window_end_ms")
    return final.select(
        "_computed_day",
        "key",
        *bounds,
        *_OF_RECORDS,
        *results,
        "failed",
        F.lit(True).alias("closed"),
        *ROW_KEY,
    )


def _up_to_last_close(
    in_time: DataFrame, spec: GracedRows, closings: Mapping[int, Closing]
) -> DataFrame:
    """Filters out records after the last close time, which no final row can hold.

    Windows by arrival keep them: they take part in numbering the records.
    """
    if spec.by_arrival:
        return in_time
    after_ms = max((closing.after_ms for closing in closings.values()), default=NEVER_MS)
    return in_time.where(F.col(_TIME_MS) < F.lit(after_ms))


def _with_results(
    records: DataFrame, spec: GracedRows, aggregates: Sequence[Aggregate], tuning: Tuning
) -> DataFrame:
    """Adds to each record the columns of `_OF_RECORDS` and the aggregates of its window."""
    # Prefixed, because a value column may have any name.
    values = {aggregate.column: f"_value_{aggregate.column}" for aggregate in aggregates}
    of_records = [
        Aggregate(name, FUNCTIONS[function], _TIME_MS) for name, function in _OF_RECORDS.items()
    ]
    of_values = (replace(each, column=values[each.column]) for each in aggregates)
    wanted = [*of_records, *of_values]
    rows = records.select(
        F.lit(0).alias("_computed_day"),
        "key",
        _TIME_MS,
        "event_time",
        F.col("arrival_unit").alias("record_arrival_unit"),
        "source_partition",
        "offset",
        *(F.col(name).alias(prefixed) for name, prefixed in values.items()),
    )
    frame, *others = spec.outer
    # Of two frames one is by rows, which time shards would cut.
    in_shards = rows if others else rows_in_time_shards(rows, frame, tuning, of_days=True)
    is_whole = in_shards is rows
    frames = [spec.frames_of(each.over) for each in wanted]
    running = in_running_shards(rows, spec, wanted, [_TIME_MS, *ROW_KEY], tuning)
    if running is not None:
        in_shards = running.rows
    elif is_whole:
        in_shards = in_record_shards(rows, spec, tuning)
    found = evaluate_rows(
        in_shards,
        {0: frame},
        ["key"],
        wanted,
        ROW_KEY[1:],
        ["key", _TIME_MS, *ROW_KEY],
        frames=frames,
        with_numbers=is_whole,
        with_failed=True,
        earlier=None if running is None else running.earlier,
    )
    return found.withColumnsRenamed(
        {result_column(index): name for index, name in enumerate(_OF_RECORDS)}
    )


def _has_result(spec: GracedRows) -> Column:
    """Whether a row has a result: all its followers have arrived, or it fills a count window."""
    has_result = F.lit(True)
    followers = max(frame.followers for frame in spec.outer)
    if followers:
        has_result &= F.col(NUMBER) + F.lit(followers) <= F.col(GROUP_ROWS)
    results = spec.window.result_rows
    if max(results.first, results.every) > 1:
        beyond_first = F.col(NUMBER) - F.lit(results.first)
        has_result &= (beyond_first >= 0) & (beyond_first % F.lit(results.every) == 0)
    return has_result


def _bounds_ms(spec: GracedRows) -> tuple[Column, Column]:
    """The start of a row's window, and the last instant that its result depends on, in ms."""
    starts_ms, ends_ms = zip(*map(_bounds_of, spec.outer), strict=True)
    if len(starts_ms) == 1:
        return starts_ms[0], ends_ms[0]
    return F.least(*starts_ms), F.greatest(*ends_ms)


def _bounds_of(window: RowWindow) -> tuple[Column, Column]:
    """The bounds of a window that is a part of a row's window."""
    time_ms, first_ms = F.col(_TIME_MS), F.least(_TIME_MS, "_first_event_time_ms")
    if window.bounds:
        return F.col("_window_start_ms"), time_ms
    if window.bounds_ms is None:
        return first_ms, F.greatest(_TIME_MS, "_last_event_time_ms")
    back_ms, ahead_ms = window.bounds_ms
    start_ms = first_ms if back_ms is None else time_ms - F.lit(back_ms)
    return start_ms, time_ms + F.lit(ahead_ms)


def _final_in(rows: DataFrame, closings: Mapping[int, Closing]) -> DataFrame:
    """The rows whose window ends between the close times of a computed day, with that day."""
    arrival_units = small_frame(
        rows.sparkSession,
        [(day, *closing) for day, closing in closings.items()],
        "_computed_day int, _before_ms bigint, _after_ms bigint",
    )
    closed = (F.col("_window_end_ms") >= F.col("_before_ms")) & (
        F.col("_window_end_ms") < F.col("_after_ms")
    )
    return rows.join(F.broadcast(arrival_units), closed)
