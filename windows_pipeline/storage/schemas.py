"""The columns of every table, as plain values: names, Spark's type texts and comments.

Times are instants in UTC, in whole milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from windows_pipeline.config import Source, Windows
from windows_pipeline.windows import TimeWindows


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        name: Its name.
        type: Its type as Spark writes it, such as `decimal(10,2)`; of a struct its fields.
        comment: What it holds, for readers of the table and of the Dagster UI.
    """

    name: str
    type: str | tuple[Column, ...]
    comment: str


Columns = tuple[Column, ...]

_KEY_OF_RECORD = (
    Column("source_partition", "string", "source partition that the record came by"),
    Column("offset", "bigint", "position of the record in its arrival unit and source partition"),
)
_BATCH = Column("batch", "bigint", "micro-batch that wrote the row; null if a run by days did")
_ROW = (
    Column("event_time", "timestamp", "event time of the row that the window belongs to"),
    Column("record_arrival_unit", "date", "arrival day of that row"),
    Column("source_partition", "string", "source partition that the row came by"),
    Column("offset", "bigint", "position of the row in its arrival unit and source partition"),
)
_FIRING = (
    Column("firing_id", "bigint", "number of the firing within its window, from 0"),
    Column("reason", "string", "EARLY, ON_TIME or LATE: before, at or after the window's end"),
)
_FIRED_AFTER = (
    Column("fired_after_unit", "date", "arrival day of the record in fired_after"),
    Column("fired_after_partition", "string", "source partition of the record in fired_after"),
)
_RECORDS = (
    Column("first_event_time", "timestamp", "earliest event time in the window; null if empty"),
    Column("last_event_time", "timestamp", "latest event time in the window; null if empty"),
    Column("record_count", "bigint", "number of records in the window"),
)
_SEVERITY = Column("severity", "double", "how bad it is: the rule's `severity` expression")


def raw_events(source: Source) -> Columns:
    """The columns of an accepted record."""
    return (
        Column("arrival_unit", "date", "arrival day of the record"),
        *_KEY_OF_RECORD,
        _key(source),
        Column("event_time", "timestamp", "when the event happened"),
        Column(
            "running_max",
            "timestamp",
            "latest event time up to this record in its arrival unit and source partition",
        ),
        *_arrival(source),
        *_values(source),
        _BATCH,
    )


def arrival_log() -> Columns:
    """The columns of a source partition's part of an arrival unit; the row commits the unit."""
    return (
        Column("arrival_unit", "date", "arrival day"),
        Column("source_partition", "string", "source partition; null if no record was accepted"),
        Column("first_offset", "bigint", "offset of the first record"),
        Column("last_offset", "bigint", "offset of the last record"),
        Column("rows", "bigint", "number of accepted records"),
        Column("max_event_time", "timestamp", "latest event time of the accepted records"),
        Column("unit_rejected", "bigint", "number of rejected records, all partitions together"),
        Column("watermark", "timestamp", "watermark after these records, as decided then"),
        _BATCH,
        Column("stream", "string", "id of the stream that brought them; null if a run by days did"),
    )


def computed_days() -> Columns:
    """The column of the days whose results are complete."""
    return (Column("arrival_unit", "date", "arrival day"),)


def landed_files() -> Columns:
    """The columns of a landed file as it was when it was ingested."""
    return (
        Column("arrival_unit", "date", "arrival day: the name of the file's folder"),
        Column("file", "string", "name of the file"),
        Column("size_bytes", "bigint", "size of the file"),
        Column("written", "timestamp", "when the file was last written"),
        Column("accepted", "bigint", "number of its records that were accepted"),
        Column("rejected", "bigint", "number of its records that were rejected"),
    )


def quarantined_files() -> Columns:
    """The columns of a bad landed file that was left out."""
    return (
        Column("arrival_unit", "date", "arrival day that lacks the file's records"),
        Column("file", "string", "the file, as the day of its folder and its name"),
        Column("size_bytes", "bigint", "size of the file; null if its name can't be listed"),
        Column("written", "timestamp", "when the file was last written; null if not known"),
        Column("cause", "string", "what is wrong with the file"),
        Column("fix", "string", "what to do"),
        _BATCH,
    )


