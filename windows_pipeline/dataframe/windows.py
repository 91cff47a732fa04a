"""Computes windows by event time over one or several DataFrames, and late records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.aggregates import Aggregate, Aggregation, UserAggregate
from windows_pipeline.dataframe.inputs import (
    ARRIVAL_COLUMNS,
    ArrivalOrder,
    Input,
    close_after,
    with_close_times,
    with_order_of_pairs,
)
from windows_pipeline.dataframe.names import require_apart, require_once, require_results
from windows_pipeline.engine.preaggregation.slices import (
    can_pre_aggregate,
    in_slices,
    with_separate_columns,
)
from windows_pipeline.engine.time_shards import shard_length_ms
from windows_pipeline.engine.windows import evaluate_windows, late
from windows_pipeline.kernels.windows.chunk import ComputedDay
from windows_pipeline.windows import TimeWindows, WindowSpec

_OF_LATE = ("reason", "stream_time", "close_time", "late_by_ms")
_BOUNDS = ("window_start", "window_end", "first_event_time", "last_event_time")


@dataclass(frozen=True, slots=True)
class WindowedStream:
    """One of the streams in the same windows, as the verbs name it; `input_of` checks it.

    Attributes:
        events: The records.
        by: The key's columns; empty for windows over all records.
        event_time: The column of the event time: a timestamp, or a bigint or int of
            milliseconds.
        aggregates: The aggregates of these records, as the user named them.
        arrival: The order of arrival; None if all records are on time.
    """

    events: DataFrame
    by: Sequence[str]
    event_time: str
    aggregates: Sequence[Aggregation] = ()
    arrival: ArrivalOrder | None = None


def aggregate_streams(
    windows: WindowSpec,
    streams: Sequence[WindowedStream],
    *,
    pre_aggregate: bool = True,
    with_failed: bool = False,
    only_closed: bool = False,
) -> DataFrame:
    """Computes windows over one or several streams, each with separate aggregates.

    Each stream forms one or several source partitions (rule A1), and the slowest source partition
    holds windows open (rule A4). Without an order of arrival every record is on time, and stream
    time is the largest event time of all records.

    Args:
        windows: The windows.
        streams: The streams, with keys and event times of the same types.
        pre_aggregate: Whether to aggregate records of hopping and tumbling windows before the
            shuffle (rule C2).
        with_failed: Whether an aggregate that can't be computed is null (rule G3).
        only_closed: Whether to return closed windows alone, without the column `closed`.

    Returns:
        See `Windowed.agg`; the key's columns are named as in the first stream.

    Raises:
        ValueError: A column is missing or of a wrong type, two results have one name, or the
            streams do not fit together.
    """
    inputs = inputs_of(streams)
    first, aggregates = inputs[0], aggregates_of(inputs)
    failed = ["failed"] if with_failed else []
    closed = [] if only_closed else ["closed"]
    fixed = [*_BOUNDS, *timeout_names(windows), "record_count", *failed, *closed]
    require_results(first.key_names, fixed, aggregates)
    found = windows_of_inputs(windows, inputs, pre_aggregate=pre_aggregate, with_failed=with_failed)
    return (found.where("closed") if only_closed else found).select(
        *(F.col(key).alias(name) for key, name in zip(first.keys, first.key_names, strict=True)),
        *(first.instant(f"_{name}_ms").alias(name) for name in _BOUNDS),
        *session_timeout(windows, first),
        "record_count",
        *(F.col(each.result_column).alias(each.name) for each in aggregates),
        *failed,
        *closed,
    )


def windows_of_inputs(
    windows: WindowSpec,
    inputs: Sequence[Input],
    *,
    pre_aggregate: bool = True,
    with_failed: bool = False,
) -> DataFrame:
    """Computes windows over one or several inputs; see `aggregate_streams`.

    Returns:
        `_key_0` and so on, `_window_start_ms`, `_window_end_ms`, `_first_event_time_ms`,
        `_last_event_time_ms`, `record_count`, the aggregates' result columns, with `with_failed`
        also `failed`, and `closed`.
    """
    first, aggregates = inputs[0], aggregates_of(inputs)
    records = records_of(inputs)
    delay_ms = windows.close_delay_ms
    # If no record can be late, a window's end decides whether the window is closed, except for
    # empty windows.
    by_end = first.arrival is None and not windows.emit_empty
    timed = records if by_end else with_close_times(records, delay_ms, first.arrival)
    # A count of all records of a single stream equals `record_count`.
    counts: set[str] = set()
    if len(inputs) == 1:
        counts = {
            aggregate.result_column
            for each, aggregate in zip(first.aggregates, aggregates, strict=True)
            if each.counts_records
        }
    computed = [each for each in aggregates if each.result_column not in counts]
    found = windows_of_input(
        timed, windows, first, computed, pre_aggregate=pre_aggregate, with_failed=with_failed
    )
    if by_end:
        last_ms = windows.last_instant(F.col("_window_end_ms"))
        close_after_ms = close_after(records, delay_ms, None).scalar()
        found = found.withColumn("closed", last_ms < close_after_ms)
    return found.select(
        *first.keys,
        *(f"_{name}_ms" for name in _BOUNDS),
        "record_count",
        *(
            F.col("record_count" if each.result_column in counts else each.result_column).alias(
                each.result_column
            )
            for each in aggregates
        ),
        *(["failed"] if with_failed else []),
        "closed",
    )


def late_records(
    windows: WindowSpec, streams: Sequence[WindowedStream], arrival: ArrivalOrder
) -> DataFrame:
    """Finds the records that no window counts, with the reason (rule A5).

    Args:
        windows: The windows.
        streams: One or several streams.
        arrival: The first stream's order of arrival.

    Returns:
        See `Windowed.late` for one stream, and `Cogrouped.late` for several.

    Raises:
        ValueError: A column is missing, of a wrong type, or has the name of an added column; or
            the streams do not fit together.
    """
    inputs = inputs_of(streams)
    first, names = inputs[0], [f"record_{number}" for number, _ in enumerate(streams, 1)]
    for each in streams:
        require_once("events", each.events.columns, "rename or drop one")
    shown: list[Column | str]
    if len(streams) == 1:
        require_apart("events", streams[0].events.columns, _OF_LATE)
        shown = [f"{names[0]}.*"]
    else:
        require_apart("by", first.key_names, [*_OF_LATE, "stream", *names])
        keys = zip(first.keys, first.key_names, strict=True)
        stream = (F.col("source") + 1).alias("stream")
        shown = [stream, *(F.col(key).alias(name) for key, name in keys), *names]
    frames = [
        each.records(
            F.struct(*(F.col(f"`{column}`") for column in each.events.columns)).alias(name)
        )
        for each, name in zip(inputs, names, strict=True)
    ]
    timed = with_close_times(_united(frames), windows.close_delay_ms, arrival)
    found = late(
        timed,
        {0: ComputedDay(windows)},
        first.keys,
        _arrival(windows, first),
        shard_ms=shard_length_ms(windows),
    )
    delayed = found.withColumn(
        "_stream_time_ms", F.col("_close_time_ms") + F.lit(windows.close_delay_ms)
    )
    return delayed.select(
        *shown,
        "reason",
        first.instant("_stream_time_ms").alias("stream_time"),
        first.instant("_close_time_ms").alias("close_time"),
        (F.col("_close_time_ms") - F.col("_event_time_ms")).alias("late_by_ms"),
    )


def inputs_of(streams: Sequence[WindowedStream]) -> list[Input]:
    """Checks streams that share their windows, and turns them into the engine's inputs.

    Raises:
        ValueError: A column is missing or of a wrong type, or the streams do not fit together.
    """
    inputs = [input_of(each, source) for source, each in enumerate(streams)]
    _require_alike(inputs)
    return inputs


def aggregates_of(inputs: Sequence[Input]) -> list[Aggregate]:
    """The aggregates of all inputs, as the engine takes them."""
    return [aggregate for each in inputs for aggregate in each.engine_aggregates]


def records_of(inputs: Sequence[Input]) -> DataFrame:
    """The records of all inputs; a value that another stream has is null."""
    return _united([each.records() for each in inputs])


def _united(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), frames)


def input_of(stream: WindowedStream, source: int = 0) -> Input:
    """Checks a stream, and turns it into the engine's input.

    Raises:
        ValueError: A column is missing or of a wrong type.
    """
    return Input(
        stream.events, stream.by, stream.event_time, stream.aggregates, stream.arrival, source
    )


def windows_of_input(
    records: DataFrame,
    windows: WindowSpec,
    first: Input,
    aggregates: Sequence[Aggregate],
    *,
    pre_aggregate: bool = True,
    with_failed: bool = False,
) -> DataFrame:
    """Computes the windows; divides each key's time into time shards if the windows allow it."""
    computed_days = {0: ComputedDay(windows)}
    in_order = () if first.arrival is None else ("_close_time_ms", *ARRIVAL_COLUMNS)
    records = with_order_of_pairs(records, aggregates, in_order)
    of_slices = None
    if pre_aggregate and isinstance(windows, TimeWindows) and can_pre_aggregate(aggregates):
        records, aggregates = with_separate_columns(records, aggregates)
        of_slices = records.schema
        records = in_slices(records, windows, first.keys, aggregates)
    return evaluate_windows(
        records,
        computed_days,
        first.keys,
        aggregates,
        _arrival(windows, first),
        of_slices=of_slices,
        shard_ms=shard_length_ms(windows),
        with_failed=with_failed,
    )


