"""Which tables a pipeline has, and where they lie: `<warehouse>/<pipeline>[/<windows>]/<table>`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import types as T

from windows_pipeline.config import Pipeline
from windows_pipeline.config.definition import table_definition
from windows_pipeline.storage import schemas
from windows_pipeline.storage.table import Table
from windows_pipeline.windows import SessionWindows


@dataclass(frozen=True)
class SourceTables:
    """The tables that every window definition of a pipeline shares."""

    raw_events: Table
    arrival_log: Table
    rejected_records: Table


@dataclass(frozen=True)
class WindowTables:
    """The tables of one named window definition."""

    keyed_windows: Table
    late_records: Table
    final_windows: Table
    corrections: Table
    alerts: Table

    def before_correction(self) -> WindowTables:
        """The same tables, which may hold rows of another grace."""
        return WindowTables(
            *(replace(table, grace_may_differ=True) for table in vars(self).values())
        )


@dataclass(frozen=True)
class FiringTables:
    """The tables of a definition that has a trigger.

    Attributes:
        firings: Each firing.
        early_warnings: The rules that firings broke; None of sessions, which have other bounds
            whenever they grow, so that no final result is that of a firing.
    """

    firings: Table
    early_warnings: Table | None

    @property
    def all(self) -> list[Table]:
        """Those that there are."""
        return [self.firings, *([self.early_warnings] if self.early_warnings else [])]

    def before_correction(self) -> FiringTables:
        """The same tables, which may hold rows of another grace."""
        early = self.early_warnings
        return FiringTables(
            replace(self.firings, grace_may_differ=True),
            early and replace(early, grace_may_differ=True),
        )


def _table(
    pipeline: Pipeline,
    windows_name: str | None,
    warehouse: str,
    name: str,
    row: str,
    schema: T.StructType,
    *sorted_by: str,
    change_feed: bool = False,
    partitioned: bool = True,
) -> Table:
    """A table of a window definition, or of the source where none is named."""
    of_windows = "" if windows_name is None else f"{windows_name}/"
    full_name = f"{pipeline.name}/{of_windows}{name}"
    definition = table_definition(pipeline, windows_name, name)
    place = f"{warehouse}/{full_name}"
    return Table(
        full_name,
        row,
        place,
        schema,
        sorted_by,
        definition,
        change_feed,
        partitioned=partitioned,
    )


def source_tables(pipeline: Pipeline, warehouse: str) -> SourceTables:
    """The tables of a pipeline's source."""
    table = partial(_table, pipeline, None, warehouse)
    return SourceTables(
        table(
            "raw_events",
            "A record that was accepted.",
            schemas.raw_events(pipeline.source),
            "event_time",
        ),
        table(
            "arrival_log",
            "A source partition's part of an arrival unit; its presence commits the unit.",
            schemas.arrival_log(),
            "source_partition",
            partitioned=False,
        ),
        table(
            "rejected_records",
            "A record that could not be read, with the reason and its text.",
            schemas.rejected_records(),
            "reason",
        ),
    )


def window_tables(pipeline: Pipeline, windows_name: str, warehouse: str) -> WindowTables:
    """The tables of a named window definition of a pipeline."""
    windows = pipeline.windows[windows_name]

    table = partial(_table, pipeline, windows_name, warehouse)
    source = pipeline.source
    return WindowTables(
        table(
            "keyed_windows",
            "A window that the unit, or a micro-batch of it, changed or closed, as it left it.",
            schemas.keyed_windows(source, windows),
            "window_end",
            "key",
        ),
        table(
            "late_records",
            "A record that no window counts, with the reason.",
            schemas.late_records(source),
            "event_time",
        ),
        table(
            "final_windows",
            "A window that the unit closed; it never changes but by a correction.",
            schemas.final_windows(source, windows),
            "window_end",
            "key",
            change_feed=True,
        ),
        table(
            "corrections",
            "A final window that a correction changed, took back or added, with the cause.",
            schemas.corrections(source, windows),
            "correction",
            "window_end",
            "key",
        ),
        table(
            "alerts",
            "A rule that a final window broke, with its episode; taken back, it stays.",
            schemas.alerts(source, windows),
            "window_end",
            "rule",
            "key",
            change_feed=True,
        ),
    )


def firing_tables(pipeline: Pipeline, windows_name: str, warehouse: str) -> FiringTables | None:
    """The tables of a definition's firings; None where it has no trigger."""
    windows = pipeline.windows[windows_name]
    if windows.trigger is None:
        return None

    table = partial(_table, pipeline, windows_name, warehouse)
    firings = table(
        "firings",
        "A firing of a window: early, on time or late.",
        schemas.firings(pipeline.source, windows),
        "window_end",
        "key",
    )
    if isinstance(windows.spec, SessionWindows):
        return FiringTables(firings, None)
    early_warnings = table(
        "early_warnings",
        "A rule that a firing broke first, when it did; again, when its window closed.",
        schemas.early_warnings(pipeline.source, windows),
        "window_end",
        "rule",
        "key",
    )
    return FiringTables(firings, early_warnings)


def computed_days(pipeline: Pipeline, windows_name: str, warehouse: str, *, fired: bool) -> Table:
    """Which days of a definition are computed to the end: no result, and of no definition.

    Args:
        pipeline: The pipeline.
        windows_name: The definition.
        warehouse: Where tables lie.
        fired: Whether its firings are meant; else its windows and alerts.
    """
    name = f"{pipeline.name}/{windows_name}/{'_fired_days' if fired else '_computed_days'}"
    described = "A day whose results follow from what was ingested."
    place = f"{warehouse}/{name}"
    return Table(name, described, place, schemas.computed_days(), (), {}, partitioned=False)


def landed_files(pipeline: Pipeline, warehouse: str) -> Table:
    """Which files were ingested, and what they were like then: no result, and of no definition."""
    name = f"{pipeline.name}/_landed_files"
    described = "A landed file as it was when it was ingested."
    place = f"{warehouse}/{name}"
    return Table(name, described, place, schemas.landed_files(), ("file",), {}, partitioned=False)


def stream_checkpoint(pipeline: Pipeline, warehouse: str) -> str:
    """The folder where Spark notes how far a pipeline's stream has come."""
    return f"{warehouse}/{pipeline.name}/_stream"


def all_tables(pipeline: Pipeline, warehouse: str) -> list[Table]:
    """Every table of a pipeline: its source's, each window definition's, then firings."""
    of_windows = (window_tables(pipeline, name, warehouse) for name in pipeline.windows)
    groups = (source_tables(pipeline, warehouse), *of_windows)
    fired = (firing_tables(pipeline, name, warehouse) for name in pipeline.windows)
    return [
        *(table for group in groups for table in vars(group).values()),
        *(table for tables in fired if tables is not None for table in tables.all),
    ]
