"""Builds and computes FLIP-11's group windows, by time or by rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, NamedTuple

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
    require_names,
    require_on_error,
)
from windows_pipeline.dataframe.inputs import ArrivalOrder, Input
from windows_pipeline.dataframe.names import require_results, require_unreserved
from windows_pipeline.dataframe.results import Result, ResultOf
from windows_pipeline.dataframe.windows import windows_of_inputs
from windows_pipeline.engine.counts import evaluate_counts
from windows_pipeline.windows import CountWindows, GroupWindow, SessionWindows, TimeWindows


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
            by_rows = self.window.by_rows
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
        by_rows = self.window.by_rows
        grouped = Input(
            events,
            self.by,
            None if by_rows else on[0],
            aggregates,
            ArrivalOrder(tuple(on)) if by_rows else None,
        )
        added = ["failed"] if with_failed else []
        require_unreserved("alias", [name], "choose another alias")
        require_results(grouped.key_names, [name, *added], grouped.engine_aggregates)
        windows = self.window.windows
        found, start, end = _COMPUTED[type(windows)](grouped, windows, with_failed=with_failed)
        return found.select(
            *(
                F.col(key).alias(of)
                for key, of in zip(grouped.keys, grouped.key_names, strict=True)
            ),
            F.struct(start.alias("start"), end.alias("end")).alias(name),
            *(F.col(each.result_column).alias(each.name) for each in grouped.engine_aggregates),
            *added,
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
        if self.plan.window.by_rows:
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
        if not self.plan.window.by_rows:
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
                arrival is not named; a column is missing or of a wrong type; two columns of the
                result have one name; the alias or an aggregate's name begins with an underscore;
                or `events` is a streaming DataFrame (rule F3).
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


class _Computed(NamedTuple):
    """The windows, and the columns of their bounds."""

    rows: DataFrame
    start: Column
    end: Column


def _by_time(
    grouped: Input, windows: TimeWindows | SessionWindows, *, with_failed: bool
) -> _Computed:
    """Computes windows by time; see `windows_of_inputs`."""
    found = windows_of_inputs(windows, [grouped], with_failed=with_failed)
    end = grouped.instant("_window_end_ms", windows.timeout_ms or 0)
    return _Computed(found, grouped.instant("_window_start_ms"), end)


def _by_rows(grouped: Input, windows: CountWindows, *, with_failed: bool) -> _Computed:
    """Computes windows by rows; see `evaluate_counts`.

    Raises:
        ValueError: A column that orders arrival has no order.
    """
    order = () if grouped.arrival is None else grouped.arrival.columns
    for column in grouped.events.select(*order).schema:
        if isinstance(column.dataType, NO_KEYS):
            raise ValueError(
                f"on: {column.name!r} is of type {column.dataType.simpleString()}, which has no "
                "order; name a column of numbers, text, times or a struct of these"
            )
    found = evaluate_counts(
        grouped.records(),
        {0: windows},
        grouped.keys,
        grouped.engine_aggregates,
        with_failed=with_failed,
    )
    return _Computed(found, F.col("first_offset"), F.col("last_offset"))


_COMPUTED: Mapping[type, Callable[..., _Computed]] = {
    TimeWindows: _by_time,
    SessionWindows: _by_time,
    CountWindows: _by_rows,
}
"""What computes the windows of each kind."""
