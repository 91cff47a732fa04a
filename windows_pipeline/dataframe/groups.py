"""Builds and computes FLIP-11's group windows, by time or by rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.aggregates import Aggregation
from windows_pipeline.dataframe.arguments import (
    NO_KEYS,
    OnError,
    refuse_verb,
    require_aggregates,
    require_bounded,
    require_column,
    require_computable,
    require_names,
    require_on_error,
)
from windows_pipeline.dataframe.inputs import ArrivalOrder, Input
from windows_pipeline.dataframe.names import quoted, require_once, unquoted
from windows_pipeline.dataframe.results import Result, ResultOf
from windows_pipeline.dataframe.windows import WindowedStream, aggregate_streams
from windows_pipeline.engine.counts import evaluate_counts
from windows_pipeline.windows import CountWindows, GroupWindow, SessionWindows


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """The arguments of the verbs called so far.

    Attributes:
        window: The windows, with an alias.
        by: The key's columns.
        arrival: For windows by rows, the columns that order arrival; empty if the window's `on`
            names the column.
    """

    window: GroupWindow
    by: tuple[str, ...] = ()
    arrival: tuple[str, ...] = ()

    def require_alias(self) -> str:
        """The name of the bounds' column.

        Raises:
            ValueError: The window has no alias.
        """
        if self.window.name is None:
            raise ValueError(
                "window: must have an alias, which names the column of its bounds, but has none; "
                "add .alias('w')"
            )
        return self.window.name

    def require_order(self) -> tuple[str, ...]:
        """The column of the windows' time, or the columns that order arrival.

        Raises:
            ValueError: No column is named.
        """
        if self.arrival:
            return self.arrival
        if self.window.column is None:
            by_rows = isinstance(self.window.windows, CountWindows)
            subject = "the order of arrival" if by_rows else "time"
            verb = ".arrival('offset')" if by_rows else ".event_time('ts')"
            raise ValueError(
                f"window: must have a column of {subject}, but none is named; add {verb} or "
                ".on('...')"
            )
        return (self.window.column,)

    def grouped(
        self,
        events: DataFrame,
        name: str,
        on: Sequence[str],
        aggregates: Sequence[Aggregation],
        *,
        with_failed: bool,
    ) -> DataFrame:
        """Computes a row for each window of each key.

        Raises:
            ValueError: See `GroupWindowed.agg`.
        """
        require_bounded(events)
        if name.lower() in {column.lower() for column in events.columns}:
            raise ValueError(f"alias: {name!r} hides the column of that name; choose another alias")
        for column in on:
            require_column(events, "on", column)
        for column in self.by:
            require_column(events, "by", column)
        key_names = [unquoted(key) for key in self.by]
        require_once("by", key_names, "name each column of the key once")
        results = [one.result_name for one in aggregates]
        fix = "rename one, as with count().alias('...')"
        added = ["failed"] if with_failed else []
        require_once("aggregates", [*key_names, name, *results, *added], fix)
        for aggregation in aggregates:
            require_computable(events, aggregation)
        # Neutral names cannot collide with the columns of the windows.
        renamed = [each.alias(f"aggregate_{index}") for index, each in enumerate(aggregates)]
        match self.window.windows:
            case CountWindows() as windows:
                order = ArrivalOrder(tuple(on))
                found = _count_windows(
                    events, windows, self.by, order, renamed, with_failed=with_failed
                )
                bounds = ("first_offset", "last_offset")
            case windows:
                stream = WindowedStream(events, self.by, on[0], renamed)
                found = aggregate_streams(windows, [stream], with_failed=with_failed)
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
                for each, result in zip(renamed, results, strict=True)
            ),
            *([_with_names(results)] if with_failed else []),
        )


@dataclass(frozen=True, slots=True)
class GroupWindowed(Generic[Result]):
    """Rows grouped by windows (rule F1); made by `windowed` and `windows`.

    As in Flink's batch mode, all rows are on time and every window is a result. Rows at the end
    that do not fill a window by rows are in no window.

    Each verb returns a new builder; if a verb is called twice, the last call counts. `agg` is
    the last verb: after `windowed(events, ...)` it returns a DataFrame, after `windows(...)` a
    function for `DataFrame.transform`.

    Attributes:
        plan: The arguments of the verbs called so far.
        result_of: Returns the result for the function that computes it from records.
    """

    plan: GroupPlan
    result_of: ResultOf[Result] = field(repr=False)

    def by(self, *columns: str) -> GroupWindowed[Result]:
        """Names the key's columns; each value of the key has separate windows.

        Args:
            columns: The key's columns; null is a value (rule A6), and a name with a dot is
                written in backticks. Without columns, or without `by`, windows are over all
                rows.

        Raises:
            ValueError: A name is not a string.
        """
        require_names("by", columns)
        return replace(self, plan=replace(self.plan, by=columns))

    def event_time(self, column: str) -> GroupWindowed[Result]:
        """Names the column of the windows' time, as FLIP-11's `on` does.

        Args:
            column: The column of the event time or, for windows by processing time, of the ingest
                time: a timestamp (truncated to milliseconds), or a bigint or int of milliseconds.

        Raises:
            ValueError: The name is not a string, or the windows are by rows.
        """
        require_names("event_time", [column])
        if isinstance(self.plan.window.windows, CountWindows):
            raise ValueError(
                "event_time: windows of rows(...) follow the order of arrival; name its column "
                f"with .arrival({column!r})"
            )
        return replace(self, plan=replace(self.plan, window=self.plan.window.on(column)))

    def arrival(self, *columns: str) -> GroupWindowed[Result]:
        """Names the columns that order arrival, which windows by rows follow, as FLIP-11's `on`.

        Args:
            columns: The columns that order the rows of a key, of any type that can be sorted; each
                combination of values must be unique within a key.

        Raises:
            ValueError: A name is not a string, or the windows are by time.
        """
        require_names("arrival", columns)
        if not isinstance(self.plan.window.windows, CountWindows):
            raise ValueError(
                "arrival: group windows by time treat every row as on time; leave .arrival(...) "
                "out, or use TimeWindows or SessionWindows, which have late()"
            )
        return replace(self, plan=replace(self.plan, arrival=columns))

    def agg(self, *aggregates: Aggregation, on_error: OnError = "raise") -> Result:
        """Computes a row for each window of each key.

        Args:
            aggregates: What to compute, such as `count()` and `sum_("amount")`. For windows
                by rows, aggregates such as `first` and `last` follow the order of arrival.
            on_error: See `Windowed.agg`.

        Returns:
            Unordered rows with the key's columns; a struct named by the alias, with `start` and
            `end`, as in `select("w.start")`; and the aggregates. For windows by time, both bounds
            have the time's type and the end is exclusive; a session ends at its last row's time
            plus the gap. For windows by rows, the bounds are the arrival values of the first and
            the last row, both inclusive. With `on_error="null"` the last column is `failed`, as
            of `Windowed.agg`.

        Raises:
            ValueError: The alias is missing or is a column's name; the time or the order of
                arrival is not named; a column is missing or of a wrong type; two results have one
                name; or `events` is a streaming DataFrame (rule F3).
            ArithmeticError: When Spark runs it: a sum does not fit its type (rule G2).
            SparkRuntimeException: When Spark runs it: a time or an arrival value is null, or an
                arrival value occurs twice within a key.
        """
        require_aggregates(aggregates)
        require_on_error(on_error)
        plan = self.plan
        name = plan.require_alias()
        on = plan.require_order()
        with_failed = on_error == "null"
        return self.result_of(
            lambda events: plan.grouped(events, name, on, aggregates, with_failed=with_failed)
        )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Raises an error for a verb that only windows by event time have, with the fix."""
            others = "use TimeWindows or SessionWindows"
            advice = {
                "final": "every window is final; call agg",
                "late": f"no row is late in group windows; for grace and lateness {others}",
                "firings": f"each window has one result; for firings {others}",
                "process": f"each window has one result; for firings {others}",
                "cogroup": f"a group window reads one DataFrame; for several {others}",
            }
            refuse_verb(self, name, advice)


