"""The columns of every table, as plain values: names, Spark's type texts and comments.

Times are instants in UTC, in whole milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from windows_pipeline.config import Source, Windows


class TableColumn(NamedTuple):
    """A column of a table.

    Attributes:
        name: Its name.
        type: Its type as Spark writes it, such as `decimal(10,2)`; of a struct its fields.
        comment: What it holds, for readers of the table and of the Dagster UI.
    """

    name: str
    type: str | tuple[TableColumn, ...]
    comment: str


Columns = tuple[TableColumn, ...]

_KEY_OF_RECORD = (
    TableColumn("source_partition", "string", "source partition that the record came by"),
    TableColumn(
        "offset", "bigint", "position of the record in its arrival unit and source partition"
    ),
)
_BATCH = TableColumn("batch", "bigint", "micro-batch that wrote the row; null if a run by days did")
_ROW = (
    TableColumn("event_time", "timestamp", "event time of the row that the window belongs to"),
    TableColumn("record_arrival_unit", "date", "arrival day of that row"),
    TableColumn("source_partition", "string", "source partition that the row came by"),
    TableColumn("offset", "bigint", "position of the row in its arrival unit and source partition"),
)
_FIRING = (
    TableColumn("firing_id", "bigint", "number of the firing within its window, from 0"),
    TableColumn("reason", "string", "EARLY, ON_TIME or LATE: before, at or after the window's end"),
)
_FIRED_AFTER = (
    TableColumn("fired_after_arrival_unit", "date", "arrival day of the record in fired_after"),
    TableColumn("fired_after_partition", "string", "source partition of the record in fired_after"),
)
_RECORDS = (
    TableColumn(
        "first_event_time", "timestamp", "earliest event time in the window; null if empty"
    ),
    TableColumn("last_event_time", "timestamp", "latest event time in the window; null if empty"),
    TableColumn("record_count", "bigint", "number of records in the window"),
)
_SEVERITY = TableColumn("severity", "double", "how bad it is: the rule's `severity` expression")


def raw_events_columns(source: Source) -> Columns:
    """The columns of an accepted record."""
    return (
        TableColumn("arrival_unit", "date", "arrival day of the record"),
        *_KEY_OF_RECORD,
        _key(source),
        TableColumn("event_time", "timestamp", "when the event happened"),
        TableColumn(
            "running_max",
            "timestamp",
            "latest event time up to this record in its arrival unit and source partition",
        ),
        *_arrival(source),
        *_values(source),
        _BATCH,
    )


def arrival_log_columns(*, has_zones: bool = False) -> Columns:
    """The columns of a source partition's part of an arrival unit; the row commits the unit."""
    twice = "number of accepted records with a local time that occurs twice"
    return (
        TableColumn("arrival_unit", "date", "arrival day"),
        TableColumn(
            "source_partition", "string", "source partition; null if no record was accepted"
        ),
        TableColumn("first_offset", "bigint", "offset of the first record"),
        TableColumn("last_offset", "bigint", "offset of the last record"),
        TableColumn("rows", "bigint", "number of accepted records"),
        TableColumn("max_event_time", "timestamp", "latest event time of the accepted records"),
        *((TableColumn("ambiguous", "bigint", twice),) if has_zones else ()),
        TableColumn(
            "arrival_unit_rejected", "bigint", "number of rejected records, all partitions together"
        ),
        TableColumn("watermark", "timestamp", "watermark after these records, as decided then"),
        _BATCH,
        TableColumn(
            "stream", "string", "id of the stream that brought them; null if a run by days did"
        ),
    )


def computed_days_columns() -> Columns:
    """The column of the days whose results are complete."""
    return (TableColumn("arrival_unit", "date", "arrival day"),)


def landed_files_columns() -> Columns:
    """The columns of a landed file as it was when it was ingested."""
    return (
        TableColumn("arrival_unit", "date", "arrival day: the name of the file's folder"),
        TableColumn("file", "string", "name of the file"),
        TableColumn("size_bytes", "bigint", "size of the file"),
        TableColumn("written", "timestamp", "when the file was last written"),
        TableColumn("accepted", "bigint", "number of its records that were accepted"),
        TableColumn("rejected", "bigint", "number of its records that were rejected"),
    )


def quarantined_files_columns() -> Columns:
    """The columns of a bad landed file that was left out."""
    return (
        TableColumn("arrival_unit", "date", "arrival day that lacks the file's records"),
        TableColumn("file", "string", "the file, as the day of its folder and its name"),
        TableColumn("size_bytes", "bigint", "size of the file; null if its name can't be listed"),
        TableColumn("written", "timestamp", "when the file was last written; null if not known"),
        TableColumn("cause", "string", "what is wrong with the file"),
        TableColumn("fix", "string", "what to do"),
        _BATCH,
    )