def _arrival(windows: WindowSpec, first: Input) -> Sequence[str]:
    """The columns that order arrival, needed where other records decide what is late (rule D2)."""
    needs_arrival = windows.late_after_ms is None and first.arrival is not None
    return ARRIVAL_COLUMNS if needs_arrival else ()


def timeout_names(windows: WindowSpec) -> list[str]:
    """The name of the column that `session_timeout` returns; none for windows without one."""
    return [] if windows.timeout_ms is None else ["session_timeout"]


def session_timeout(windows: WindowSpec, first: Input) -> list[Column]:
    """The column `session_timeout`: a session's end plus the gap; none for other windows."""
    timeout_ms = windows.timeout_ms
    if timeout_ms is None:
        return []
    return [first.instant("_window_end_ms", timeout_ms).alias("session_timeout")]


def _require_alike(inputs: Sequence[Input]) -> None:
    """Requires equal types of keys and times, and an order of arrival for all streams or none."""
    first = inputs[0]
    for number, other in enumerate(inputs):
        name = f"cogroup: stream {number + 1}"
        _require_same_types(f"{name}: its key", other.key_types, first.key_types)
        _require_same_types(f"{name}: its event time", [other.time_type], [first.time_type])
        if (other.arrival is None) != (first.arrival is None):
            raise ValueError(
                f"{name}: either all streams or none must have an arrival; add .arrival(...) to all"
            )
        if other.idle_after != first.idle_after:
            raise ValueError(
                f"{name}: idle_after must equal the first stream's {first.idle_after!r}, but is "
                f"{other.idle_after!r}; pass equal values"
            )
        if len(inputs) > 1 and any(_takes_nulls(each) for each in other.aggregates):
            raise ValueError(
                f"{name}: an aggregate of several streams must skip nulls, as it meets the records "
                "of the other streams as nulls; set skip_nulls=True"
            )


def _takes_nulls(aggregation: Aggregation) -> bool:
    function = aggregation.function
    return isinstance(function, UserAggregate) and not function.skip_nulls


def _require_same_types(
    subject: str, types: Sequence[T.DataType], first: Sequence[T.DataType]
) -> None:
    if list(types) != list(first):
        texts = [", ".join(kind.simpleString() for kind in kinds) for kinds in (types, first)]
        raise ValueError(
            f"{subject} is of type {texts[0]}, but must be of the first stream's type {texts[1]}; "
            "cast one"
        )