def rejected_records() -> Columns:
    """The columns of a record that was not accepted, with its text."""
    return (
        Column("arrival_unit", "date", "arrival day of the record"),
        Column("file", "string", "landed file that holds the record"),
        Column("reason", "string", "why the record was rejected"),
        Column("original", "string", "text of the record"),
    )


def late_records(source: Source) -> Columns:
    """The columns of a record that no window counts, with the reason."""
    return (
        Column("arrival_unit", "date", "arrival day after which no window can count the record"),
        Column("record_arrival_unit", "date", "arrival day of the record"),
        *_KEY_OF_RECORD,
        _key(source),
        Column("event_time", "timestamp", "when the event happened"),
        Column(
            "reason",
            "string",
            "late: every window was closed when it arrived; partly_late: some window was open, "
            "but none counts it; outside_windows: no window covers its event time",
        ),
        Column(
            "stream_time",
            "timestamp",
            "stream time of its source partition when it arrived, or the watermark if later",
        ),
        Column(
            "close_time",
            "timestamp",
            "stream_time less grace (and gap): windows that end before it were closed",
        ),
        Column("late_by_ms", "bigint", "close_time less event_time, in milliseconds"),
        *_values(source),
    )


def keyed_windows(source: Source, windows: Windows) -> Columns:
    """The columns of a window that an arrival unit changed or closed, in its state then."""
    return (
        Column("arrival_unit", "date", "arrival day that changed or closed the window"),
        _key(source),
        *_window(windows),
        *_RECORDS,
        *_aggregates(source, windows),
        Column("closed", "boolean", "true: the window is final; false: it can still change"),
        _BATCH,
    )


def final_windows(source: Source, windows: Windows) -> Columns:
    """The columns of a window that an arrival unit closed."""
    return (
        Column("arrival_unit", "date", "arrival day that closed the window"),
        _key(source),
        *_window(windows),
        *_RECORDS,
        *_aggregates(source, windows),
    )


def corrections(source: Source, windows: Windows) -> Columns:
    """The columns of a published final window that a correction changed, retracted or added."""
    result = (*_RECORDS, *_aggregates(source, windows))
    return (
        Column("correction", "bigint", "number of the correction: 1, 2, ... in this definition"),
        Column("arrival_unit", "date", "arrival day that closed the window"),
        _key(source),
        *_window(windows),
        Column("change", "string", "changed, retracted or added"),
        Column("cause", "string", "why, as given by whoever ran the correction"),
        Column("old", result, "result before the correction; null if the window was added"),
        Column("new", result, "result after the correction; null if the window was retracted"),
    )


def alerts(source: Source, windows: Windows) -> Columns:
    """The columns of a rule that a final window broke."""
    return (
        Column("arrival_unit", "date", "arrival day that closed the window"),
        Column("rule", "string", "name of the rule"),
        _key(source),
        *_window(windows),
        *_RECORDS,
        *_aggregates(source, windows),
        _SEVERITY,
        Column("episode_start", "timestamp", "start of the first window of the episode"),
        Column(
            "correction",
            "bigint",
            "number of the correction that raised the alert; null if it was raised at first",
        ),
        Column(
            "retracted_by",
            "bigint",
            "number of the correction that retracted the alert; null while it stands",
        ),
    )


def notifications(source: Source, windows: Windows) -> Columns:
    """The columns of an event of an episode."""
    return (
        Column("arrival_unit", "date", "arrival day that caused the event"),
        Column("notification_id", "string", "digest that identifies the event in every run"),
        Column("rule", "string", "name of the rule"),
        _key(source),
        Column("episode_start", "timestamp", "start of the first window of the episode"),
        Column(
            "event",
            "string",
            "opened, worsened or ended; retracted: a correction left no alert of the episode",
        ),
        *_window(windows, "worst window so far: "),
        Column("record_count", "bigint", "number of records in that window"),
        Column("aggregates", "string", "the window's aggregates, as JSON"),
        Column("severity", "double", "the window's severity"),
        Column("since", "timestamp", "first instant of the episode"),
        Column(
            "until",
            "timestamp",
            "end of the last window so far; of a silence that ended: the key's next record",
        ),
        Column(
            "correction",
            "bigint",
            "number of the correction that added the row; null if none did",
        ),
        Column(
            "retracted_by",
            "bigint",
            "number of the correction that retracted the row; null while it stands",
        ),
    )