def rejected_records_columns() -> Columns:
    """The columns of a record that was not accepted, with its text."""
    return (
        TableColumn("arrival_unit", "date", "arrival day of the record"),
        TableColumn("file", "string", "landed file that holds the record"),
        TableColumn("reason", "string", "why the record was rejected"),
        TableColumn("original", "string", "text of the record"),
    )


def late_records_columns(source: Source) -> Columns:
    """The columns of a record that no window counts, with the reason."""
    return (
        TableColumn(
            "arrival_unit", "date", "arrival day after which no window can count the record"
        ),
        TableColumn("record_arrival_unit", "date", "arrival day of the record"),
        *_KEY_OF_RECORD,
        _key(source),
        TableColumn("event_time", "timestamp", "when the event happened"),
        TableColumn(
            "reason",
            "string",
            "late: every window was closed when it arrived; partly_late: some window was open, "
            "but none counts it; outside_windows: no window covers its event time",
        ),
        TableColumn(
            "stream_time",
            "timestamp",
            "stream time of its source partition when it arrived, or the watermark if later",
        ),
        TableColumn(
            "close_time",
            "timestamp",
            "stream_time less grace (and gap): windows that end before it were closed",
        ),
        TableColumn("late_by_ms", "bigint", "close_time less event_time, in milliseconds"),
        *_values(source),
    )


def keyed_windows_columns(source: Source, windows: Windows) -> Columns:
    """The columns of a window that an arrival unit changed or closed, in its state then."""
    return (
        TableColumn("arrival_unit", "date", "arrival day that changed or closed the window"),
        _key(source),
        *_window(windows),
        *_RECORDS,
        *_aggregates(source, windows),
        TableColumn("closed", "boolean", "true: the window is final; false: it can still change"),
        _BATCH,
    )


def final_windows_columns(source: Source, windows: Windows) -> Columns:
    """The columns of a window that an arrival unit closed."""
    return (
        TableColumn("arrival_unit", "date", "arrival day that closed the window"),
        _key(source),
        *_window(windows),
        *_RECORDS,
        *_aggregates(source, windows),
    )


def corrections_columns(source: Source, windows: Windows) -> Columns:
    """The columns of a published final window that a correction changed, retracted or added."""
    result = (*_RECORDS, *_aggregates(source, windows))
    return (
        TableColumn(
            "correction", "bigint", "number of the correction: 1, 2, ... in this definition"
        ),
        TableColumn("arrival_unit", "date", "arrival day that closed the window"),
        _key(source),
        *_window(windows),
        TableColumn("change", "string", "changed, retracted or added"),
        TableColumn("cause", "string", "why, as given by whoever ran the correction"),
        TableColumn("old", result, "result before the correction; null if the window was added"),
        TableColumn("new", result, "result after the correction; null if the window was retracted"),
    )


def alerts_columns(source: Source, windows: Windows) -> Columns:
    """The columns of a rule that a final window broke."""
    return (
        TableColumn("arrival_unit", "date", "arrival day that closed the window"),
        TableColumn("rule", "string", "name of the rule"),
        _key(source),
        *_window(windows),
        *_RECORDS,
        *_aggregates(source, windows),
        _SEVERITY,
        TableColumn("episode_start", "timestamp", "start of the first window of the episode"),
        TableColumn(
            "correction",
            "bigint",
            "number of the correction that raised the alert; null if it was raised at first",
        ),
        TableColumn(
            "retracted_by",
            "bigint",
            "number of the correction that retracted the alert; null while it stands",
        ),
    )


def episodes_columns(source: Source, windows: Windows) -> Columns:
    """The columns of an episode as it stood at the close of an arrival day."""
    return (
        TableColumn("arrival_unit", "date", "arrival day at whose close the episode stood so"),
        TableColumn("rule", "string", "name of the rule"),
        _key(source),
        TableColumn("episode_start", "timestamp", "start of its first window"),
        TableColumn(
            "until",
            "timestamp",
            "end of its last window so far; of a silence the key's next record, or the close time",
        ),
        TableColumn(
            "open_until",
            "timestamp",
            "once the close time is past it, no window can continue the episode; null while the "
            "key is silent",
        ),
        TableColumn(
            "has_alert",
            "boolean",
            "whether the day raised an alert of it; false of a silence that goes on or ends",
        ),
        TableColumn("alerts", "bigint", "number of its alerts so far"),
        TableColumn(
            "severity",
            "double",
            "largest severity so far; of a silence, over all its length until then",
        ),
        *_window(windows, "worst window so far: "),
        TableColumn(
            "worst", (*_RECORDS, *_aggregates(source, windows)), "the result of that window"
        ),
    )


