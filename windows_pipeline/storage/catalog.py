"""Which tables a pipeline has, and where they lie: `<warehouse>/<pipeline>[/<windows>]/<table>`.

Plain values, without Spark; `storage.tables` makes tables of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from windows_pipeline.config import Pipeline, Source
from windows_pipeline.config.definition import table_definition
from windows_pipeline.storage import schemas

T = TypeVar("T")

DIGEST = "windows_pipeline.digest"
"""The table property with the digest of the definition that the rows follow."""
CORRECTION_BEGUN = "windows_pipeline.correction"
"""The property of `corrections` with the number of the newest correction."""
CORRECTION_FINISHED = "windows_pipeline.corrections_finished"
"""The number of the newest finished correction."""
CORRECTION_DETAILS = "windows_pipeline.correction_details"
"""The other fields of the newest correction, as JSON."""


@dataclass(frozen=True)
class TableSpec:
    """What a table of a pipeline is.

    Attributes:
        name: Its name for people: `flights/hourly/final_windows`.
        description: What a row is.
        location: Its folder or URI.
        columns: Its columns; `arrival_unit` is among them.
        sorted_by: The columns that sort the rows of a file, unless a micro-batch appended the
            file. Files have statistics of these columns only, so that readers skip files by them.
        definition: The part of the pipeline's definition that its rows follow.
        partitioned: Whether each arrival unit has files of its own, so that runs of different
            arrival units do not conflict. The arrival units of a small table, which is read whole,
            share files.
        change_feed: Whether Delta keeps a change data feed of it.
        has_whole_days: Whether a micro-batch writes all rows that its arrival units have so far,
            which replace those of earlier micro-batches.
    """

    name: str
    description: str
    location: str
    columns: schemas.Columns
    sorted_by: tuple[str, ...]
    definition: dict[str, str]
    partitioned: bool = True
    change_feed: bool = False
    has_whole_days: bool = False

    @property
    def short_name(self) -> str:
        """Its name within its pipeline or definition: `final_windows`."""
        return self.name.rpartition("/")[2]

    @property
    def what_fills(self) -> str:
        """The commands that fill the table, of which the pipeline has one."""
        pipeline = self.name.partition("/")[0]
        return (
            f"windows-pipeline run {pipeline}, or of a stream: windows-pipeline stream {pipeline}"
        )


@dataclass(frozen=True)
class SourceTablesOf(Generic[T]):
    """The tables that every window definition of a pipeline shares.

    Attributes:
        raw_events: The accepted records.
        arrival_log: What arrived in each arrival unit.
        rejected_records: The other records.
        quarantined_files: The bad files that were left out; None if a bad file stops the pipeline.
    """

    raw_events: T
    arrival_log: T
    rejected_records: T
    quarantined_files: T | None

    @property
    def all(self) -> list[T]:
        """The tables that this pipeline has."""
        tables = [self.raw_events, self.arrival_log, self.rejected_records]
        return tables if self.quarantined_files is None else [*tables, self.quarantined_files]


@dataclass(frozen=True)
class WindowTablesOf(Generic[T]):
    """The tables of one named window definition."""

    keyed_windows: T
    late_records: T
    final_windows: T
    corrections: T
    alerts: T
    episodes: T
    failed_windows: T


@dataclass(frozen=True)
class FiringTablesOf(Generic[T]):
    """The tables of a definition that has a trigger.

    Attributes:
        firings: Every firing.
        early_warnings: The rules that firings broke. None for sessions: a session's bounds change
            whenever it grows, so no final result has the bounds of an earlier firing.
        processed: The rows that a user's function makes of firings; None without a function.
    """

    firings: T
    early_warnings: T | None
    processed: T | None

    @property
    def all(self) -> list[T]:
        """The tables that this definition has."""
        maybe = (self.early_warnings, self.processed)
        return [self.firings, *(table for table in maybe if table is not None)]


def source_tables(pipeline: Pipeline, warehouse: str) -> SourceTablesOf[TableSpec]:
    """The tables of a pipeline's source."""
    table = partial(_table, pipeline, None, warehouse)
    return SourceTablesOf(
        table(
            "raw_events",
            "A record that was accepted.",
            schemas.raw_events_columns(pipeline.source),
            "event_time",
        ),
        table(
            "arrival_log",
            "A source partition's part of an arrival unit; the row commits the unit.",
            schemas.arrival_log_columns(has_zones=bool(pipeline.source.zones)),
            "source_partition",
            partitioned=False,
        ),
        table(
            "rejected_records",
            "A record that was rejected, with the reason and its text.",
            schemas.rejected_records_columns(),
            "reason",
        ),
        quarantined_files(pipeline, warehouse) if pipeline.source.skips_bad_files else None,
    )


