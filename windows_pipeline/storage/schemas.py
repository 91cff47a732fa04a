"""The columns of every table. Times are instants, kept in UTC, whole milliseconds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pyspark.sql import types as T

from windows_pipeline.aggregates.column_type import parse_type
from windows_pipeline.config import Source, Windows
from windows_pipeline.windows import TimeWindows

_TYPES: dict[str, T.DataType] = {
    "string": T.StringType(),
    "bigint": T.LongType(),
    "double": T.DoubleType(),
    "boolean": T.BooleanType(),
    "date": T.DateType(),
    "timestamp": T.TimestampType(),
}


class _Column(NamedTuple):
    name: str
    type: str
    comment: str


_UNIT = _Column("arrival_unit", "date", "arrival day whose run wrote the row")
_BATCH = _Column("batch", "bigint", "micro-batch that made the row; null of a run by days")
_RECORD = (
    _Column("source_partition", "string", "partition of the source; offsets order its records"),
    _Column("offset", "bigint", "place in the arrival order of the unit and source partition"),
)
_ROW = (
    _Column("event_time", "timestamp", "when the row happened whose window it is"),
    _Column("record_arrival_unit", "date", "arrival day of that row"),
    *_RECORD,
)
_FIRING = (
    _Column("firing_id", "bigint", "number of the window's firing, from 0"),
    _Column("reason", "string", "EARLY, ON_TIME or LATE"),
)
_AFTER = (
    _Column("fired_after_unit", "date", "arrival day of that record, which had to be merged"),
    _Column("fired_after_partition", "string", "its source partition"),
)
_RECORDS = (
    _Column("first_event_time", "timestamp", "earliest record in it; null when empty"),
    _Column("last_event_time", "timestamp", "latest record in it; null when empty"),
    _Column("record_count", "bigint", "records in the window"),
)


def raw_events(source: Source) -> T.StructType:
    """An accepted record."""
    return _schema(
        [
            _UNIT,
            *_RECORD,
            _key(source),
            _Column("event_time", "timestamp", "when it happened"),
            _Column("running_max", "timestamp", "latest event time in its unit up to it"),
            *_arrival(source),
            *_values(source),
            _BATCH,
        ]
    )


def arrival_log() -> T.StructType:
    """A source partition's part of an arrival unit; its presence commits the unit."""
    return _schema(
        [
            _UNIT,
            _Column("source_partition", "string", "null in the row of a unit without records"),
            _Column("first_offset", "bigint", "offset of its first record"),
            _Column("last_offset", "bigint", "offset of its last record"),
            _Column("rows", "bigint", "records accepted"),
            _Column("max_event_time", "timestamp", "latest event time in it"),
            _Column("unit_rejected", "bigint", "records of the whole unit that were rejected"),
            _Column("watermark", "timestamp", "stream time in force after it, as decided then"),
            _BATCH,
            _Column("stream", "string", "id of the stream that it came by; null otherwise"),
        ]
    )


def computed_days() -> T.StructType:
    """Days of which a definition's results follow from what was ingested."""
    return _schema([_Column("arrival_unit", "date", "arrival day")])


def landed_files() -> T.StructType:
    """A landed file as it was when it was ingested."""
    return _schema(
        [
            _Column("arrival_unit", "date", "arrival day of its folder"),
            _Column("file", "string", "its name"),
            _Column("size_bytes", "bigint", "its size"),
            _Column("written", "timestamp", "when it was last written"),
            _Column("accepted", "bigint", "records accepted"),
            _Column("rejected", "bigint", "records rejected"),
        ]
    )


def rejected_records() -> T.StructType:
    """A record that could not be read, as it came."""
    return _schema(
        [
            _UNIT,
            _Column("file", "string", "landed file that it stands in"),
            _Column("reason", "string", "why it was rejected"),
            _Column("original", "string", "the record's text"),
        ]
    )


def late_records(source: Source) -> T.StructType:
    """A record that no window counts, with the reason."""
    return _schema(
        [
            _Column("arrival_unit", "date", "arrival day that settled it"),
            _Column("record_arrival_unit", "date", "arrival day of the record"),
            *_RECORD,
            _key(source),
            _Column("event_time", "timestamp", "when it happened"),
            _Column("reason", "string", "late, uncounted or uncovered"),
            _Column("stream_time", "timestamp", "stream time then, or that in force where later"),
            _Column("close_time", "timestamp", "windows that ended before it were closed then"),
            _Column("late_by_ms", "bigint", "how far its event time lay behind the close time"),
            *_values(source),
        ]
    )


