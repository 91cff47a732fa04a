"""Windows by event time over the records of one or several DataFrames, and late records."""

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
    Arrival,
    Input,
    close_after,
    with_close_times,
)
from windows_pipeline.dataframe.names import require_apart, require_once, require_results
from windows_pipeline.engine.lateness import last_instant
from windows_pipeline.engine.preaggregation.slices import apart, in_panes, merges
from windows_pipeline.engine.time_shards import slice_length_ms
from windows_pipeline.engine.windows import evaluate, late
from windows_pipeline.kernels.windows.chunk import Target
from windows_pipeline.windows import SessionWindows, SlidingWindows, TimeWindows, WindowSpec

_BOUNDS = ("window_start", "window_end", "first_event_time", "last_event_time")


@dataclass(frozen=True, slots=True)
class Stream:
    """One input of windows.

    Attributes:
        events: Its records.
        by: The key's columns; none of them for windows over all records.
        event_time: The column of the event time: a timestamp, or a bigint or int of
            milliseconds.
        aggregates: What is computed of its records.
        arrival: How they came; None where all are on time.
    """

    events: DataFrame
    by: Sequence[str]
    event_time: str
    aggregates: Sequence[Aggregation] = ()
    arrival: Arrival | None = None


def aggregate_streams(
    windows: WindowSpec, streams: Sequence[Stream], *, pre_aggregate: bool = True
) -> DataFrame:
    """Windows over the records of one or several streams, each with its own aggregates.

    Each stream is a source partition of its own, or several (rule A1), and the slowest one
    holds windows open (rule A4). Without arrival every record is on time, and stream time is
    the largest event time of all.

    Args:
        windows: The windows.
        streams: The streams, with keys and event times of the same types.
        pre_aggregate: Whether records of hopping and tumbling windows are summed up before they
            are moved (rule C2).

    Returns:
        See `Windowed.agg`; the key's columns have the names that the first stream gives them.

    Raises:
        ValueError: A column that is not there or of no fitting type, two results of one name,
            or streams that don't fit together.
    """
    inputs = [input_of(each, source) for source, each in enumerate(streams)]
    _require_alike(inputs)
    first = inputs[0]
    aggregates = [one for each in inputs for one in each.aggregates]
    require_results(first.key_names, _result_names(windows), aggregates)
    frames = [each.records() for each in inputs]
    records = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), frames)
    delay_ms = windows.close_delay_ms
    # Where nothing is late, what is closed is told by windows' ends, but for silences.
    by_end = first.arrival is None and not _emits_empty(windows)
    timed = records if by_end else with_close_times(records, delay_ms, first.arrival)
    # Of one stream the number of records is there already.
    counts = {one.name for one in first.of if one.counts_records} if len(inputs) == 1 else set()
    computed = [one for one in aggregates if one.name not in counts]
    found = evaluate_sliced(timed, windows, first, computed, pre_aggregate=pre_aggregate)
    if by_end:
        last_ms = last_instant(windows, F.col("_window_end_ms"))
        close_after_ms = close_after(records, delay_ms, None).scalar()
        found = found.withColumn("closed", last_ms < close_after_ms)
    return found.select(
        *(F.col(key).alias(name) for key, name in zip(first.keys, first.key_names, strict=True)),
        *(first.instant(f"_{name}_ms").alias(name) for name in _BOUNDS),
        *session_timeout(windows, first),
        "record_count",
        *(
            F.col("record_count" if one.name in counts else f"`{one.name}`").alias(one.name)
            for one in aggregates
        ),
        "closed",
    )