def notifications_columns(source: Source, windows: Windows) -> Columns:
    """The columns of an event of an episode."""
    return (
        TableColumn("arrival_unit", "date", "arrival day that caused the event"),
        TableColumn("notification_id", "string", "digest that identifies the event in every run"),
        TableColumn("rule", "string", "name of the rule"),
        _key(source),
        TableColumn("episode_start", "timestamp", "start of the first window of the episode"),
        TableColumn(
            "event",
            "string",
            "opened, worsened or ended; retracted: a correction left no alert of the episode",
        ),
        *_window(windows, "worst window so far: "),
        TableColumn("record_count", "bigint", "number of records in that window"),
        TableColumn("aggregates", "string", "the window's aggregates, as JSON"),
        TableColumn("severity", "double", "the window's severity"),
        TableColumn("since", "timestamp", "first instant of the episode"),
        TableColumn(
            "until",
            "timestamp",
            "end of the last window so far; of a silence that ended: the key's next record",
        ),
        TableColumn(
            "correction",
            "bigint",
            "number of the correction that added the row; null if none did",
        ),
        TableColumn(
            "retracted_by",
            "bigint",
            "number of the correction that retracted the row; null while it stands",
        ),
    )


def failed_windows_columns(source: Source, windows: Windows) -> Columns:
    """The columns of an aggregate of a closed window that can't be computed."""
    return (
        TableColumn("arrival_unit", "date", "arrival day that closed the window"),
        _key(source),
        *_window(windows),
        TableColumn("aggregate", "string", "name of the aggregate"),
        TableColumn("message", "string", "why it can't be computed, and what to do"),
    )


def firings_columns(source: Source, windows: Windows) -> Columns:
    """The columns of a firing of a window."""
    return (
        TableColumn("arrival_unit", "date", "arrival day that made the window fire"),
        _key(source),
        *_window(windows),
        *_FIRING,
        TableColumn(
            "cause", "string", "RECORD: the window got a record; STREAM_TIME: stream time advanced"
        ),
        TableColumn("stream_time", "timestamp", "stream time at the firing"),
        TableColumn("fired_after", "bigint", "offset of the record after which the window fired"),
        *(_FIRED_AFTER if source.has_several_partitions else ()),
        *_RECORDS,
        *_aggregates(source, windows),
        TableColumn("is_final", "boolean", "true: the window was closed at the firing"),
    )


def early_warnings_columns(source: Source, windows: Windows) -> Columns:
    """The columns of a rule that a firing broke before its window closed."""
    return (
        TableColumn(
            "arrival_unit", "date", "arrival day that raised the warning, or closed its window"
        ),
        TableColumn("rule", "string", "name of the rule"),
        _key(source),
        *_window(windows),
        TableColumn(
            "state",
            "string",
            "open: just raised; confirmed or withdrawn: the final result breaks the rule, or not",
        ),
        *_FIRING,
        TableColumn("stream_time", "timestamp", "stream time at the firing"),
        *_RECORDS,
        *_aggregates(source, windows),
        _SEVERITY,
    )


def processed_columns(source: Source, windows: Windows) -> Columns:
    """The columns of a row that a user's function made of a firing."""
    columns = {} if windows.process is None else windows.process.columns
    made = (TableColumn(name, kind, "result of the function") for name, kind in columns.items())
    return (
        TableColumn("arrival_unit", "date", "arrival day that made the window fire"),
        _key(source),
        *_window(windows),
        *_FIRING,
        TableColumn("row_number", "bigint", "number of the row among those of its firing, from 0"),
        *made,
    )


def _window(windows: Windows, of: str = "") -> Iterable[TableColumn]:
    """The bounds of a window and, for row windows, the columns that identify the row."""
    is_exclusive = windows.spec.excludes_end
    end = "first instant after the window" if is_exclusive else "last instant of the window"
    yield TableColumn("window_start", "timestamp", f"{of}first instant of the window")
    yield TableColumn("window_end", "timestamp", f"{of}{end}")
    yield from (column for column in _ROW if column.name in windows.row_key)


def _key(source: Source) -> TableColumn:
    if isinstance(source.key, str):
        return TableColumn("key", source.types[source.key], f"the source's column {source.key}")
    if not source.key_columns:
        return TableColumn("key", "string", "null: all records have one key")
    parts = (TableColumn(name, source.types[name], "column of the source") for name in source.key)
    return TableColumn(
        "key", tuple(parts), "the columns whose values each have windows of their own"
    )


def _arrival(source: Source) -> Iterable[TableColumn]:
    if source.arrival_column is not None:
        kind = source.types[source.arrival_column]
        yield TableColumn(
            source.arrival_column, kind, "when the record arrived; orders the records"
        )


def _values(source: Source) -> Iterable[TableColumn]:
    return (
        TableColumn(name, kind, "value from the source") for name, kind in source.values.items()
    )


def _aggregates(source: Source, windows: Windows) -> Iterable[TableColumn]:
    types = windows.result_columns(source)
    for aggregate in windows.aggregate_list:
        yield TableColumn(aggregate.name, types[aggregate.name], str(aggregate))
    yield TableColumn("failed", "array<string>", "names of the aggregates that can't be computed")
