"""The builder of FLIP-11's group windows, by time or by rows, and what computes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windows_pipeline.aggregates import Aggregation
from windows_pipeline.dataframe.bound import Bind, Result
from windows_pipeline.dataframe.checks import (
    NO_KEYS,
    refuse_verb,
    require_aggregates,
    require_bounded,
    require_column,
    require_computable,
    require_names,
)
from windows_pipeline.dataframe.inputs import Arrival, Input
from windows_pipeline.dataframe.names import quoted, require_once, unquoted
from windows_pipeline.dataframe.windows import Stream, aggregate_streams
from windows_pipeline.engine.counts import evaluate_counts
from windows_pipeline.windows import CountWindows, GroupWindow, SessionWindows


@dataclass(frozen=True, slots=True)
class GroupWindowed(Generic[Result]):
    """Rows in windows to group by (rule F1); made by `windowed` and `windows`.

    All rows are on time and every window is a result, as in Flink's batch mode; what of rows
    does not fill a window at the end is none.

    Each verb returns a new builder; where one is called twice, the last call counts. `agg` is
    the end: of `windowed(events, ...)` it gives a DataFrame, of `windows(...)` a function for
    `DataFrame.transform`.

    Attributes:
        window: The windows, with an alias.
        bind: Makes the result at the end.
        keys: The key's columns.
        order: The columns that order arrival, of windows by rows; none where the window's `on`
            names it.
    """

    window: GroupWindow
    bind: Bind[Result] = field(repr=False)
    keys: tuple[str, ...] = ()
    order: tuple[str, ...] = ()

    def by(self, *columns: str) -> GroupWindowed[Result]:
        """Names the key: each value of it has windows of its own.

        Args:
            columns: The key's columns; nulls are a value (rule A6), and a point in a name goes
                in backticks. None of them, or no `by`, for windows over all rows.

        Raises:
            ValueError: What is no name.
        """
        require_names("by", columns)
        return replace(self, keys=columns)

    def event_time(self, column: str) -> GroupWindowed[Result]:
        """Names the time that windows go by, as FLIP-11's `on` does.

        Args:
            column: The event's time or, for windows in processing time, that of its ingest: a
                timestamp (finer parts than milliseconds are cut off), or a bigint or int of
                milliseconds.

        Raises:
            ValueError: What is no name, or windows by rows.
        """
        require_names("event_time", [column])
        if isinstance(self.window.windows, CountWindows):
            raise ValueError(
                "event_time: windows of rows(...) go by the order of arrival; name it with "
                f".arrival({column!r})"
            )
        return replace(self, window=self.window.on(column))

    def arrival(self, *columns: str) -> GroupWindowed[Result]:
        """Says in which order rows came: what windows by rows go by, as FLIP-11's `on` does.

        Args:
            columns: What orders the rows of a key, of any type that sorts; each combination of
                values once.

        Raises:
            ValueError: What is no name, or windows by time.
        """
        require_names("arrival", columns)
        if not isinstance(self.window.windows, CountWindows):
            raise ValueError(
                "arrival: group windows by time take every row as on time; leave it out, or use "
                "TimeWindows or SessionWindows, of which late() tells"
            )
        return replace(self, order=columns)

    def agg(self, *aggregates: Aggregation) -> Result:
        """A row for each window of each key.

        Args:
            aggregates: What to compute, such as `count()` and `sum_("amount")`. Of windows by
                rows `first`, `last` and the like go by arrival.

        Returns:
            Rows in no order: the key's columns; a column of the alias's name, a struct of
            `start` and `end`, so that `select("w.start")` takes one; and the aggregates. Of
            windows by time both are of the time's type, the end does not belong to the window,
            and a session's is its last row and the gap. Of windows by rows they are what orders
            arrival, of the first and the last row, both within.

        Raises:
            ValueError: No alias, one that is a column's name, no time or order of arrival, no
                such column, one of no fitting type, two results of one name, or a streaming
                DataFrame (rule F3).
            ArithmeticError: When Spark runs it: a sum does not fit its type (rule G2).
            SparkRuntimeException: When Spark runs it: a time or what orders arrival is null, or
                the latter comes twice.
        """
        require_aggregates(aggregates)
        name = self._alias()
        on = self._on()
        return self.bind(lambda events: self._grouped(events, name, on, aggregates))

    def _alias(self) -> str:
        if self.window.name is None:
            raise ValueError(
                "window: it has no name, which its column of bounds needs; give it one with "
                ".alias('w')"
            )
        return self.window.name

    def _on(self) -> tuple[str, ...]:
        """The columns that windows go by."""
        if self.order:
            return self.order
        if self.window.column is None:
            by_rows = isinstance(self.window.windows, CountWindows)
            what = "the order of arrival" if by_rows else "time"
            verb = ".arrival('offset')" if by_rows else ".event_time('ts')"
            raise ValueError(
                f"window: it has no column of {what}; name it with {verb} or .on('...')"
            )
        return (self.window.column,)

    def _grouped(
        self, events: DataFrame, name: str, on: Sequence[str], aggregates: Sequence[Aggregation]
    ) -> DataFrame:
        require_bounded(events)
        if name.lower() in {column.lower() for column in events.columns}:
            raise ValueError(f"alias: {name!r} hides the column of that name; choose another alias")
        for column in on:
            require_column(events, "on", column)
        for column in self.keys:
            require_column(events, "by", column)
        key_names = [unquoted(key) for key in self.keys]
        require_once("by", key_names, "name each column of the key once")
        results = [one.result_name for one in aggregates]
        fix = "rename one, as with count().alias('...')"
        require_once("aggregates", [*key_names, name, *results], fix)
        for one in aggregates:
            require_computable(events, one)
        # Under names of their own none of them is in the way of the windows' own columns.
        own = [one.alias(f"aggregate_{place}") for place, one in enumerate(aggregates)]
        match self.window.windows:
            case CountWindows() as windows:
                found = _count_windows(events, windows, self.keys, Arrival(tuple(on)), own)
                bounds = ("first_offset", "last_offset")
            case windows:
                stream = Stream(events, self.keys, on[0], own)
                found = aggregate_streams(windows, [stream])
                is_session = isinstance(windows, SessionWindows)
                bounds = ("window_start", "session_timeout" if is_session else "window_end")
        start, end = (
            F.col(bound).alias(part) for bound, part in zip(bounds, ("start", "end"), strict=True)
        )
        return found.select(
            *(F.col(quoted(key)) for key in key_names),
            F.struct(start, end).alias(name),
            *(
                F.col(each.result_name).alias(result)
                for each, result in zip(own, results, strict=True)
            ),
        )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Says what to do in place of a verb of windows that close."""
            others = "use TimeWindows or SessionWindows"
            advice = {
                "final": "every window is final; call agg",
                "late": f"no row is late in group windows; for grace and lateness {others}",
                "firings": f"each window has one result; for firings {others}",
                "process": f"each window has one result; for firings {others}",
                "cogroup": f"a group window is of one DataFrame; for several {others}",
            }
            refuse_verb(self, name, advice)


def _count_windows(
    events: DataFrame,
    windows: CountWindows,
    keys: Sequence[str],
    arrival: Arrival,
    aggregates: Sequence[Aggregation],
) -> DataFrame:
    """Windows by rows: the key's columns, `first_offset`, `last_offset` and the aggregates."""
    own = Input(events, keys, None, aggregates, arrival)
    for column in events.select(*arrival.columns).schema:
        if isinstance(column.dataType, NO_KEYS):
            raise ValueError(
                f"on: {column.name!r} is of type {column.dataType.simpleString()}, which has no "
                "order; name a column of numbers, text, times or a struct of these"
            )
    found = evaluate_counts(own.records(), {0: windows}, own.keys, own.aggregates)
    named = [F.col(key).alias(name) for key, name in zip(own.keys, own.key_names, strict=True)]
    return found.select(
        *named, "first_offset", "last_offset", *(F.col(one.name) for one in own.aggregates)
    )
