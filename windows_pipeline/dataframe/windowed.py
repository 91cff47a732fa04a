"""The builder of windows by event time: `windowed(events, hour).by("user").event_time("ts")`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic

from pyspark.sql import DataFrame

from windows_pipeline.aggregates import Aggregation
from windows_pipeline.dataframe.bound import Bind, Result, Transform
from windows_pipeline.dataframe.checks import refuse_verb, require_aggregates, require_names
from windows_pipeline.dataframe.firings import fired, processed
from windows_pipeline.dataframe.inputs import Arrival
from windows_pipeline.dataframe.windows import Stream, aggregate_streams, late_records
from windows_pipeline.engine.suppression import until_window_closes
from windows_pipeline.windows import WindowSpec
from windows_pipeline.windows.arguments import require_flag
from windows_pipeline.windows.durations import Duration
from windows_pipeline.windows.firing.triggers import Trigger
from windows_pipeline.windows.firing.window_function import WindowFunction


@dataclass(frozen=True, slots=True)
class Plan:
    """What the verbs have said so far.

    Attributes:
        windows: The windows.
        by: The key's columns.
        event_time: The event time's column; None before `event_time`.
        arrival: How records came; None where all are on time.
        others: The other streams in the same windows.
    """

    windows: WindowSpec
    by: tuple[str, ...] = ()
    event_time: str | None = None
    arrival: Arrival | None = None
    others: tuple[Stream, ...] = ()

    def require_event_time(self) -> str:
        """The event time's column.

        Raises:
            ValueError: None is named.
        """
        if self.event_time is None:
            raise ValueError(
                "event_time: these windows go by event time, and no column of it is named; add "
                ".event_time('ts') with its name"
            )
        return self.event_time

    def require_arrival(self, verb: str, reason: str) -> Arrival:
        """How records came.

        Raises:
            ValueError: It is not said.
        """
        if self.arrival is None:
            raise ValueError(
                f"{verb}: {reason}, and the order of arrival is not named; add .arrival('offset') "
                "with the column that orders it"
            )
        return self.arrival

    def stream(self, events: DataFrame, aggregates: Sequence[Aggregation]) -> Stream:
        """The records with what was said of them."""
        return Stream(events, self.by, self.require_event_time(), aggregates, self.arrival)

    def every(self, aggregates: Sequence[Aggregation], *, pre_aggregate: bool) -> Transform:
        """Computes every window.

        Raises:
            ValueError: See `Windowed.agg`.
        """
        require_aggregates(aggregates)
        require_flag("pre_aggregate", pre_aggregate)
        self.require_event_time()

        def transform(events: DataFrame) -> DataFrame:
            streams = [self.stream(events, aggregates), *self.others]
            return aggregate_streams(self.windows, streams, pre_aggregate=pre_aggregate)

        return transform

    def joined(self, other: Windowed[DataFrame], aggregates: Sequence[Aggregation]) -> Plan:
        """The same with one more stream.

        Raises:
            ValueError: See `Windowed.cogroup`.
        """
        events = other.bind(lambda records: records) if isinstance(other, Windowed) else None
        if not isinstance(events, DataFrame):
            raise ValueError(
                f"cogroup: other must be a stream in windows, not {other!r}; pass "
                "windowed(events, windows).by('user').event_time('ts')"
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

    Each verb returns a new builder; where one is called twice, the last call counts. Ends are
    `agg`, `final().agg`, `late`, `firings`, `process` and `cogroup(...).agg`: of
    `windowed(events, ...)` they give a DataFrame, of `windows(...)` a function for
    `DataFrame.transform`. Records are checked there, before anything runs.

    Attributes:
        plan: What the verbs have said so far.
        bind: Makes the result at the end.
    """

    plan: Plan
    bind: Bind[Result] = field(repr=False)

    def by(self, *columns: str) -> Windowed[Result]:
        """Names the key: each value of it has windows of its own.

        Args:
            columns: The key's columns; nulls are a value (rule A6), a struct's field is
                'part.field', and a point in a name goes in backticks. None of them, or no
                `by`, for windows over all records.

        Raises:
            ValueError: What is no name.
        """
        require_names("by", columns)
        return replace(self, plan=replace(self.plan, by=columns))

    def event_time(self, column: str) -> Windowed[Result]:
        """Names the event time.

        Args:
            column: A timestamp (finer parts than milliseconds are cut off), or a bigint or int
                of milliseconds.

        Raises:
            ValueError: What is no name.
        """
        require_names("event_time", [column])
        return replace(self, plan=replace(self.plan, event_time=column))

    def arrival(
        self, *columns: str, partition: str | None = None, idle_after: Duration | None = None
    ) -> Windowed[Result]:
        """Says in which order records came, so that they can be late (rules A1 to A5).

        Without it every record is on time, and stream time is the largest event time of all.
        With it each record meets the close time of its arrival, and counts only in the windows
        that were not closed then.

        Args:
            columns: What orders arrival within a source partition, mostly one column of
                offsets: numbers, dates, timestamps, or structs of these; each combination of
                values once.
            partition: The column of the source partition; None for a single one.
            idle_after: How far a source partition's stream time may lie behind the furthest
                one and still hold windows open; None for any distance (rule A4).

        Raises:
            ValueError: What is no name, or no duration above zero.
        """
        arrival = Arrival(columns, partition, idle_after)
        return replace(self, plan=replace(self.plan, arrival=arrival))

    def agg(self, *aggregates: Aggregation, pre_aggregate: bool = True) -> Result:
        """Every window of each key as it stands (rule E1), with aggregates.

        Args:
            aggregates: What to compute, such as `count()` and `sum_("amount")`.
            pre_aggregate: Whether records of hopping and tumbling windows are summed up before
                they are moved, by pieces of time that no window's bound cuts (rule C2); with
                `collect_list` or a user's aggregate they never are. It pays where keys have
                several records in such a piece; for distinct counts, percentiles and medians
                several of one value, of one combination of values where several columns have
                such. Where there is about one of each it costs more than it saves: pass False.
                Results are the same.

        Returns:
            Rows in no order: the key's columns; `window_start`, `window_end`,
            `first_event_time` and `last_event_time` (of the event time's type; the last two
            null in an empty window), for sessions `session_timeout` (the end and the gap);
            `record_count` (bigint); the aggregates; and `closed` (boolean), whether the window
            is final.

        Raises:
            ValueError: No event time, no such column, one of no fitting type, or two results of
                one name.
            ArithmeticError: When Spark runs it, as its PythonException: a sum does not fit its
                type (rule G2).
            SparkRuntimeException: When Spark runs it: an event time is null (rule A6), or what
                orders arrival is null or comes twice in a source partition (rule A1).
        """
        return self.bind(self.plan.every(aggregates, pre_aggregate=pre_aggregate))

    def final(self) -> Final[Result]:
        """Only windows that are closed, as Kafka's `suppress(untilWindowCloses)` (rule E1)."""
        return Final(self.plan, self.bind)

    def late(self) -> Result:
        """The records that no window counts, with the reason (rule A5); needs `arrival`.

        Returns:
            Those of the rows, in no order, with all their columns and `reason` (string): `late`,
            all its windows were closed when it came; `outside_windows`, it lies between windows
            or before the first; `partly_late`, it was in time for some window, but none was
            made.
            And `stream_time` and `close_time` that it met (of the event time's type),
            `late_by_ms` (bigint, milliseconds), how far its event time lay behind the close
            time.

        Raises:
            ValueError: No event time, no arrival, no such column, one of no fitting type, or
                one that has a name that is to be added.
            SparkRuntimeException: See `agg`.
        """
        plan = self.plan
        plan.require_event_time()
        arrival = plan.require_arrival("late", "whether a record is late follows from when it came")
        return self.bind(
            lambda events: late_records(plan.windows, plan.stream(events, ()), arrival)
        )

    def firings(
        self, trigger: Trigger, *aggregates: Aggregation, input_ends: bool = False
    ) -> Result:
        """Each firing of each window as a row (rule E2); needs `arrival`.

        A window passes when stream time reaches its end (of sliding windows and sessions, whose
        end belongs to them: goes beyond it), and closes a grace later. When it fires before, at
        and after that is the trigger's. All follows from the order of arrival and stream time
        alone, so it is the same whenever and in whatever parts it is computed. Of several
        source partitions, only what their merge holds for good counts (rule A4): up to the
        record that the slowest one has reached. A Spark job finds where stream time advanced
        when this is called.

        Args:
            trigger: When windows fire. Those of `SlidingWindows.of` take the trigger of their
                final result only, `Trigger.until_window_closes()`; so do hopping and tumbling
                ones with `emit_empty`. Empty sliding windows fire once, when they close (rule
                B8).
            aggregates: What to compute of each pane.
            input_ends: Whether nothing comes after the last record: then all that is open
                passes and closes after it.

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
            ValueError: See `late`; or a trigger that the windows don't take.
            ArithmeticError: See `agg`.
            SparkRuntimeException: See `agg`.
        """
        plan = self.plan
        _require_firing(plan, "firings", trigger, aggregates, input_ends=input_ends)
        return self.bind(
            lambda events: fired(
                plan.windows, trigger, plan.stream(events, aggregates), input_ends=input_ends
            )
        )

    def process(
        self,
        trigger: Trigger,
        function: WindowFunction,
        *aggregates: Aggregation,
        input_ends: bool = False,
    ) -> Result:
        """What a user's function makes of each firing (rule E3); needs `arrival`.

        Args:
            trigger: See `firings`.
            function: The function; it gets each pane's aggregates, or its records.
            aggregates: The aggregates that it gets, with `record_count`; none where it gets
                records.
            input_ends: See `firings`.

        Returns:
            The rows of the function's schema, in no order.

        Raises:
            ValueError: See `firings`; or aggregates for a function that takes records.
            RuntimeError: When Spark runs it: the function raised; names key, window and firing.
            TypeError: When Spark runs it: the function gave what is no row of its schema; names
                the same.
        """
        plan = self.plan
        _require_firing(plan, "process", trigger, aggregates, input_ends=input_ends)
        if not isinstance(function, WindowFunction):
            raise ValueError(
                f"function: {function!r} is none; pass WindowFunction(process, schema)"
            )
        return self.bind(
            lambda events: processed(
                plan.windows,
                trigger,
                function,
                plan.stream(events, aggregates),
                input_ends=input_ends,
            )
        )

    def cogroup(self, other: Windowed[DataFrame], *aggregates: Aggregation) -> Cogrouped[Result]:
        """Adds a second stream to the same windows, with aggregates of its own.

        As Kafka Streams' `CogroupedKStream`: a window holds the records of all streams. Each
        stream is a source partition of its own, or several (rule A1), and the slowest one holds
        windows open (rule A4). The first stream's aggregates are those of `agg` at the end.

        Args:
            other: The other stream, of the same windows: `windowed(orders, windows)` with `by`,
                `event_time` and, where this one has it, `arrival`. Keys and event times are of
                this one's types, whatever their names.
            aggregates: What to compute of the other stream's records; each skips nulls.

        Raises:
            ValueError: What is no stream, other windows, or no event time. At the end: types
                that differ, or only one stream with an arrival.
        """
        return Cogrouped(self.plan.joined(other, aggregates), self.bind)


