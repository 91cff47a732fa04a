"""Row windows on any DataFrame: `events.transform(row_windows(SlideRows..., of=[...]))`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.aggregates import Aggregation
from windows_pipeline.dataframe.checks import names_of, require_aggregates, require_bounded
from windows_pipeline.dataframe.inputs import Input
from windows_pipeline.engine.row_kernel import result_column
from windows_pipeline.engine.row_time_shards import row_shard_length_ms, rows_in_time_shards
from windows_pipeline.engine.rows import evaluate_rows
from windows_pipeline.engine.spark_frames import evaluate_in_spark, spark_serves
from windows_pipeline.engine.time_shards import TIME_SHARD
from windows_pipeline.windows.row_bounds import FrameUnit
from windows_pipeline.windows.row_validator import require_apart, require_fitting
from windows_pipeline.windows.row_windows import RowWindow, SessionRows, SlideRows, TumbleRows

_RECORD = "record"


def row_windows(
    windows: RowWindow | Sequence[RowWindow],
    *,
    of: Sequence[Aggregation] | Mapping[str, Sequence[Aggregation]],
    by: str | Sequence[str] = (),
    arrival: str | Sequence[str] = (),
) -> Callable[[DataFrame], DataFrame]:
    """A result beside each row, of the rows around it (rule F2): for `DataFrame.transform`.

    Args:
        windows: `SlideRows`, `TumbleRows` or `SessionRows`; or several of them, each with an
            alias.
        of: What to compute, from `windows_pipeline.aggregates`; of several windows, by alias.
        by: The column or columns of the key; nulls are a value (rule A6). None of them for
            windows over all rows.
        arrival: The column or columns that order arrival within a key, each value once: it
            decides between rows of equal times, and alone where windows go by arrival. Frames
            by time do not ask for it: there, rows of equal times are peers.

    Returns:
        Of a DataFrame, its rows with all their columns, in no order. Then for each window: of
        tumbling windows and sessions by time, where there is an alias, a column of that name
        with `start` and, of tumbling ones, `end` (a struct, of the time's type; `w.start`);
        and the aggregates. A time's finer parts than milliseconds are cut off.

    Raises:
        ValueError: A window that the columns do not serve, a name that is there already, or a
            streaming DataFrame (rule F3). When Spark runs it: a time is out of range.
        SparkRuntimeException: When Spark runs it: a time is null (rule A6); or of a frame without
            a start a sum of integers does not fit a bigint (rule G2).
        ArithmeticError: When Spark runs it: of others, a sum does not fit its type (rule G2).
    """
    wanted = _wanted(windows, of)
    keys, order = names_of(by, "by"), names_of(arrival, "arrival")

    def transform(events: DataFrame) -> DataFrame:
        for window in wanted:
            _refuse_stream(events, window)
        steps = (partial(_beside, *each, keys, order) for each in wanted.items())
        return reduce(lambda rows, step: step(rows), steps, events)

    return transform


def _wanted(
    windows: RowWindow | Sequence[RowWindow],
    of: Sequence[Aggregation] | Mapping[str, Sequence[Aggregation]],
) -> dict[RowWindow, Sequence[Aggregation]]:
    """What is computed of each window."""
    several = list(windows) if isinstance(windows, Sequence) else [windows]
    for window in several:
        if not isinstance(window, RowWindow):
            raise ValueError(
                f"windows: {window!r} is none; take SlideRows, TumbleRows, SessionRows"
            )
    require_apart(several)
    for each in of.values() if isinstance(of, Mapping) else [of]:
        require_aggregates(each)
    if not isinstance(of, Mapping):
        if len(several) > 1:
            raise ValueError("of: there are several windows; pass a dict, by their aliases")
        return {several[0]: of}
    names = [window.name for window in several]
    unknown = [name for name in of if name not in names]
    if unknown:
        raise ValueError(f"of: {unknown[0]!r} is no window's alias; there are {names}")
    return {window: of.get(window.name or "", []) for window in several}


def _beside(
    window: RowWindow,
    of: Sequence[Aggregation],
    by: Sequence[str],
    arrival: Sequence[str],
    events: DataFrame,
) -> DataFrame:
    """The rows with one window's results beside them."""
    names = [one.result_name for one in of]
    require_fitting(window, events.columns, by, arrival, names)
    own = Input(events, by, window.time_column, of)
    whole = F.struct(*(F.col(f"`{name}`") for name in events.columns)).alias(_RECORD)
    orders = {f"arrival_{place}": name for place, name in enumerate(arrival)}
    rows = own.records(whole, *(F.col(name).alias(order) for order, name in orders.items()))
    answered = _answered(window, own, rows, list(orders))
    results = (F.col(result_column(place)).alias(name) for place, name in enumerate(names))
    return answered.select(f"{_RECORD}.*", *_bounds(window, own), *results)


def _answered(window: RowWindow, own: Input, rows: DataFrame, arrival: Sequence[str]) -> DataFrame:
    """Each row as one column, with its results by their places."""
    aggregates, keys = own.aggregates, own.keys
    if isinstance(window, SlideRows) and spark_serves(window, rows, aggregates):
        return evaluate_in_spark(rows, window, keys, aggregates, arrival, [_RECORD])
    length_ms = row_shard_length_ms(window)
    if length_ms is not None:
        rows = rows_in_time_shards(rows, window, length_ms)
        keys = [*keys, TIME_SHARD]
    return evaluate_rows(rows, {0: window}, keys, aggregates, arrival, [_RECORD])


def _bounds(window: RowWindow, own: Input) -> list[Column]:
    """The window's start and end, under its alias."""
    start, end = own.instant("_window_start_ms"), own.instant("_window_end_ms")
    match window:
        case TumbleRows(unit=FrameUnit.RANGE, name=str(name)):
            return [F.struct(start.alias("start"), end.alias("end")).alias(name)]
        case SessionRows(name=str(name)):
            return [F.struct(start.alias("start")).alias(name)]
        case _:
            return []


def _refuse_stream(events: DataFrame, window: RowWindow) -> None:
    """Refuses a streaming DataFrame (rule F3)."""
    if not isinstance(events, DataFrame):
        require_bounded(events)
    if not events.isStreaming:
        return
    if isinstance(window, SlideRows) and window.ahead is None:
        raise ValueError(
            f"{window.label}: following without a bound has no result on a stream, which does "
            "not end; bound it"
        )
    raise ValueError(
        f"{window.label}: row windows take no streaming DataFrame; write its micro-batches to a "
        "table with foreachBatch, and read that"
    )
