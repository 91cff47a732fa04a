"""The tables that every window definition of a pipeline shares, and that of landed files."""

from __future__ import annotations

from windows_pipeline.steps import Step
from windows_pipeline.storage.catalog.columns import (
    BATCH,
    KEY_OF_RECORD,
    Columns,
    TableColumn,
    key_column,
    value_columns,
)
from windows_pipeline.storage.catalog.kind import TableKind, TableOwner


def _raw_events(of: TableOwner) -> Columns:
    source = of.source
    arrival = source.arrival_column
    arrived = "when the record arrived; orders the records"
    return (
        TableColumn("arrival_unit", "date", "arrival day of the record"),
        *KEY_OF_RECORD,
        key_column(source),
        TableColumn("event_time", "timestamp", "when the event happened"),
        TableColumn(
            "running_max",
            "timestamp",
            "latest event time up to this record in its arrival unit and source partition",
        ),
        *((TableColumn(arrival, source.types[arrival], arrived),) if arrival else ()),
        *value_columns(source),
        BATCH,
    )


def _arrival_log(of: TableOwner) -> Columns:
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
        *((TableColumn("ambiguous", "bigint", twice),) if of.source.zones else ()),
        TableColumn(
            "arrival_unit_rejected", "bigint", "number of rejected records, all partitions together"
        ),
        TableColumn("watermark", "timestamp", "watermark after these records, as decided then"),
        BATCH,
        TableColumn(
            "stream", "string", "id of the stream that brought them; null if a run by days did"
        ),
    )


def _rejected_records(_: TableOwner) -> Columns:
    return (
        TableColumn("arrival_unit", "date", "arrival day of the record"),
        TableColumn("file", "string", "landed file that holds the record"),
        TableColumn("reason", "string", "why the record was rejected"),
        TableColumn("original", "string", "text of the record"),
    )


def _quarantined_files(_: TableOwner) -> Columns:
    return (
        TableColumn("arrival_unit", "date", "arrival day that lacks the file's records"),
        TableColumn("file", "string", "the file, as the day of its folder and its name"),
        TableColumn("size_bytes", "bigint", "size of the file; null if its name can't be listed"),
        TableColumn("written", "timestamp", "when the file was last written; null if not known"),
        TableColumn("cause", "string", "what is wrong with the file"),
        TableColumn("fix", "string", "what to do"),
        BATCH,
    )


def _landed_files(_: TableOwner) -> Columns:
    return (
        TableColumn("arrival_unit", "date", "arrival day: the name of the file's folder"),
        TableColumn("file", "string", "name of the file"),
        TableColumn("size_bytes", "bigint", "size of the file"),
        TableColumn("written", "timestamp", "when the file was last written"),
        TableColumn("accepted", "bigint", "number of its records that were accepted"),
        TableColumn("rejected", "bigint", "number of its records that were rejected"),
    )


RAW_EVENTS = TableKind(
    "raw_events",
    Step.RAW_EVENTS,
    "A record that was accepted.",
    _raw_events,
    key=lambda _: ("arrival_unit", "source_partition", "offset"),
    sorted_by=("event_time",),
)
REJECTED_RECORDS = TableKind(
    "rejected_records",
    Step.RAW_EVENTS,
    "A record that was rejected, with the reason and its text.",
    _rejected_records,
    sorted_by=("reason",),
)
QUARANTINED_FILES = TableKind(
    "quarantined_files",
    Step.RAW_EVENTS,
    "A bad landed file that was left out, with what is wrong with it.",
    _quarantined_files,
    key=lambda _: ("file",),
    sorted_by=("file",),
    is_written=lambda of: of.source.skips_bad_files,
    partitioned=False,
)
ARRIVAL_LOG = TableKind(
    "arrival_log",
    Step.RAW_EVENTS,
    "A source partition's part of an arrival unit; the row commits the unit.",
    _arrival_log,
    key=lambda _: ("arrival_unit", "source_partition", "batch"),
    sorted_by=("source_partition",),
    partitioned=False,
)
LANDED_FILES = TableKind(
    "_landed_files",
    None,
    "A landed file as it was when it was ingested.",
    _landed_files,
    key=lambda _: ("arrival_unit", "file"),
    sorted_by=("file",),
    partitioned=False,
)