def keyed_windows(source: Source, windows: Windows) -> T.StructType:
    """A window that the unit changed or closed, as it stood at the unit's end."""
    closed = _Column("closed", "boolean", "whether it can still change")
    results = _aggregates(source, windows)
    return _schema([_UNIT, _key(source), *_place(windows), *_RECORDS, *results, closed, _BATCH])


def final_windows(source: Source, windows: Windows) -> T.StructType:
    """A window that the unit closed."""
    return _schema(
        [_UNIT, _key(source), *_place(windows), *_RECORDS, *_aggregates(source, windows)]
    )


def corrections(source: Source, windows: Windows) -> T.StructType:
    """What became of a final window that had been published."""
    schema = _schema(
        [
            _Column("correction", "bigint", "its number: 1, 2, ... by windows"),
            _UNIT,
            _key(source),
            *_place(windows),
            _Column("change", "string", "changed, retracted or added"),
            _Column("cause", "string", "why, in the words of whoever corrected"),
        ]
    )
    results = _schema([*_RECORDS, *_aggregates(source, windows)])
    schema.add("old", results, True, {"comment": "what was published; null where added"})
    schema.add("new", results, True, {"comment": "what is so now; null where retracted"})
    return schema


def alerts(source: Source, windows: Windows) -> T.StructType:
    """A rule that a final window broke; it stands while `retracted_by` is null."""
    return _schema(
        [
            _UNIT,
            _Column("rule", "string", "name of the rule"),
            _key(source),
            *_place(windows),
            *_RECORDS,
            *_aggregates(source, windows),
            _Column("severity", "double", "how bad, by the rule's own measure"),
            _Column("episode_start", "timestamp", "start of the first window of its episode"),
            _Column("correction", "bigint", "correction that raised it; null: first published"),
            _Column("retracted_by", "bigint", "correction that took it back; null: it stands"),
        ]
    )


def firings(source: Source, windows: Windows) -> T.StructType:
    """A firing of a window; its numbers begin at 0 in each window."""
    return _schema(
        [
            _Column("arrival_unit", "date", "arrival day whose record or stream time made it fire"),
            _key(source),
            *_place(windows),
            *_FIRING,
            _Column("cause", "string", "RECORD of its own, or STREAM_TIME, which rose"),
            _Column("stream_time", "timestamp", "after the record that made it fire"),
            _Column("fired_after", "bigint", "offset of that record in the unit"),
            *(_AFTER if source.has_several_partitions else ()),
            *_RECORDS,
            *_aggregates(source, windows),
            _Column("is_final", "boolean", "whether the window was closed then"),
        ]
    )


def early_warnings(source: Source, windows: Windows) -> T.StructType:
    """A rule that a firing broke before its window closed, and what came of it."""
    return _schema(
        [
            _Column(
                "arrival_unit", "date", "arrival day that raised the warning, or closed its window"
            ),
            _Column("rule", "string", "name of the rule"),
            _key(source),
            *_place(windows),
            _Column("state", "string", "open; by the final result: confirmed or withdrawn"),
            *_FIRING,
            _Column("stream_time", "timestamp", "when it fired"),
            *_RECORDS,
            *_aggregates(source, windows),
            _Column("severity", "double", "how bad, by the rule's own measure"),
        ]
    )


def _place(windows: Windows) -> Iterable[_Column]:
    """A window's bounds and, where each is a row's, what names the row."""
    exclusive = isinstance(windows.spec, TimeWindows)
    end = "first instant after it" if exclusive else "last instant of the window; belongs to it"
    yield _Column("window_start", "timestamp", "first instant of the window; belongs to it")
    yield _Column("window_end", "timestamp", end)
    yield from (column for column in _ROW if column.name in windows.row_key)


def _key(source: Source) -> _Column:
    return _Column("key", source.types[source.key], f"the source's {source.key}")


def _arrival(source: Source) -> Iterable[_Column]:
    if source.arrival_column is not None:
        kind = source.types[source.arrival_column]
        yield _Column(source.arrival_column, kind, "when it arrived; orders the unit's records")


def _values(source: Source) -> Iterable[_Column]:
    return (_Column(name, kind, "as the source has it") for name, kind in source.values.items())


def _aggregates(source: Source, windows: Windows) -> Iterable[_Column]:
    for aggregate in windows.aggregate_list:
        kind = aggregate.result_type(source.types[aggregate.column])
        yield _Column(aggregate.name, kind, str(aggregate))


def _schema(columns: Iterable[_Column]) -> T.StructType:
    schema = T.StructType()
    for column in columns:
        schema.add(column.name, _spark_type(column.type), True, {"comment": column.comment})
    return schema


def _spark_type(text: str) -> T.DataType:
    if text in _TYPES:
        return _TYPES[text]
    decimal = parse_type(text)
    return T.DecimalType(decimal.precision, decimal.scale)
