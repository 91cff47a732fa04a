"""The tables of a window definition: windows, late records, alerts and what follows from them."""

from __future__ import annotations

from windows_pipeline.steps import Step
from windows_pipeline.storage.catalog.columns import (
    BATCH,
    CLOSED_BY,
    KEY_OF_RECORD,
    RECORDS,
    RULE,
    SEVERITY,
    Columns,
    TableColumn,
    aggregate_columns,
    key_column,
    value_columns,
    window_columns,
)
from windows_pipeline.storage.catalog.kind import KEY, TableKind, TableOwner


def _window(of: TableOwner, text: str = "") -> Columns:
    """The key and the window of a row."""
    return (key_column(of.source), *window_columns(of.windows, text))


def _result(of: TableOwner) -> Columns:
    """What is computed of a window."""
    return (*RECORDS, *aggregate_columns(of.source, of.windows))


def _keyed_windows(of: TableOwner) -> Columns:
    return (
        TableColumn("arrival_unit", "date", "arrival day that changed or closed the window"),
        *_window(of),
        *_result(of),
        TableColumn("closed", "boolean", "true: the window is final; false: it can still change"),
        BATCH,
    )


def _late_records(of: TableOwner) -> Columns:
    return (
        TableColumn(
            "arrival_unit", "date", "arrival day after which no window can count the record"
        ),
        TableColumn("record_arrival_unit", "date", "arrival day of the record"),
        *KEY_OF_RECORD,
        key_column(of.source),
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
        *value_columns(of.source),
    )


def _final_windows(of: TableOwner) -> Columns:
    return (CLOSED_BY, *_window(of), *_result(of))


def _corrections(of: TableOwner) -> Columns:
    return (
        TableColumn(
            "correction", "bigint", "number of the correction: 1, 2, ... in this definition"
        ),
        CLOSED_BY,
        *_window(of),
        TableColumn("change", "string", "changed, retracted or added"),
        TableColumn("cause", "string", "why, as given by whoever ran the correction"),
        TableColumn(
            "old", _result(of), "result before the correction; null if the window was added"
        ),
        TableColumn(
            "new", _result(of), "result after the correction; null if the window was retracted"
        ),
    )


def _alerts(of: TableOwner) -> Columns:
    return (
        CLOSED_BY,
        RULE,
        *_window(of),
        *_result(of),
        SEVERITY,
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


def _episodes(of: TableOwner) -> Columns:
    return (
        TableColumn("arrival_unit", "date", "arrival day at whose close the episode stood so"),
        RULE,
        key_column(of.source),
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
        *window_columns(of.windows, "worst window so far: "),
        TableColumn("worst", _result(of), "the result of that window"),
    )


def _notifications(of: TableOwner) -> Columns:
    return (
        TableColumn("arrival_unit", "date", "arrival day that caused the event"),
        TableColumn("notification_id", "string", "digest that identifies the event in every run"),
        RULE,
        key_column(of.source),
        TableColumn("episode_start", "timestamp", "start of the first window of the episode"),
        TableColumn(
            "event",
            "string",
            "opened, worsened or ended; retracted: a correction left no alert of the episode",
        ),
        *window_columns(of.windows, "worst window so far: "),
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


def _failed_windows(of: TableOwner) -> Columns:
    return (
        CLOSED_BY,
        *_window(of),
        TableColumn("aggregate", "string", "name of the aggregate"),
        TableColumn("message", "string", "why it can't be computed, and what to do"),
    )


KEYED_WINDOWS = TableKind(
    "keyed_windows",
    Step.KEYED_WINDOWS,
    "A window that an arrival unit or micro-batch changed or closed, as that left it.",
    _keyed_windows,
    key=lambda of: ("arrival_unit", *of.windows.window_key, "batch"),
    follows=("partial_results", "columns.failed"),
    sorted_by=("window_end", KEY),
)
LATE_RECORDS = TableKind(
    "late_records",
    Step.KEYED_WINDOWS,
    "A record that no window counts, with the reason.",
    _late_records,
    key=lambda _: ("record_arrival_unit", "source_partition", "offset"),
    sorted_by=("event_time",),
)
FAILED_WINDOWS = TableKind(
    "failed_windows",
    Step.KEYED_WINDOWS,
    "An aggregate of a closed window that can't be computed, with the reason.",
    _failed_windows,
    key=lambda of: ("arrival_unit", *of.windows.window_key, "aggregate"),
    sorted_by=("window_end", KEY),
)
FINAL_WINDOWS = TableKind(
    "final_windows",
    Step.FINAL_WINDOWS,
    "A window that an arrival unit closed; only a correction changes it.",
    _final_windows,
    key=lambda of: ("arrival_unit", *of.windows.window_key),
    follows=("columns.failed",),
    sorted_by=("window_end", KEY),
    change_feed=True,
)
CORRECTIONS = TableKind(
    "corrections",
    Step.FINAL_WINDOWS,
    "A final window that a correction changed, retracted or added, with the cause.",
    _corrections,
    key=lambda of: ("correction", "arrival_unit", *of.windows.window_key),
    follows=("columns.failed",),
    sorted_by=("correction", "window_end", KEY),
)
ALERTS = TableKind(
    "alerts",
    Step.ALERTS,
    "A rule that a final window broke, with its episode; a retracted alert stays here.",
    _alerts,
    # The same alert may be retracted and raised again, by different corrections.
    key=lambda of: ("arrival_unit", "rule", *of.windows.window_key, "correction"),
    follows=("alerts", "columns.failed", "tables.episodes"),
    sorted_by=("window_end", "rule", KEY),
    change_feed=True,
)
EPISODES = TableKind(
    "episodes",
    Step.ALERTS,
    "Alerts of one key and rule whose windows overlap, as they stood at a day's close.",
    _episodes,
    key=lambda _: ("arrival_unit", "rule", "key", "episode_start"),
    follows=("alerts", "columns.failed"),
    sorted_by=("until", "rule", KEY),
    has_whole_days=True,
)
NOTIFICATIONS = TableKind(
    "notifications",
    Step.ALERTS,
    "An episode of alerts that opened, worsened, ended or was retracted.",
    _notifications,
    key=lambda _: ("arrival_unit", "notification_id"),
    follows=("alerts", "columns.failed"),
    sorted_by=("until", "rule", KEY),
    is_written=lambda of: bool(of.pipeline.notify and of.windows.alerts),
)
