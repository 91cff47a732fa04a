"""The builder of windows by event time: `windowed(events, hour).by("user").event_time("ts")`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic

from pyspark.sql import DataFrame

from windows_pipeline.aggregates import Aggregation
from windows_pipeline.dataframe.arguments import (
    OnError,
    refuse_verb,
    require_aggregates,
    require_names,
    require_on_error,
)
from windows_pipeline.dataframe.firings import fired, processed
from windows_pipeline.dataframe.inputs import ArrivalOrder
from windows_pipeline.dataframe.results import Result, ResultOf, Transform
from windows_pipeline.dataframe.windows import WindowedStream, aggregate_streams, late_records
from windows_pipeline.windows import WindowSpec
from windows_pipeline.windows.arguments import require_flag
from windows_pipeline.windows.durations import Duration
from windows_pipeline.windows.firing.triggers import Trigger
from windows_pipeline.windows.firing.window_function import WindowFunction


@dataclass(frozen=True, slots=True)
class WindowedPlan:
    """The arguments of the verbs called so far.

    Attributes:
        windows: The windows.
        by: The key's columns.
        event_time: The event time's column; None before the verb `event_time`.
        arrival: The order of arrival; None if all records are on time.
        others: The other streams in the same windows.
    """

    windows: WindowSpec
    by: tuple[str, ...] = ()
    event_time: str | None = None
    arrival: ArrivalOrder | None = None
    others: tuple[WindowedStream, ...] = ()

    def require_event_time(self) -> str:
        """The event time's column.

        Raises:
            ValueError: No column is named.
        """
        if self.event_time is None:
            raise ValueError(
                "event_time: these windows need an event time, but no column of the event time is "
                "named; add .event_time('ts')"
            )
        return self.event_time

    def require_arrival(self, verb: str, dependent: str) -> ArrivalOrder:
        """The order of arrival.

        Raises:
            ValueError: The order of arrival is not named.
        """
        if self.arrival is None:
            raise ValueError(
                f"{verb}: {dependent} depends on the order of arrival, which no column names; add "
                ".arrival('offset') with the column that orders records"
            )
        return self.arrival

    def stream(self, events: DataFrame, aggregates: Sequence[Aggregation]) -> WindowedStream:
        """The records with the arguments of the verbs."""
        return WindowedStream(events, self.by, self.require_event_time(), aggregates, self.arrival)

    def streams(
        self, events: DataFrame, aggregates: Sequence[Aggregation]
    ) -> Sequence[WindowedStream]:
        """The stream of `events`, and the others."""
        return [self.stream(events, aggregates), *self.others]

    def every_window(
        self,
        aggregates: Sequence[Aggregation],
        *,
        pre_aggregate: bool,
        on_error: OnError,
        only_closed: bool = False,
    ) -> Transform:
        """Makes the function that computes every window, or only the closed ones.

        Raises:
            ValueError: See `Windowed.agg`.
        """
        require_aggregates(aggregates)
        require_flag("pre_aggregate", pre_aggregate)
        require_on_error(on_error)
        self.require_event_time()

        def transform(events: DataFrame) -> DataFrame:
            return aggregate_streams(
                self.windows,
                self.streams(events, aggregates),
                pre_aggregate=pre_aggregate,
                with_failed=on_error == "null",
                only_closed=only_closed,
            )

        return transform

    def late(self) -> Transform:
        """Makes the function that finds the records that no window counts.

        Raises:
            ValueError: See `Windowed.late`.
        """
        self.require_event_time()
        arrival = self.require_arrival("late", "whether a record is late")
        return lambda events: late_records(self.windows, self.streams(events, ()), arrival)

    def firings(
        self,
        trigger: Trigger,
        aggregates: Sequence[Aggregation],
        *,
        input_ends: bool,
        on_error: OnError,
    ) -> Transform:
        """Makes the function that computes a row for each firing.

        Raises:
            ValueError: See `Windowed.firings`.
        """
        self.require_firing("firings", trigger, aggregates, input_ends=input_ends)
        require_on_error(on_error)
        return lambda events: fired(
            self.windows,
            trigger,
            self.streams(events, aggregates),
            input_ends=input_ends,
            with_failed=on_error == "null",
        )

    def require_firing(
        self,
        verb: str,
        trigger: Trigger,
        aggregates: Sequence[Aggregation],
        *,
        input_ends: bool,
    ) -> None:
        """Checks the arguments that `firings` and `process` have in common.

        Raises:
            ValueError: See `Windowed.firings`.
        """
        self.require_event_time()
        self.require_arrival(verb, "when windows fire")
        if not isinstance(trigger, Trigger):
            raise ValueError(
                f"trigger: must be a Trigger, not {trigger!r}; pass Trigger.at_window_end() or the "
                "like"
            )
        require_aggregates(aggregates)
        require_flag("input_ends", input_ends)

    def joined(self, other: Windowed[DataFrame], aggregates: Sequence[Aggregation]) -> WindowedPlan:
        """This plan with one more stream.

        Raises:
            ValueError: See `Windowed.cogroup`.
        """
        events = other.result_of(lambda records: records) if isinstance(other, Windowed) else None
        if not isinstance(events, DataFrame):
            raise ValueError(
                f"cogroup: other must be a stream in windows, not of type {type(other).__name__}; "
                "pass windowed(events, windows).by('user').event_time('ts')"
            )
        require_aggregates(aggregates)
        if other.plan.windows != self.windows:
            raise ValueError(
                f"cogroup: the streams must share their windows; the first has {self.windows!r}, "
                f"the other {other.plan.windows!r}: give both the same"
            )
        return replace(self, others=(*self.others, other.plan.stream(events, aggregates)))


@dataclass(frozen=True, slots=True)
class Windowed(Generic[Result]):
    """Records in windows by event time; made by `windowed` and `windows`.

    Each verb returns a new builder; if a verb is called twice, the last call counts. The last verbs
    are `agg`, `final().agg`, `late`, `firings`, `process` and `cogroup(...).agg`: after
    `windowed(events, ...)` they return a DataFrame, after `windows(...)` a function for
    `DataFrame.transform`. They check the columns before any Spark job runs.

    Attributes:
        plan: The arguments of the verbs called so far.
        result_of: Returns the result for the function that computes it from records.
    """

    plan: WindowedPlan
    result_of: ResultOf[Result] = field(repr=False)

    def by(self, *columns: str) -> Windowed[Result]:
        """Names the key's columns; each value of the key has separate windows.

        Args:
            columns: The key's columns; null is a value (rule A6), a struct's field is
                'part.field', and a name with a dot is written in backticks. Without columns, or
                without `by`, windows are over all records.

        Raises:
            ValueError: A name is not a string.
        """
        require_names("by", columns)
        return replace(self, plan=replace(self.plan, by=columns))

    def event_time(self, column: str) -> Windowed[Result]:
        """Names the column of the event time.

        Args:
            column: A timestamp (truncated to milliseconds), or a bigint or int
                of milliseconds.

        Raises:
            ValueError: A name is not a string.
        """
        require_names("event_time", [column])
        return replace(self, plan=replace(self.plan, event_time=column))

    def arrival(
        self, *columns: str, partition: str | None = None, idle_after: Duration | None = None
    ) -> Windowed[Result]:
        """Names the columns that order arrival, so that records can be late (rules A1 to A5).

        Without an order of arrival every record is on time, and stream time is the largest event
        time of all records. With it, a record counts only in the windows that were not closed when
        the record arrived.

        Args:
            columns: The columns that order arrival within a source partition, usually a single
                column of offsets: numbers, dates, timestamps, or structs of these. Each
                combination of values must be unique.
            partition: The column of the source partition; None for a single source partition.
            idle_after: How far a source partition's stream time may lie behind the furthest
                one and still hold windows open; None for any distance (rule A4).

        Raises:
            ValueError: A name is not a string, or `idle_after` is no duration above zero.
        """
        arrival = ArrivalOrder(columns, partition, idle_after)
        return replace(self, plan=replace(self.plan, arrival=arrival))

    def agg(
        self, *aggregates: Aggregation, pre_aggregate: bool = True, on_error: OnError = "raise"
    ) -> Result:
        """Computes every window of each key, closed or open, with aggregates (rule E1).

        Args:
            aggregates: The aggregates to compute, such as `count()` and `sum_("amount")`.
            pre_aggregate: Whether to aggregate records of hopping and tumbling windows before the
                shuffle, in slices of time that no window's bound cuts (rule C2). It never applies
                to `collect_list` or a user's aggregate. Pre-aggregation pays if keys have several
                records in a slice; for distinct counts, percentiles and medians, several records
                with equal values of all such columns. If a slice has about one record, pass
                False. The results do not depend on this argument.
            on_error: What an aggregate that can't be computed does: a sum or mean that does not
                fit its type, or an error in a user's function. `raise` has the job fail. With
                `null` the aggregate is null in its window's row, and the column `failed` has its
                name; other aggregates and other windows are not affected (rule G3).

        Returns:
            Unordered rows with the key's columns; `window_start`, `window_end`,
            `first_event_time` and `last_event_time` (of the event time's type; the last two
            null in an empty window), for sessions `session_timeout` (the end and the gap);
            `record_count` (bigint); the aggregates; with `on_error="null"` also `failed` (array
            of strings: the names of the aggregates that can't be computed; empty, never null, in
            other windows); and `closed` (boolean), whether the window is final.

        Raises:
            ValueError: The event time is not named, a column is missing or of a wrong type, two
                columns of the result have one name, or an aggregate's name begins with an
                underscore.
            ArithmeticError: When Spark runs it, as its PythonException: a sum does not fit its
                type (rule G2), and `on_error` is `raise`.
            SparkRuntimeException: When Spark runs it: an event time is null (rule A6), or an
                arrival value is null or occurs twice in a source partition (rule A1).
        """
        return self.result_of(
            self.plan.every_window(aggregates, pre_aggregate=pre_aggregate, on_error=on_error)
        )

    def final(self) -> Final[Result]:
        """Restricts results to closed windows: Kafka's `suppress(untilWindowCloses)` (rule E1)."""
        return Final(self.plan, self.result_of)

    def late(self) -> Result:
        """Returns the records that no window counts, with the reason (rule A5); needs `arrival`.

        Returns:
            Unordered rows with all columns of these records; `reason` (string): `late` if all
            windows of the record were closed when it arrived, `outside_windows` if its time is
            between windows or before the first, `partly_late` if some window of the record was
            open when it arrived, but no window counts the record; `stream_time` and `close_time`
            at its arrival (of the event time's type); and `late_by_ms` (bigint, milliseconds),
            the close time minus the event time.

        Raises:
            ValueError: The event time or the order of arrival is not named, or a column is
                missing, of a wrong type, or has the name of an added column.
            SparkRuntimeException: See `agg`.
        """
        return self.result_of(self.plan.late())

    def firings(
        self,
        trigger: Trigger,
        *aggregates: Aggregation,
        input_ends: bool = False,
        on_error: OnError = "raise",
    ) -> Result:
        """Computes a row for each firing of each window (rule E2); needs `arrival`.

        A window passes when stream time reaches its end (for sliding windows and sessions, whose
        end is inclusive: when stream time exceeds it), and closes a grace later. The trigger
        decides when the window fires before, at and after its end. Firings depend only on the
        order of arrival and stream time, so any division of the computation gives equal results.
        With several source partitions, only the final part of their merge counts (rule A4): up
        to the record that the slowest partition has reached. The call runs a Spark job, which
        finds where stream time advanced.

        Args:
            trigger: When windows fire. Windows of `SlidingWindows.of`, and hopping and tumbling
                windows with `emit_empty`, support only `Trigger.until_window_closes()`, which
                fires the final result. Empty sliding windows fire once, when they close (rule
                B8).
            aggregates: The aggregates of each pane.
            input_ends: Whether no further records follow the last record: then all open windows
                pass and close after it.
            on_error: See `agg`; with `null` the column `failed` follows the aggregates.

        Returns:
            Rows in no order: the key's columns; `window_start`, `window_end` (of the event
            time's type), for sessions `session_timeout`; `firing_id` (bigint: from 0 for each
            window; a session that joins another, or grows, is a new window), `reason` (string:
            EARLY, ON_TIME: the first at or after its end, LATE), `cause` (string: RECORD or
            STREAM_TIME), `stream_time` (of the event time's type: after the record that made it
            fire; null at the end of the input), `fired_after` (what orders arrival, of that
            record), with a partition `fired_after_partition` (string); of the pane
            `first_event_time`, `last_event_time` (of the event time's type), `record_count`
            (bigint) and the aggregates; and `is_final` (boolean): whether the window was closed
            then.

        Raises:
            ValueError: See `late`; or the windows do not support the trigger.
            ArithmeticError: See `agg`.
            SparkRuntimeException: See `agg`.
        """
        return self.result_of(
            self.plan.firings(trigger, aggregates, input_ends=input_ends, on_error=on_error)
        )

    def process(
        self,
        trigger: Trigger,
        function: WindowFunction,
        *aggregates: Aggregation,
        input_ends: bool = False,
    ) -> Result:
        """Applies a user's function to each firing (rule E3); needs `arrival`.

        Args:
            trigger: See `firings`.
            function: The function, which receives each pane's aggregates or records.
            aggregates: The aggregates that the function receives by their names, besides
                `record_count`; none if it receives records. Their names may be those of other
                columns of `firings`, such as `cause`.
            input_ends: See `firings`.

        Returns:
            The rows of the function's schema, in no order.

        Raises:
            ValueError: See `firings`; an aggregate is named `record_count`; or aggregates are
                passed although the function takes records.
            ArithmeticError: See `agg`; the function never sees an aggregate that can't be computed.
            RuntimeError: When Spark runs it: the function raised; the error names key,
                window and firing.
            TypeError: When Spark runs it: the function returned a value that is no row of its
                schema; the error names key, window and firing.
        """
        plan = self.plan
        plan.require_firing("process", trigger, aggregates, input_ends=input_ends)
        if not isinstance(function, WindowFunction):
            raise ValueError(
                f"function: must be a WindowFunction, not {function!r}; pass "
                "WindowFunction(process, schema)"
            )
        return self.result_of(
            lambda events: processed(
                plan.windows,
                trigger,
                function,
                plan.stream(events, aggregates),
                input_ends=input_ends,
            )
        )

    def cogroup(self, other: Windowed[DataFrame], *aggregates: Aggregation) -> Cogrouped[Result]:
        """Adds a second stream to the same windows, with separate aggregates.

        As in Kafka Streams' `CogroupedKStream`, a window contains the records of all streams. Each
        stream forms one or several source partitions (rule A1), and the slowest source partition
        holds windows open (rule A4). `agg` at the end names the first stream's aggregates.

        Args:
            other: The other stream, with the same windows: `windowed(orders, windows)` with `by`,
                `event_time` and, if this stream has it, `arrival`. The types of keys and event
                times must equal this stream's; their names may differ.
            aggregates: The aggregates of the other stream's records; each skips nulls.

        Raises:
            ValueError: `other` is no stream, has other windows or no event time. At the end: types
                differ, or only some streams have an order of arrival.
        """
        return Cogrouped(self.plan.joined(other, aggregates), self.result_of)