def _count_windows(
    events: DataFrame,
    windows: CountWindows,
    by: Sequence[str],
    arrival: ArrivalOrder,
    aggregates: Sequence[Aggregation],
    *,
    with_failed: bool,
) -> DataFrame:
    """Computes windows by rows: key, `first_offset`, `last_offset`, the aggregates, `failed`."""
    counted = Input(events, by, None, aggregates, arrival)
    for column in events.select(*arrival.columns).schema:
        if isinstance(column.dataType, NO_KEYS):
            raise ValueError(
                f"on: {column.name!r} is of type {column.dataType.simpleString()}, which has no "
                "order; name a column of numbers, text, times or a struct of these"
            )
    found = evaluate_counts(
        counted.records(),
        {0: windows},
        counted.keys,
        counted.engine_aggregates,
        with_failed=with_failed,
    )
    named = [
        F.col(key).alias(name) for key, name in zip(counted.keys, counted.key_names, strict=True)
    ]
    return found.select(
        *named,
        "first_offset",
        "last_offset",
        *(F.col(each.name) for each in counted.engine_aggregates),
        *(["failed"] if with_failed else []),
    )


def _with_names(results: Sequence[str]) -> Column:
    """The column `failed`, with the results' names in place of `aggregate_0` and so on."""
    names = F.array(*[F.lit(result) for result in results]).cast("array<string>")
    numbers = F.transform("failed", lambda neutral: F.substring_index(neutral, "_", -1).cast("int"))
    return F.transform(numbers, lambda number: F.get(names, number)).alias("failed")