def late_records(windows: WindowSpec, stream: Stream, arrival: Arrival) -> DataFrame:
    """The records that no window counts, with the reason (rule A5); see `Windowed.late`.

    Args:
        windows: The windows.
        stream: The records.
        arrival: How they came.

    Raises:
        ValueError: A column that is not there, of no fitting type, or of a name that is added.
    """
    own = input_of(stream)
    events = stream.events
    added = ("reason", "stream_time", "close_time", "late_by_ms")
    require_once("events", events.columns, "rename or drop one")
    require_apart("events", events.columns, added)
    whole = F.struct(*(F.col(f"`{name}`") for name in events.columns)).alias("record")
    timed = with_close_times(own.records(whole), windows.close_delay_ms, arrival)
    found = late(
        timed,
        {0: Target(windows)},
        own.keys,
        _arrival(windows, own),
        slice_ms=slice_length_ms(windows),
    )
    delayed = found.withColumn(
        "_stream_time_ms", F.col("_close_time_ms") + F.lit(windows.close_delay_ms)
    )
    return delayed.select(
        "record.*",
        "reason",
        own.instant("_stream_time_ms").alias("stream_time"),
        own.instant("_close_time_ms").alias("close_time"),
        (F.col("_close_time_ms") - F.col("_event_time_ms")).alias("late_by_ms"),
    )


def _emits_empty(windows: WindowSpec) -> bool:
    return isinstance(windows, (SlidingWindows, TimeWindows)) and windows.emit_empty


def input_of(stream: Stream, source: int = 0) -> Input:
    """A stream's records, checked, as the engine takes them.

    Raises:
        ValueError: A column that is not there, or of no fitting type.
    """
    return Input(
        stream.events, stream.by, stream.event_time, stream.aggregates, stream.arrival, source
    )


def evaluate_sliced(
    records: DataFrame,
    windows: WindowSpec,
    first: Input,
    aggregates: Sequence[Aggregate],
    *,
    pre_aggregate: bool = True,
) -> DataFrame:
    """The windows, each key's time cut into slices where the windows allow it."""
    targets = {0: Target(windows)}
    of_panes = None
    if pre_aggregate and isinstance(windows, TimeWindows) and merges(aggregates):
        records, aggregates = apart(records, aggregates)
        of_panes = records.schema
        records = in_panes(records, windows, first.keys, aggregates)
    return evaluate(
        records,
        targets,
        first.keys,
        aggregates,
        _arrival(windows, first),
        of_panes=of_panes,
        slice_ms=slice_length_ms(windows),
    )


def _arrival(windows: WindowSpec, first: Input) -> Sequence[str]:
    """What orders arrival; only sessions ask, and only where records can be late (rule D2)."""
    asks = isinstance(windows, SessionWindows) and first.arrival is not None
    return ARRIVAL_COLUMNS if asks else ()


def _result_names(windows: WindowSpec) -> list[str]:
    timeout = ["session_timeout"] if isinstance(windows, SessionWindows) else []
    return [*_BOUNDS, *timeout, "record_count", "closed"]


def session_timeout(windows: WindowSpec, first: Input) -> list[Column]:
    """The column of a session's last record and the gap; none of other windows."""
    if not isinstance(windows, SessionWindows):
        return []
    return [first.instant("_window_end_ms", windows.gap_ms).alias("session_timeout")]


def _require_alike(inputs: Sequence[Input]) -> None:
    """Refuses streams whose keys or times differ, or of which only some say how they came."""
    first = inputs[0]
    for number, other in enumerate(inputs):
        name = f"cogroup: stream {number + 1}"
        _require_same_types(f"{name}: its key", other.key_types, first.key_types)
        _require_same_types(f"{name}: its event time", [other.time_type], [first.time_type])
        if (other.arrival is None) != (first.arrival is None):
            raise ValueError(f"{name}: give every stream an arrival, or none")
        if other.idle_after != first.idle_after:
            raise ValueError(f"{name}: idle_after differs from the first stream's")
        if len(inputs) > 1 and any(_takes_nulls(one) for one in other.of):
            raise ValueError(
                f"{name}: an aggregate that takes nulls would see the other "
                "streams' records as such; skip nulls"
            )


def _takes_nulls(aggregation: Aggregation) -> bool:
    function = aggregation.function
    return isinstance(function, UserAggregate) and not function.skip_nulls


def _require_same_types(what: str, own: Sequence[T.DataType], first: Sequence[T.DataType]) -> None:
    if list(own) != list(first):
        texts = [", ".join(kind.simpleString() for kind in kinds) for kinds in (own, first)]
        raise ValueError(
            f"{what} is of type {texts[0]}, the first stream's of {texts[1]}; cast one"
        )