def quarantined_files(pipeline: Pipeline, warehouse: str) -> TableSpec:
    """The table of the bad files that were left out (rule A8)."""
    return _table(
        pipeline,
        None,
        warehouse,
        "quarantined_files",
        "A bad landed file that was left out, with what is wrong with it.",
        schemas.quarantined_files_columns(),
        "file",
        partitioned=False,
    )


def window_tables(
    pipeline: Pipeline, windows_name: str, warehouse: str
) -> WindowTablesOf[TableSpec]:
    """The tables of a named window definition of a pipeline."""
    windows = pipeline.windows[windows_name]

    table = partial(_table, pipeline, windows_name, warehouse)
    source = windows.keyed(pipeline.source)
    by_key = _key_order(source)
    return WindowTablesOf(
        table(
            "keyed_windows",
            "A window that an arrival unit or micro-batch changed or closed, as that left it.",
            schemas.keyed_windows_columns(source, windows),
            "window_end",
            *by_key,
        ),
        table(
            "late_records",
            "A record that no window counts, with the reason.",
            schemas.late_records_columns(source),
            "event_time",
        ),
        table(
            "final_windows",
            "A window that an arrival unit closed; only a correction changes it.",
            schemas.final_windows_columns(source, windows),
            "window_end",
            *by_key,
            change_feed=True,
        ),
        table(
            "corrections",
            "A final window that a correction changed, retracted or added, with the cause.",
            schemas.corrections_columns(source, windows),
            "correction",
            "window_end",
            *by_key,
        ),
        table(
            "alerts",
            "A rule that a final window broke, with its episode; a retracted alert stays here.",
            schemas.alerts_columns(source, windows),
            "window_end",
            "rule",
            *by_key,
            change_feed=True,
        ),
        table(
            "episodes",
            "Alerts of one key and rule whose windows overlap, as they stood at a day's close.",
            schemas.episodes_columns(source, windows),
            "until",
            "rule",
            *by_key,
            has_whole_days=True,
        ),
        table(
            "failed_windows",
            "An aggregate of a closed window that can't be computed, with the reason.",
            schemas.failed_windows_columns(source, windows),
            "window_end",
            *by_key,
        ),
    )


def notifications(pipeline: Pipeline, windows_name: str, warehouse: str) -> TableSpec | None:
    """The table of what happened to episodes; None if the pipeline notifies nobody of them."""
    windows = pipeline.windows[windows_name]
    if not (pipeline.notify and windows.alerts):
        return None
    source = windows.keyed(pipeline.source)
    return _table(
        pipeline,
        windows_name,
        warehouse,
        "notifications",
        "An episode of alerts that opened, worsened, ended or was retracted.",
        schemas.notifications_columns(source, windows),
        "until",
        "rule",
        *_key_order(source),
    )


