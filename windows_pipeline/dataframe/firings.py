"""Computes a row for each firing of a window, or applies a user's function to each firing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windows_pipeline.aggregates.lists import collect_list
from windows_pipeline.compat.python_workers import in_workers
from windows_pipeline.dataframe.arguments import require_column
from windows_pipeline.dataframe.inputs import (
    ARRIVAL_COLUMNS,
    ArrivalOrder,
    Input,
    with_close_times,
    with_order_of_pairs,
    with_stream_times,
)
from windows_pipeline.dataframe.names import require_results
from windows_pipeline.dataframe.windows import (
    WindowedStream,
    aggregates_of,
    input_of,
    inputs_of,
    records_of,
    session_timeout,
    timeout_names,
    windows_of_input,
)
from windows_pipeline.engine.firings.final import at_closing, with_final
from windows_pipeline.engine.firings.kernel import AFTER, FiringSpec
from windows_pipeline.engine.firings.plan import advances_of, fire
from windows_pipeline.engine.firings.process import RECORDS, FunctionKernel
from windows_pipeline.windows import WindowSpec
from windows_pipeline.windows.firing.triggers import Trigger
from windows_pipeline.windows.firing.window_function import WindowFunction


def fired(
    windows: WindowSpec,
    trigger: Trigger,
    streams: Sequence[WindowedStream],
    *,
    input_ends: bool,
    with_failed: bool = False,
) -> DataFrame:
    """Computes a row for each firing of each window (rule E2); see `Windowed.firings`.

    Args:
        windows: The windows.
        trigger: When the windows fire.
        streams: One or several streams, with their order of arrival.
        input_ends: Whether no further records follow the last record.
        with_failed: Whether an aggregate that can't be computed is null (rule G3).

    Raises:
        ValueError: The windows do not support the trigger, a column is missing or of a wrong
            type, or the streams do not fit together.
    """
    inputs = inputs_of(streams)
    first, aggregates = inputs[0], aggregates_of(inputs)
    after = {}
    if len(inputs) > 1:
        after["fired_after_stream"] = F.col(f"{AFTER}source") + 1
    if any(each.arrival is not None and each.arrival.partition is not None for each in inputs):
        after["fired_after_partition"] = F.col(f"{AFTER}source_partition")
    failed = ["failed"] if with_failed else []
    fixed = [*_COLUMNS, *timeout_names(windows), *after, *failed]
    require_results(first.key_names, fixed, aggregates)
    found = _fired(windows, trigger, inputs, input_ends=input_ends, with_failed=with_failed)
    return found.select(
        *(F.col(key).alias(name) for key, name in zip(first.keys, first.key_names, strict=True)),
        first.instant("_window_start_ms").alias("window_start"),
        first.instant("_window_end_ms").alias("window_end"),
        *session_timeout(windows, first),
        "firing_id",
        "reason",
        "cause",
        first.instant("_stream_time_ms").alias("stream_time"),
        F.col(f"{AFTER}offset").alias("fired_after"),
        *(column.alias(name) for name, column in after.items()),
        first.instant("_first_event_time_ms").alias("first_event_time"),
        first.instant("_last_event_time_ms").alias("last_event_time"),
        "record_count",
        *(F.col(each.result_column).alias(each.name) for each in aggregates),
        *failed,
        "is_final",
    )


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


def processed(
    windows: WindowSpec,
    trigger: Trigger,
    function: WindowFunction,
    stream: WindowedStream,
    *,
    input_ends: bool,
) -> DataFrame:
    """Applies a user's function to each firing (rule E3); see `Windowed.process`.

    Args:
        windows: The windows.
        trigger: When the windows fire.
        function: The function.
        stream: The records, with their order of arrival.
        input_ends: Whether no further records follow the last record.

    Raises:
        ValueError: See `fired`; or the stream has aggregates although the function takes records.
    """
    if function.records is not None:
        if stream.aggregates:
            raise ValueError(
                "aggregates: must be empty, because the window function takes records; leave them "
                "out"
            )
        for name in function.records:
            require_column(stream.events, "records", name)
        record = F.struct(*(F.col(f"`{name}`") for name in function.records))
        stream = replace(stream, aggregates=[collect_list(record).alias(RECORDS)])
    stream_input = input_of(stream)
    fixed = ["record_count"] if function.records is None else []
    require_results((), fixed, stream_input.engine_aggregates)
    content = {name: name for name in fixed}
    content |= {each.name: each.result_column for each in stream_input.engine_aggregates}
    found = _fired(windows, trigger, [stream_input], input_ends=input_ends)
    kernel = FunctionKernel(function, stream_input.keys, content)
    return in_workers(found, kernel, function.schema)


def _fired(
    windows: WindowSpec,
    trigger: Trigger,
    inputs: Sequence[Input],
    *,
    input_ends: bool,
    with_failed: bool = False,
) -> DataFrame:
    """The firings of each window; see `plan.fire` for the columns."""
    merged, aggregates = _merged(inputs, input_ends=input_ends), aggregates_of(inputs)
    spec, keys = FiringSpec(trigger.fitted(windows), trigger), inputs[0].keys
    advances = advances_of(merged, [spec], ARRIVAL_COLUMNS, input_ends=input_ends)
    fired = None
    if not trigger.final_only:
        fired = fire(
            with_order_of_pairs(merged, aggregates, ("_stream_time_ms", *ARRIVAL_COLUMNS)),
            {0: spec},
            keys,
            aggregates,
            ARRIVAL_COLUMNS,
            input_ends=input_ends,
            with_failed=with_failed,
            advances=advances,
        )
        if not trigger.also_final:
            return fired
    closed = _closed(windows, inputs, input_ends=input_ends, with_failed=with_failed)
    closing = at_closing(closed, windows, advances, merged.schema, ARRIVAL_COLUMNS)
    return closing if fired is None else with_final(fired, closing, keys)


def _closed(
    windows: WindowSpec, inputs: Sequence[Input], *, input_ends: bool, with_failed: bool
) -> DataFrame:
    """The windows that close, each with its final result (rule E1)."""
    timed = with_close_times(records_of(inputs), windows.close_delay_ms, _arrival(inputs[0]))
    found = windows_of_input(
        timed, windows, inputs[0], aggregates_of(inputs), with_failed=with_failed
    )
    return found if input_ends else found.where("closed")


def _merged(inputs: Sequence[Input], *, input_ends: bool) -> DataFrame:
    """The records of all inputs, with their stream times, as far as their merge is final."""
    return with_stream_times(
        records_of(inputs),
        _arrival(inputs[0]),
        are_several=len(inputs) > 1,
        input_ends=input_ends,
    )


def _arrival(stream_input: Input) -> ArrivalOrder:
    if stream_input.arrival is None:
        raise ValueError(
            "arrival: firings need the order of arrival, but none is named; add .arrival('offset')"
        )
    return stream_input.arrival
