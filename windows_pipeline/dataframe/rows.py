"""The builder of FLIP-11's row windows, a result beside each row, and what computes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Generic

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.aggregates import Aggregation
from windows_pipeline.dataframe.bound import Bind, Result
from windows_pipeline.dataframe.checks import (
    refuse_verb,
    require_aggregates,
    require_bounded,
    require_names,
)
from windows_pipeline.dataframe.inputs import Input
from windows_pipeline.dataframe.names import unquoted
from windows_pipeline.engine.row_kernel import result_column
from windows_pipeline.engine.row_time_shards import row_shard_length_ms, rows_in_time_shards
from windows_pipeline.engine.rows import evaluate_rows
from windows_pipeline.engine.spark_frames import evaluate_in_spark, spark_serves
from windows_pipeline.engine.time_shards import TIME_SHARD
from windows_pipeline.windows.frames.bounds import FrameUnit
from windows_pipeline.windows.frames.row_windows import (
    RowWindow,
    SessionRows,
    SlideRows,
    TumbleRows,
)
from windows_pipeline.windows.frames.validator import require_distinct_aliases, require_fitting

_RECORD = "record"


@dataclass(frozen=True, slots=True)
class RowWindowed(Generic[Result]):
    """Rows with a window around each (rule F2); made by `windowed` and `windows`.

    Each verb returns a new builder; where one is called twice, the last call counts. `agg` is
    the end: of `windowed(events, ...)` it gives a DataFrame, of `windows(...)` a function for
    `DataFrame.transform`.

    Attributes:
        window: The windows.
        bind: Makes the result at the end.
        keys: The key's columns.
        order: The columns that order arrival.
        others: Further windows of the same rows, each with its aggregates.
    """

    window: RowWindow
    bind: Bind[Result] = field(repr=False)
    keys: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    others: tuple[tuple[RowWindow, tuple[Aggregation, ...]], ...] = ()

    def by(self, *columns: str) -> RowWindowed[Result]:
        """Names the key: a window holds rows of one value of it.

        Args:
            columns: The key's columns; nulls are a value (rule A6). None of them, or no `by`,
                for windows over all rows.

        Raises:
            ValueError: What is no name.
        """
        require_names("by", columns)
        return replace(self, keys=columns)

    def event_time(self, column: str) -> RowWindowed[Result]:
        """Names the time that windows go by, as FLIP-11's `on` does.

        Args:
            column: The event's time or, for windows by processing time, that of its ingest: a
                timestamp (finer parts than milliseconds are cut off), or a bigint or int of
                milliseconds.

        Raises:
            ValueError: What is no name.
        """
        require_names("event_time", [column])
        return replace(self, window=self.window.on(column))

    def beside(self, window: RowWindow, *aggregates: Aggregation) -> RowWindowed[Result]:
        """Adds another window of each row, with aggregates of its own.

        Key and arrival are those of this builder; the first window's aggregates are those of
        `agg` at the end. Each window is a shuffle.

        Args:
            window: The other window, with `on` where it goes by time. Each of several windows
                has an alias.
            aggregates: What to compute of it.

        Raises:
            ValueError: What is no row window, or no aggregate.
        """
        if not isinstance(window, RowWindow):
            raise ValueError(
                f"beside: window must be SlideRows, TumbleRows or SessionRows, not {window!r}; "
                "take one from windows_pipeline.flip11"
            )
        require_aggregates(aggregates)
        return replace(self, others=(*self.others, (window, aggregates)))

    def arrival(self, *columns: str) -> RowWindowed[Result]:
        """Says in which order rows came.

        It decides between rows of equal times, and alone where windows go by arrival. Frames by
        time do not ask for it: there, rows of equal times are peers.

        Args:
            columns: What orders arrival within a key, each combination of values once.

        Raises:
            ValueError: What is no name.
        """
        require_names("arrival", columns)
        return replace(self, order=columns)

    def agg(self, *aggregates: Aggregation) -> Result:
        """Each row with aggregates of its window beside it.

        Args:
            aggregates: What to compute, such as `count()` and `sum_("amount")`.

        Returns:
            The rows with all their columns, in no order; of tumbling windows and sessions by
            time, where there is an alias, a column of that name with `start` and, of tumbling
            ones, `end` (a struct, of the time's type; `w.start`); and the aggregates; then the
            same of each window that `beside` added.

        Raises:
            ValueError: A window that the columns do not serve, a name that is there already,
                several windows without an alias each, or a streaming DataFrame (rule F3). When
                Spark runs it: a time is out of range.
            SparkRuntimeException: When Spark runs it: a time is null (rule A6); or of a frame
                without a start a sum of integers does not fit a bigint (rule G2).
            ArithmeticError: When Spark runs it: of others, a sum does not fit its type (rule
                G2).
        """
        require_aggregates(aggregates)
        wanted = ((self.window, aggregates), *self.others)
        windows = [window for window, _ in wanted]
        require_distinct_aliases(windows)

        def transform(events: DataFrame) -> DataFrame:
            require_no_stream(events, windows)
            steps = (partial(_beside, *each, self.keys, self.order) for each in wanted)
            return reduce(lambda rows, step: step(rows), steps, events)

        return self.bind(transform)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Says what to do in place of a verb of windows that close."""
            whole = "every row has one result, which is final; call agg"
            others = "for firings use TimeWindows, SlidingWindows or SessionWindows"
            advice = {
                "final": whole,
                "late": "no row is late in row windows; leave it out",
                "firings": others,
                "process": others,
                "cogroup": "a row window is of one DataFrame; union them before",
            }
            refuse_verb(self, name, advice)


def _beside(
    window: RowWindow,
    aggregates: Sequence[Aggregation],
    by: Sequence[str],
    arrival: Sequence[str],
    events: DataFrame,
) -> DataFrame:
    """The rows with one window's results beside them."""
    names = [one.result_name for one in aggregates]
    plain = window if window.time_column is None else window.on(unquoted(window.time_column))
    require_fitting(plain, events.columns, _unquoted(by), _unquoted(arrival), names)
    own = Input(events, by, window.time_column, aggregates)
    whole = F.struct(*(F.col(f"`{name}`") for name in events.columns)).alias(_RECORD)
    orders = {f"arrival_{place}": name for place, name in enumerate(arrival)}
    rows = own.records(whole, *(F.col(name).alias(order) for order, name in orders.items()))
    answered = _answered(window, own, rows, list(orders))
    results = (F.col(result_column(place)).alias(name) for place, name in enumerate(names))
    return answered.select(f"{_RECORD}.*", *_bounds(window, own), *results)


def _unquoted(names: Sequence[str]) -> list[str]:
    return [unquoted(name) for name in names]


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


def require_no_stream(events: DataFrame, windows: Sequence[RowWindow]) -> None:
    """Refuses what is no DataFrame, and a streaming one (rule F3).

    Raises:
        ValueError: Says what to do instead.
    """
    if not isinstance(events, DataFrame) or not events.isStreaming:
        require_bounded(events)
        return
    for window in windows:
        if isinstance(window, SlideRows) and window.ahead is None:
            raise ValueError(
                f"{window.label}: following without a bound has no result on a stream, which does "
                "not end; bound it"
            )
    raise ValueError(
        f"{windows[0].label}: row windows take no streaming DataFrame; write its micro-batches to "
        "a table with foreachBatch, and read that"
    )