@dataclass(frozen=True, slots=True)
class Cogrouped(Generic[Result]):
    """Several streams in the same windows; made by `Windowed.cogroup`.

    Attributes:
        plan: The arguments of the verbs called so far.
        result_of: Returns the result for the function that computes it from records.
    """

    plan: WindowedPlan
    result_of: ResultOf[Result] = field(repr=False)

    def cogroup(self, other: Windowed[DataFrame], *aggregates: Aggregation) -> Cogrouped[Result]:
        """Adds one more stream; see `Windowed.cogroup`."""
        return Cogrouped(self.plan.joined(other, aggregates), self.result_of)

    def agg(
        self, *aggregates: Aggregation, pre_aggregate: bool = True, on_error: OnError = "raise"
    ) -> Result:
        """Computes every window over the records of all streams, with each stream's aggregates.

        Args:
            aggregates: The aggregates of the first stream's records.
            pre_aggregate: See `Windowed.agg`.
            on_error: See `Windowed.agg`.

        Returns:
            See `Windowed.agg`. The key's columns are named as in the first stream, `record_count`
            counts the records of all streams, and the first stream's aggregates come first.

        Raises:
            ValueError: See `Windowed.agg` and `Windowed.cogroup`.
        """
        return self.result_of(
            self.plan.every_window(aggregates, pre_aggregate=pre_aggregate, on_error=on_error)
        )

    def final(self) -> Final[Result]:
        """Restricts results to closed windows; see `Windowed.final`."""
        return Final(self.plan, self.result_of)

    def late(self) -> Result:
        """Returns the records of all streams that no window counts, with the reason (rule A5).

        A record that a window counts because another stream's record made the window is not late.

        Returns:
            Unordered rows: `stream` (int: the record's stream, from 1); the key's columns, named as
            in the first stream; `record_1`, `record_2` and so on: the record as a struct of its
            stream's columns, null for other streams; then the columns that `Windowed.late` adds.

        Raises:
            ValueError: See `Windowed.late` and `Windowed.cogroup`.
            SparkRuntimeException: See `Windowed.agg`.
        """
        return self.result_of(self.plan.late())

    def firings(
        self,
        trigger: Trigger,
        *aggregates: Aggregation,
        input_ends: bool = False,
        on_error: OnError = "raise",
    ) -> Result:
        """Computes a row for each firing of each window over all streams (rule E2).

        The streams are merged by stream time, then in the order in which they were named; the
        slowest source partition limits how far the merge is final (rule A4).

        Args:
            trigger: See `Windowed.firings`.
            aggregates: The aggregates of the first stream's records in each pane.
            input_ends: See `Windowed.firings`.
            on_error: See `Windowed.firings`.

        Returns:
            See `Windowed.firings`, with `fired_after_stream` (int: the stream, from 1, of the
            record after which the window fired) beside `fired_after`.

        Raises:
            ValueError: See `Windowed.firings` and `Windowed.cogroup`.
            ArithmeticError: See `Windowed.agg`.
            SparkRuntimeException: See `Windowed.agg`.
        """
        return self.result_of(
            self.plan.firings(trigger, aggregates, input_ends=input_ends, on_error=on_error)
        )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Says what to do instead of a verb of a single stream."""
            before = "call it on each stream before cogroup"
            together = (
                "union the streams' rows, with a column that names each row's stream and source "
                "partition, and call it on the union, with that column as partition of arrival"
            )
            advice = {
                **dict.fromkeys(("by", "event_time", "arrival"), before),
                "process": together,
            }
            refuse_verb(self, name, advice)


@dataclass(frozen=True, slots=True)
class Final(Generic[Result]):
    """Windows whose results are restricted to closed windows; made by `Windowed.final`.

    Attributes:
        plan: The arguments of the verbs called so far.
        result_of: Returns the result for the function that computes it from records.
    """

    plan: WindowedPlan
    result_of: ResultOf[Result] = field(repr=False)

    def agg(
        self, *aggregates: Aggregation, pre_aggregate: bool = True, on_error: OnError = "raise"
    ) -> Result:
        """Computes each closed window of each key once, with aggregates (rule E1).

        Args:
            aggregates: The aggregates to compute.
            pre_aggregate: See `Windowed.agg`.
            on_error: See `Windowed.agg`.

        Returns:
            See `Windowed.agg`, without `closed`.

        Raises:
            ValueError: See `Windowed.agg`.
        """
        return self.result_of(
            self.plan.every_window(
                aggregates, pre_aggregate=pre_aggregate, on_error=on_error, only_closed=True
            )
        )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Says what to do instead of a verb that `final` rules out."""
            before = "call it before final()"
            advice = {
                **dict.fromkeys(("by", "event_time", "arrival", "cogroup"), before),
                "late": "late records are in no window; leave final() out",
                "firings": "leave final() out and pass Trigger.until_window_closes()",
                "process": "leave final() out and pass Trigger.until_window_closes()",
                "final": "final() is already called; call agg",
            }
            refuse_verb(self, name, advice)