def firing_tables(
    pipeline: Pipeline, windows_name: str, warehouse: str
) -> FiringTablesOf[TableSpec] | None:
    """The tables of a definition's firings; None if it has no trigger."""
    windows = pipeline.windows[windows_name]
    if windows.trigger is None:
        return None

    table = partial(_table, pipeline, windows_name, warehouse)
    source = windows.keyed(pipeline.source)
    by_key = _key_order(source)
    firings = table(
        "firings",
        "A firing of a window: early, on time or late.",
        schemas.firings_columns(source, windows),
        "window_end",
        *by_key,
    )
    processed = None
    if windows.process is not None:
        processed = table(
            "processed",
            f"A row that {windows.process.function} made of a firing.",
            schemas.processed_columns(source, windows),
            "window_end",
            *by_key,
        )
    if not windows.spec.keeps_bounds:
        return FiringTablesOf(firings, None, processed)
    early_warnings = table(
        "early_warnings",
        "A rule that a firing broke before its window closed: a row when the warning is raised, "
        "and a row when the window closes.",
        schemas.early_warnings_columns(source, windows),
        "window_end",
        "rule",
        *by_key,
    )
    return FiringTablesOf(firings, early_warnings, processed)


def computed_days(
    pipeline: Pipeline,
    windows_name: str,
    warehouse: str,
    *,
    fired: bool,
    processed: bool | None = None,
) -> TableSpec:
    """The table of the days that a definition has computed to the end; it is not a result.

    Args:
        pipeline: The pipeline.
        windows_name: The definition.
        warehouse: The folder or URI of all tables.
        fired: True for the days of its firings, false for those of its windows and alerts.
        processed: Whether a function was called for the firings; None for whether the definition
            has a function: days of firings from before lack its rows.
    """
    if processed is None:
        processed = pipeline.windows[windows_name].process is not None
    of_firings = "_processed_days" if processed else "_fired_days"
    name = f"{pipeline.name}/{windows_name}/{of_firings if fired else '_computed_days'}"
    return TableSpec(
        name,
        "A day whose results are computed from everything that was ingested.",
        f"{warehouse}/{name}",
        schemas.computed_days_columns(),
        (),
        {},
        partitioned=False,
    )


def landed_files(pipeline: Pipeline, warehouse: str) -> TableSpec:
    """The table of the files that were ingested, as they were then; it is not a result."""
    name = f"{pipeline.name}/_landed_files"
    return TableSpec(
        name,
        "A landed file as it was when it was ingested.",
        f"{warehouse}/{name}",
        schemas.landed_files_columns(),
        ("file",),
        {},
        partitioned=False,
    )


def stream_checkpoint(pipeline: Pipeline, warehouse: str) -> str:
    """The folder in which Spark stores how far a pipeline's stream has come."""
    return f"{warehouse}/{pipeline.name}/_stream"


def all_tables(pipeline: Pipeline, warehouse: str) -> list[TableSpec]:
    """Every table of results: the source's, each definition's, then firings and notifications."""
    of_windows = (window_tables(pipeline, name, warehouse) for name in pipeline.windows)
    fired = (firing_tables(pipeline, name, warehouse) for name in pipeline.windows)
    notified = (notifications(pipeline, name, warehouse) for name in pipeline.windows)
    return [
        *source_tables(pipeline, warehouse).all,
        *(table for tables in of_windows for table in vars(tables).values()),
        *(table for tables in fired if tables is not None for table in tables.all),
        *(table for table in notified if table is not None),
    ]


def _key_order(source: Source) -> tuple[str, ...]:
    """The columns that sort rows by key: the parts of a struct, which readers can skip files by."""
    if isinstance(source.key, str):
        return ("key",)
    return tuple(f"key.{name}" for name in source.key)


def _table(
    pipeline: Pipeline,
    windows_name: str | None,
    warehouse: str,
    table_name: str,
    description: str,
    columns: schemas.Columns,
    *sorted_by: str,
    change_feed: bool = False,
    partitioned: bool = True,
    has_whole_days: bool = False,
) -> TableSpec:
    """A table of a window definition, or of the source if `windows_name` is None."""
    folder = "" if windows_name is None else f"{windows_name}/"
    name = f"{pipeline.name}/{folder}{table_name}"
    return TableSpec(
        name,
        description,
        f"{warehouse}/{name}",
        columns,
        sorted_by,
        table_definition(pipeline, windows_name, table_name),
        partitioned=partitioned,
        change_feed=change_feed,
        has_whole_days=has_whole_days,
    )