def failed_windows(source: Source, windows: Windows) -> Columns:
    """The columns of an aggregate of a closed window that can't be computed."""
    return (
        Column("arrival_unit", "date", "arrival day that closed the window"),
        _key(source),
        *_window(windows),
        Column("aggregate", "string", "name of the aggregate"),
        Column("message", "string", "why it can't be computed, and what to do"),
    )


def firings(source: Source, windows: Windows) -> Columns:
    """The columns of a firing of a window."""
    return (
        Column("arrival_unit", "date", "arrival day that made the window fire"),
        _key(source),
        *_window(windows),
        *_FIRING,
        Column(
            "cause", "string", "RECORD: the window got a record; STREAM_TIME: stream time advanced"
        ),
        Column("stream_time", "timestamp", "stream time at the firing"),
        Column("fired_after", "bigint", "offset of the record after which the window fired"),
        *(_FIRED_AFTER if source.has_several_partitions else ()),
        *_RECORDS,
        *_aggregates(source, windows),
        Column("is_final", "boolean", "true: the window was closed at the firing"),
    )


def early_warnings(source: Source, windows: Windows) -> Columns:
    """The columns of a rule that a firing broke before its window closed."""
    return (
        Column("arrival_unit", "date", "arrival day that raised the warning, or closed its window"),
        Column("rule", "string", "name of the rule"),
        _key(source),
        *_window(windows),
        Column(
            "state",
            "string",
            "open: just raised; confirmed or withdrawn: the final result breaks the rule, or not",
        ),
        *_FIRING,
        Column("stream_time", "timestamp", "stream time at the firing"),
        *_RECORDS,
        *_aggregates(source, windows),
        _SEVERITY,
    )


def processed(source: Source, windows: Windows) -> Columns:
    """The columns of a row that a user's function made of a firing."""
    columns = {} if windows.process is None else windows.process.columns
    made = (Column(name, kind, "result of the function") for name, kind in columns.items())
    return (
        Column("arrival_unit", "date", "arrival day that made the window fire"),
        _key(source),
        *_window(windows),
        *_FIRING,
        Column("row_number", "bigint", "number of the row among those of its firing, from 0"),
        *made,
    )


def _window(windows: Windows, of: str = "") -> Iterable[Column]:
    """The bounds of a window and, for row windows, the columns that identify the row."""
    is_exclusive = isinstance(windows.spec, TimeWindows)
    end = "first instant after the window" if is_exclusive else "last instant of the window"
    yield Column("window_start", "timestamp", f"{of}first instant of the window")
    yield Column("window_end", "timestamp", f"{of}{end}")
    yield from (column for column in _ROW if column.name in windows.row_key)


def _key(source: Source) -> Column:
    if isinstance(source.key, str):
        return Column("key", source.types[source.key], f"the source's column {source.key}")
    if not source.key_columns:
        return Column("key", "string", "null: all records have one key")
    parts = (Column(name, source.types[name], "column of the source") for name in source.key)
    return Column("key", tuple(parts), "the columns whose values each have windows of their own")


def _arrival(source: Source) -> Iterable[Column]:
    if source.arrival_column is not None:
        kind = source.types[source.arrival_column]
        yield Column(source.arrival_column, kind, "when the record arrived; orders the records")


def _values(source: Source) -> Iterable[Column]:
    return (Column(name, kind, "value from the source") for name, kind in source.values.items())


def _aggregates(source: Source, windows: Windows) -> Iterable[Column]:
    types = windows.result_columns(source)
    for aggregate in windows.aggregate_list:
        yield Column(aggregate.name, types[aggregate.name], str(aggregate))
    yield Column("failed", "array<string>", "names of the aggregates that can't be computed")
