"""The tables of a definition that has a trigger, and those of the days that are computed."""

from __future__ import annotations

from windows_pipeline.steps import Step
from windows_pipeline.storage.catalog.columns import (
    RECORDS,
    RULE,
    SEVERITY,
    Columns,
    TableColumn,
    aggregate_columns,
    key_column,
    window_columns,
)
from windows_pipeline.storage.catalog.kind import KEY, TableKind, TableOwner

_FIRING = (
    TableColumn("firing_id", "bigint", "number of the firing within its window, from 0"),
    TableColumn("reason", "string", "EARLY, ON_TIME or LATE: before, at or after the window's end"),
)
_FIRED_AFTER = (
    TableColumn("fired_after_arrival_unit", "date", "arrival day of the record in fired_after"),
    TableColumn("fired_after_partition", "string", "source partition of the record in fired_after"),
)


def _firings(of: TableOwner) -> Columns:
    return (
        TableColumn("arrival_unit", "date", "arrival day that made the window fire"),
        key_column(of.source),
        *window_columns(of.windows),
        *_FIRING,
        TableColumn(
            "cause", "string", "RECORD: the window got a record; STREAM_TIME: stream time advanced"
        ),
        TableColumn("stream_time", "timestamp", "stream time at the firing"),
        TableColumn("fired_after", "bigint", "offset of the record after which the window fired"),
        *(_FIRED_AFTER if of.source.has_several_partitions else ()),
        *RECORDS,
        *aggregate_columns(of.source, of.windows),
        TableColumn("is_final", "boolean", "true: the window was closed at the firing"),
    )


def _early_warnings(of: TableOwner) -> Columns:
    return (
        TableColumn(
            "arrival_unit", "date", "arrival day that raised the warning, or closed its window"
        ),
        RULE,
        key_column(of.source),
        *window_columns(of.windows),
        TableColumn(
            "state",
            "string",
            "open: just raised; confirmed or withdrawn: the final result breaks the rule, or not",
        ),
        *_FIRING,
        TableColumn("stream_time", "timestamp", "stream time at the firing"),
        *RECORDS,
        *aggregate_columns(of.source, of.windows),
        SEVERITY,
    )


def _processed(of: TableOwner) -> Columns:
    process = of.windows.process
    columns = {} if process is None else process.columns
    made = (TableColumn(name, kind, "result of the function") for name, kind in columns.items())
    return (
        TableColumn("arrival_unit", "date", "arrival day that made the window fire"),
        key_column(of.source),
        *window_columns(of.windows),
        *_FIRING,
        TableColumn("row_number", "bigint", "number of the row among those of its firing, from 0"),
        *made,
    )


def _days(_: TableOwner) -> Columns:
    return (TableColumn("arrival_unit", "date", "arrival day"),)


def _fires(of: TableOwner) -> bool:
    return of.windows.trigger is not None


def _warns(of: TableOwner) -> bool:
    # A session's bounds change whenever it grows, so no final result has those of earlier firings.
    trigger = of.windows.trigger
    return trigger is not None and not trigger.final_only and of.windows.spec.keeps_bounds


FIRINGS = TableKind(
    "firings",
    Step.FIRINGS,
    "A firing of a window: early, on time, late or final.",
    _firings,
    key=lambda of: (*of.windows.window_key, "firing_id"),
    follows=("trigger", "columns.failed"),
    sorted_by=("window_end", KEY),
    is_written=_fires,
)
EARLY_WARNINGS = TableKind(
    "early_warnings",
    Step.FIRINGS,
    "A rule that a firing broke before its window closed: a row when the warning is raised, and a "
    "row when the window closes.",
    _early_warnings,
    key=lambda of: ("rule", *of.windows.window_key, "state"),
    follows=("alerts", "trigger", "columns.failed"),
    sorted_by=("window_end", "rule", KEY),
    is_written=_warns,
)
PROCESSED = TableKind(
    "processed",
    Step.FIRINGS,
    "A row that a user's function made of a firing.",
    _processed,
    key=lambda of: (*of.windows.window_key, "firing_id", "row_number"),
    follows=("trigger", "process"),
    sorted_by=("window_end", KEY),
    is_written=lambda of: _fires(of) and of.windows.process is not None,
)
_COMPUTED = "A day whose results are computed from everything that was ingested."
# Days of windows and alerts, of firings, and of firings for which a function was called, as days
# from before the definition had one lack its rows.
COMPUTED_DAYS = TableKind(
    "_computed_days", None, _COMPUTED, _days, key=lambda _: ("arrival_unit",), partitioned=False
)
FIRED_DAYS = TableKind(
    "_fired_days",
    None,
    _COMPUTED,
    _days,
    key=lambda _: ("arrival_unit",),
    is_written=lambda of: _fires(of) and of.windows.process is None,
    partitioned=False,
)
PROCESSED_DAYS = TableKind(
    "_processed_days",
    None,
    _COMPUTED,
    _days,
    key=lambda _: ("arrival_unit",),
    is_written=PROCESSED.is_written,
    partitioned=False,
)
