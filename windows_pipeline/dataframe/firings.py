"""Every firing of a window as a row: `events.transform(firings(windows, trigger, ...))`."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windows_pipeline.aggregates import Aggregation, collect_list
from windows_pipeline.dataframe.checks import require_column
from windows_pipeline.dataframe.inputs import (
    ARRIVAL_COLUMNS,
    Arrival,
    Input,
    require_arrival,
    with_close_times,
    with_stream_times,
)
from windows_pipeline.dataframe.names import require_results
from windows_pipeline.dataframe.windows import (
    Stream,
    Transform,
    evaluate_sliced,
    input_of,
    require_windows,
    session_timeout,
)
from windows_pipeline.engine.firings.final import at_closing
from windows_pipeline.engine.firings.kernel import AFTER, FiringSpec
from windows_pipeline.engine.firings.plan import closing_grid_ms, fire
from windows_pipeline.engine.firings.process import RECORDS, FunctionKernel
from windows_pipeline.engine.firings.watermark_steps import collect_advances
from windows_pipeline.windows import SessionWindows, TimeWindows, WindowSpec
from windows_pipeline.windows.triggers import Trigger
from windows_pipeline.windows.window_function import WindowFunction


def firings(
    windows: WindowSpec,
    trigger: Trigger,
    *,
    by: str | Sequence[str],
    event_time: str,
    of: Sequence[Aggregation] = (),
    arrival: Arrival,
    input_ends: bool = False,
) -> Transform:
    """Each firing of each window (rule E2): a function for `DataFrame.transform`.

    A window passes when stream time reaches its end (of sliding windows and sessions, whose
    end belongs to them: goes beyond it), and closes a grace later. When it fires before, at
    and after that is the trigger's. All follows from the order of arrival and stream time
    alone, so it is the same whenever and in whatever parts it is computed. A Spark job finds
    where stream time rose when the transform is applied.

    Args:
        windows: The windows. Those of `SlidingWindows.of` take the trigger of their final result
            only, `Trigger.until_window_closes()`; so do hopping and tumbling ones with
            `emit_empty`. Empty sliding windows fire once, when they close (rule B8).
        trigger: When they fire.
        by: See `dataframe.aggregate`.
        event_time: See `dataframe.aggregate`.
        of: What to compute of each pane, from `windows_pipeline.aggregates`.
        arrival: How records came. Of several source partitions, only what their merge holds
            for good counts (rule A4): to the place of the slowest one.
        input_ends: Whether nothing comes after the last record: then all that is open passes
            and closes after it.

    Returns:
        Of a DataFrame, its firings, in no order: the key's columns; `window_start`,
        `window_end` (of the event time's type), for sessions `session_timeout`; `firing_id`
        (bigint: from 0 for each window; a session that joins another, or grows, is a new
        window), `reason` (EARLY, ON_TIME: the first at or after its end, LATE), `cause`
        (RECORD or STREAM_TIME), `stream_time` (of the event time's type: after the record
        that made it fire; null at the end of the input), `fired_after` (that record's offset),
        with several source partitions `fired_after_partition` (string); of the pane
        `first_event_time`, `last_event_time`, `record_count` (bigint) and the aggregates; and
        `is_final` (boolean): whether the window was closed then.

    Raises:
        ValueError: See `dataframe.aggregate`; or a trigger that the windows don't take.
        ArithmeticError: When Spark runs it: a sum does not fit its type (rule G2).
    """

    def transform(events: DataFrame) -> DataFrame:
        _require(windows, trigger, arrival)
        own = input_of(Stream(events, by, event_time, of, arrival))
        partition = ["fired_after_partition"] if arrival.source_partition is not None else []
        timeout = ["session_timeout"] if isinstance(windows, SessionWindows) else []
        require_results(own.key_names, [*_COLUMNS, *timeout, *partition], own.aggregates)
        fired = _fired(windows, trigger, own, input_ends=input_ends)
        after_partition = F.col(f"{AFTER}source_partition")
        return fired.select(
            *(F.col(key).alias(name) for key, name in zip(own.keys, own.key_names, strict=True)),
            own.instant("_window_start_ms").alias("window_start"),
            own.instant("_window_end_ms").alias("window_end"),
            *session_timeout(windows, own),
            "firing_id",
            "reason",
            "cause",
            own.instant("_stream_time_ms").alias("stream_time"),
            F.col(f"{AFTER}offset").alias("fired_after"),
            *(after_partition.alias(name) for name in partition),
            own.instant("_first_event_time_ms").alias("first_event_time"),
            own.instant("_last_event_time_ms").alias("last_event_time"),
            "record_count",
            *(F.col(f"`{one.name}`") for one in own.aggregates),
            "is_final",
        )

    return transform


_COLUMNS = (
    "window_start",
    "window_end",
    "firing_id",
    "reason",
    "cause",
    "stream_time",
    "fired_after",
    "first_event_time",
    "last_event_time",
    "record_count",
    "is_final",
)


def process_firings(
    windows: WindowSpec,
    trigger: Trigger,
    function: WindowFunction,
    *,
    by: str | Sequence[str],
    event_time: str,
    of: Sequence[Aggregation] = (),
    arrival: Arrival,
    input_ends: bool = False,
) -> Transform:
    """What a user's function makes of each firing (rule E3): for `DataFrame.transform`.

    Args:
        windows: See `firings`.
        trigger: See `firings`.
        function: The function; it gets each pane's aggregates, or its records.
        by: See `firings`.
        event_time: See `firings`.
        of: The aggregates that it gets, with `record_count`; none where it gets records.
        arrival: See `firings`.
        input_ends: See `firings`.

    Returns:
        Of a DataFrame, the rows of the function's schema, in no order.

    Raises:
        ValueError: See `firings`; or aggregates for a function that takes records.
        RuntimeError: When Spark runs it: the function raised; names key, window and firing.
        TypeError: When Spark runs it: it gave what is no row of its schema; names the same.
    """

    def transform(events: DataFrame) -> DataFrame:
        _require(windows, trigger, arrival)
        if not isinstance(function, WindowFunction):
            raise ValueError(
                f"function: {function!r} is none; pass WindowFunction(process, schema)"
            )
        wanted = of
        if function.records is not None:
            if of:
                raise ValueError("of: the window function takes records; leave out the aggregates")
            for name in function.records:
                require_column(events, "records", name)
            record = F.struct(*(F.col(f"`{name}`") for name in function.records))
            wanted = [collect_list(record).alias(RECORDS)]
        own = input_of(Stream(events, by, event_time, wanted, arrival))
        require_results((), ["record_count"], own.aggregates)
        names = ["record_count", *(one.name for one in own.aggregates)]
        fired = _fired(windows, trigger, own, input_ends=input_ends)
        kernel = FunctionKernel(function, own.keys, names)
        return fired.mapInArrow(kernel, function.schema)

    return transform


def _require(windows: WindowSpec, trigger: Trigger, arrival: Arrival) -> None:
    """Refuses what is none of these."""
    require_windows(windows)
    require_arrival(arrival)
    if not isinstance(trigger, Trigger):
        raise ValueError(f"trigger: {trigger!r} is none; take Trigger.at_window_end(), say")


def _fired(windows: WindowSpec, trigger: Trigger, own: Input, *, input_ends: bool) -> DataFrame:
    """The columns of `firing_evaluation.fire`."""
    if trigger.final_only:
        return _when_closed(windows, own, input_ends=input_ends)
    targets = {0: FiringSpec(trigger.fitted(windows), trigger)}
    timed = with_stream_times(own.records(), _arrival(own), input_ends=input_ends)
    return fire(timed, targets, own.keys, own.aggregates, ARRIVAL_COLUMNS, input_ends=input_ends)


def _when_closed(windows: WindowSpec, own: Input, *, input_ends: bool) -> DataFrame:
    """Each window once, as the engine has it when it closes (rule E1)."""
    arrival = _arrival(own)
    delay_ms = windows.close_delay_ms
    timed = with_close_times(own.records(), delay_ms, arrival)
    found = evaluate_sliced(timed, windows, own, own.aggregates)
    in_time = with_stream_times(own.records(), arrival, input_ends=input_ends)
    grid_ms = closing_grid_ms(windows)
    advances = collect_advances(in_time, ARRIVAL_COLUMNS, grid_ms, input_ends=input_ends)
    # An end that belongs to its window is passed a millisecond later (rule A4).
    beyond_ms = delay_ms if isinstance(windows, TimeWindows) else delay_ms + 1
    closed = found if input_ends else found.where("closed")
    return at_closing(closed, beyond_ms, advances, in_time.schema, ARRIVAL_COLUMNS)


def _arrival(own: Input) -> Arrival:
    if own.arrival is None:
        raise ValueError("arrival: firings need the order of arrival")
    return own.arrival
