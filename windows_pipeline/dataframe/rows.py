"""Builds and computes FLIP-11's row windows, which add results to each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Generic

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.aggregates import Aggregation
from windows_pipeline.dataframe.arguments import (
    OnError,
    refuse_verb,
    require_aggregates,
    require_frame,
    require_names,
    require_on_error,
)
from windows_pipeline.dataframe.inputs import Input, with_order_of_pairs
from windows_pipeline.dataframe.names import require_unreserved, unquoted
from windows_pipeline.dataframe.results import Result, ResultOf
from windows_pipeline.engine.row_kernel import result_column
from windows_pipeline.engine.row_time_shards import rows_in_time_shards
from windows_pipeline.engine.rows import evaluate_rows
from windows_pipeline.engine.spark_frames import evaluate_in_spark, spark_serves
from windows_pipeline.windows.frames.row_windows import RowWindow
from windows_pipeline.windows.frames.validator import require_distinct_aliases, require_fitting

_RECORD, _TIME_MS = "record", "_event_time_ms"


@dataclass(frozen=True, slots=True)
class RowPlan:
    """The arguments of the verbs called so far.

    Attributes:
        window: The windows.
        by: The key's columns.
        arrival: The columns that order arrival.
        others: Further windows over the same rows, with their aggregates.
    """

    window: RowWindow
    by: tuple[str, ...] = ()
    arrival: tuple[str, ...] = ()
    others: tuple[tuple[RowWindow, tuple[Aggregation, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class RowWindowed(Generic[Result]):
    """Rows that each have a window (rule F2); made by `windowed` and `windows`.

    Each verb returns a new builder; if a verb is called twice, the last call counts. `agg` is
    the last verb: after `windowed(events, ...)` it returns a DataFrame, after `windows(...)` a
    function for `DataFrame.transform`.

    Attributes:
        plan: The arguments of the verbs called so far.
        result_of: Returns the result for the function that computes it from records.
    """

    plan: RowPlan
    result_of: ResultOf[Result] = field(repr=False)

    def by(self, *columns: str) -> RowWindowed[Result]:
        """Names the key's columns; a window contains rows with one value of the key.

        Args:
            columns: The key's columns; null is a value (rule A6). Without columns, or without
                `by`, windows are over all rows.

        Raises:
            ValueError: A name is not a string.
        """
        require_names("by", columns)
        return replace(self, plan=replace(self.plan, by=columns))

    def event_time(self, column: str) -> RowWindowed[Result]:
        """Names the column of the windows' time, as FLIP-11's `on` does.

        Args:
            column: The column of the event time or, for windows by processing time, of the ingest
                time: a timestamp (truncated to milliseconds), or a bigint or int of milliseconds.

        Raises:
            ValueError: A name is not a string.
        """
        require_names("event_time", [column])
        return replace(self, plan=replace(self.plan, window=self.plan.window.on(column)))

    def and_over(self, window: RowWindow, *aggregates: Aggregation) -> RowWindowed[Result]:
        """Adds another window of each row, with separate aggregates.

        The added window uses this builder's key and order of arrival; `agg` at the end names the
        first window's aggregates. Each window costs a shuffle.

        Args:
            window: The other window, with `on` if it is by time. Each of several windows needs
                an alias.
            aggregates: The aggregates of the added window.

        Raises:
            ValueError: `window` is no row window, or an argument is no aggregate.
        """
        if not isinstance(window, RowWindow):
            raise ValueError(
                f"and_over: window must be SlideRows, TumbleRows or SessionRows, not {window!r}; "
                "take one from windows_pipeline.flip11"
            )
        require_aggregates(aggregates)
        others = (*self.plan.others, (window, aggregates))
        return replace(self, plan=replace(self.plan, others=others))

    def arrival(self, *columns: str) -> RowWindowed[Result]:
        """Names the columns that order arrival.

        Windows by arrival follow this order; windows by rows over time use it for rows of equal
        times. Frames by time do not need it, because rows of equal times are peers there.

        Args:
            columns: The columns that order arrival within a key; each combination of values must
                be unique.

        Raises:
            ValueError: A name is not a string.
        """
        require_names("arrival", columns)
        return replace(self, plan=replace(self.plan, arrival=columns))

    def agg(self, *aggregates: Aggregation, on_error: OnError = "raise") -> Result:
        """Adds aggregates of each row's window to the row.

        Args:
            aggregates: The aggregates to compute, such as `count()` and `sum_("amount")`.
            on_error: See `Windowed.agg`.

        Returns:
            The unordered rows with all their columns and the aggregates. Before the aggregates,
            tumbling windows, sessions and frames by time with an alias add a struct of that name
            (as in `w.start`) with `start` and `end`, both of the time's type: of tumbling windows
            and frames, of a session `start` alone, of a frame those that have a bound.
            Each window that `and_over` added appends its columns in the same way. With
            `on_error="null"` the last column is `failed` (array of strings, never null), with the
            names of the aggregates of all windows of the row that can't be computed.

        Raises:
            ValueError: A column that a window needs is missing or of a wrong type, the name of an
                alias or a result is taken or begins with an underscore, one of several windows has
                no alias, or `events` is a streaming DataFrame (rule F3). When Spark runs it: a time
                is out of range.
            SparkRuntimeException: When Spark runs it: a time is null (rule A6), or a sum of
                integers over a frame without a start does not fit a bigint (rule G2).
            ArithmeticError: When Spark runs it: a sum over any other window does not fit its
                type (rule G2).
        """
        require_aggregates(aggregates)
        require_on_error(on_error)
        plan = self.plan
        wanted = ((plan.window, aggregates), *plan.others)
        windows = [window for window, _ in wanted]
        require_distinct_aliases(windows)

        def transform(events: DataFrame) -> DataFrame:
            require_no_stream(events, windows)
            fitted = partial(_with_results, by=plan.by, arrival=plan.arrival, on_error=on_error)
            rows = events
            for step, (window, of_window) in enumerate(wanted):
                rows = fitted(window, of_window, rows, is_first=step == 0)
            return rows

        return self.result_of(transform)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Raises an error for a verb that only windows by event time have, with the fix."""
            whole = "every row has one result, which is final; call agg"
            others = "for firings use TimeWindows, SlidingWindows or SessionWindows"
            advice = {
                "final": whole,
                "late": "no row is late in row windows; leave it out",
                "firings": others,
                "process": others,
                "cogroup": "a row window reads one DataFrame; union them before",
            }
            refuse_verb(self, name, advice)