@dataclass(frozen=True, slots=True)
class Cogrouped(Generic[Result]):
    """Several streams in the same windows; made by `Windowed.cogroup`.

    Attributes:
        plan: What the verbs have said so far.
        bind: Makes the result at the end.
    """

    plan: Plan
    bind: Bind[Result] = field(repr=False)

    def cogroup(self, other: Windowed[DataFrame], *aggregates: Aggregation) -> Cogrouped[Result]:
        """Adds one more stream; see `Windowed.cogroup`."""
        return Cogrouped(self.plan.joined(other, aggregates), self.bind)

    def agg(self, *aggregates: Aggregation, pre_aggregate: bool = True) -> Result:
        """Every window over the records of all streams, with each stream's aggregates.

        Args:
            aggregates: What to compute of the first stream's records.
            pre_aggregate: See `Windowed.agg`.

        Returns:
            See `Windowed.agg`: the key's columns have the names that the first stream gives
            them, `record_count` counts the records of all, and the aggregates are the first
            stream's, then the others'.

        Raises:
            ValueError: See `Windowed.agg` and `Windowed.cogroup`.
        """
        return self.bind(self.plan.every(aggregates, pre_aggregate=pre_aggregate))

    def final(self) -> Final[Result]:
        """Only windows that are closed; see `Windowed.final`."""
        return Final(self.plan, self.bind)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Says what to do in place of a verb of one stream."""
            before = "say it of each stream before cogroup"
            alone = "ask each stream by itself, before cogroup"
            advice = {
                **dict.fromkeys(("by", "event_time", "arrival"), before),
                **dict.fromkeys(("late", "firings", "process"), alone),
            }
            refuse_verb(self, name, advice)


@dataclass(frozen=True, slots=True)
class Final(Generic[Result]):
    """Windows, of which only the closed ones are results; made by `Windowed.final`.

    Attributes:
        plan: What the verbs have said so far.
        bind: Makes the result at the end.
    """

    plan: Plan
    bind: Bind[Result] = field(repr=False)

    def agg(self, *aggregates: Aggregation, pre_aggregate: bool = True) -> Result:
        """Each closed window of each key once, with aggregates (rule E1).

        Args:
            aggregates: What to compute.
            pre_aggregate: See `Windowed.agg`.

        Returns:
            See `Windowed.agg`, without `closed`.

        Raises:
            ValueError: See `Windowed.agg`.
        """
        every = self.plan.every(aggregates, pre_aggregate=pre_aggregate)
        return self.bind(lambda events: until_window_closes(every(events)))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Says what to do in place of a verb that comes before, or of another end."""
            before = "say it before final()"
            advice = {
                **dict.fromkeys(("by", "event_time", "arrival", "cogroup"), before),
                "late": "late records are of no window; leave final() out",
                "firings": "leave final() out and pass Trigger.until_window_closes()",
                "process": "leave final() out and pass Trigger.until_window_closes()",
                "final": "it is there already; call agg",
            }
            refuse_verb(self, name, advice)


def _require_firing(
    plan: Plan,
    verb: str,
    trigger: Trigger,
    aggregates: Sequence[Aggregation],
    *,
    input_ends: bool,
) -> None:
    """Refuses what no firings can be made of."""
    plan.require_event_time()
    plan.require_arrival(verb, "when windows fire follows from the order of arrival")
    if not isinstance(trigger, Trigger):
        raise ValueError(f"trigger: {trigger!r} is none; take Trigger.at_window_end(), say")
    require_aggregates(aggregates)
    require_flag("input_ends", input_ends)