def _with_results(
    window: RowWindow,
    aggregates: Sequence[Aggregation],
    events: DataFrame,
    *,
    by: Sequence[str],
    arrival: Sequence[str],
    on_error: OnError,
    is_first: bool,
) -> DataFrame:
    """Adds the results of one window to each row; the first window adds `failed`, if asked for."""
    with_failed = on_error == "null"
    failed = ["failed"] if with_failed and is_first else []
    names = [aggregation.result_name for aggregation in aggregates]
    unquoted_window = (
        window if window.time_column is None else window.on(unquoted(window.time_column))
    )
    require_fitting(
        unquoted_window, events.columns, _unquoted(by), _unquoted(arrival), [*failed, *names]
    )
    named = [] if window.name is None else [window.name]
    require_unreserved("alias", named, "choose another alias")
    require_unreserved("aggregates", names, "rename one, as with count().alias('...')")
    row_input = Input(events, by, window.time_column, aggregates)
    whole = F.struct(*(F.col(f"`{name}`") for name in events.columns)).alias(_RECORD)
    orders = {f"arrival_{index}": name for index, name in enumerate(arrival)}
    rows = row_input.records(whole, *(F.col(name).alias(order) for order, name in orders.items()))
    bounds = _bounds(window, row_input)
    kept_of_rows = [_RECORD, _TIME_MS] if bounds else [_RECORD]
    evaluated = _evaluate(
        window, row_input, rows, list(orders), kept_of_rows, with_failed=with_failed
    )
    results = (F.col(result_column(index)).alias(name) for index, name in enumerate(names))
    kept, added = [F.col(f"{_RECORD}.*")], []
    if with_failed and is_first:
        added = [F.col("failed")]
    elif with_failed:
        kept = [F.col(f"{_RECORD}.`{name}`") for name in events.columns if name != "failed"]
        added = [F.concat(f"{_RECORD}.failed", "failed").alias("failed")]
    return evaluated.select(*kept, *bounds, *results, *added)


def _unquoted(names: Sequence[str]) -> list[str]:
    return [unquoted(name) for name in names]


def _evaluate(
    window: RowWindow,
    row_input: Input,
    rows: DataFrame,
    arrival: Sequence[str],
    keep: Sequence[str],
    *,
    with_failed: bool,
) -> DataFrame:
    """The columns to keep of each row, with its results in columns by index."""
    aggregates, keys = row_input.engine_aggregates, row_input.keys
    if spark_serves(window, rows, aggregates):
        return evaluate_in_spark(
            rows, window, keys, aggregates, arrival, keep, with_failed=with_failed
        )
    rows = rows_in_time_shards(with_order_of_pairs(rows, aggregates, arrival), window)
    return evaluate_rows(
        rows, {0: window}, keys, aggregates, arrival, keep, with_failed=with_failed
    )


def _bounds(window: RowWindow, row_input: Input) -> list[Column]:
    """The window's bounds, as a struct named by its alias; none without an alias."""
    bounds = {name: row_input.instant(f"_window_{name}_ms") for name in window.bounds}
    for name, distance_ms in window.distances_ms.items():
        bounds[name] = row_input.instant(_TIME_MS, distance_ms)
    if window.name is None or not bounds:
        return []
    return [F.struct(*(of.alias(name) for name, of in bounds.items())).alias(window.name)]


def require_no_stream(events: DataFrame, windows: Sequence[RowWindow]) -> None:
    """Requires a batch DataFrame, as row windows need all rows (rule F3).

    Raises:
        ValueError: `events` is no DataFrame, or is a streaming DataFrame.
    """
    require_frame(events)
    if not events.isStreaming:
        return
    for window in windows:
        if window.never_ends:
            raise ValueError(
                f"{window.label}: following without a bound has no result on a stream, which "
                "never ends; bound it"
            )
    raise ValueError(
        f"{windows[0].label}: row windows take no streaming DataFrame; write its micro-batches to "
        "a table with foreachBatch, and read the table"
    )
