"""Which tables a pipeline has, and where they lie: `<warehouse>/<pipeline>[/<windows>]/<table>`.

Plain values, without Spark; `storage.tables` makes tables of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Generic, TypeVar

from windows_pipeline.config import Pipeline
from windows_pipeline.storage.catalog import of_firings, of_source, of_windows
from windows_pipeline.storage.catalog.columns import Columns, TableColumn
from windows_pipeline.storage.catalog.kind import Step, TableKind, TableOwner, TableSpec
from windows_pipeline.storage.catalog.properties import (
    CORRECTION_BEGUN,
    CORRECTION_DETAILS,
    CORRECTION_FINISHED,
    DIGEST,
)

__all__ = [
    "CORRECTION_BEGUN",
    "CORRECTION_DETAILS",
    "CORRECTION_FINISHED",
    "DIGEST",
    "OF_SOURCE",
    "OF_WINDOWS",
    "Columns",
    "PipelineTables",
    "Step",
    "TableColumn",
    "TableKind",
    "TableSpec",
    "WindowTables",
    "specs_of",
]

T = TypeVar("T")

OF_SOURCE = (
    of_source.RAW_EVENTS,
    of_source.ARRIVAL_LOG,
    of_source.REJECTED_RECORDS,
    of_source.QUARANTINED_FILES,
    of_source.LANDED_FILES,
)
"""The tables in the folder of a pipeline."""
OF_WINDOWS = (
    of_windows.KEYED_WINDOWS,
    of_windows.LATE_RECORDS,
    of_windows.FINAL_WINDOWS,
    of_windows.CORRECTIONS,
    of_windows.ALERTS,
    of_windows.EPISODES,
    of_windows.FAILED_WINDOWS,
    of_windows.NOTIFICATIONS,
    of_firings.FIRINGS,
    of_firings.EARLY_WARNINGS,
    of_firings.PROCESSED,
    of_firings.COMPUTED_DAYS,
    of_firings.FIRED_DAYS,
    of_firings.PROCESSED_DAYS,
)
"""The tables in the folder of a definition."""


class _TablesOf(Generic[T]):
    """Tables of one owner, each made when it is asked for first."""

    def __init__(self, owner: TableOwner, warehouse: str, make: Callable[[TableSpec], T]) -> None:
        """Takes what the tables are of, where they lie, and what is made of each.

        Args:
            owner: The pipeline, and maybe a definition.
            warehouse: The folder or URI of all tables.
            make: Makes a table of its plain value.
        """
        self._owner = owner
        self._warehouse = warehouse
        self._make = make

    def _made(self, kind: TableKind) -> T:
        return self._make(kind.of(self._owner, self._warehouse))

    def _written(self, kinds: Iterable[TableKind]) -> list[T]:
        """The results among some tables that the pipeline writes, as it is declared now."""
        results = (kind for kind in kinds if kind.step and kind.is_written(self._owner))
        return [getattr(self, kind.name) for kind in results]


class WindowTables(_TablesOf[T]):
    """The tables of one named window definition, also those that it does not write."""

    @cached_property
    def keyed_windows(self) -> T:
        """Windows as arrival units and micro-batches left them."""
        return self._made(of_windows.KEYED_WINDOWS)

    @cached_property
    def late_records(self) -> T:
        """Records that no window counts."""
        return self._made(of_windows.LATE_RECORDS)

    @cached_property
    def final_windows(self) -> T:
        """Closed windows."""
        return self._made(of_windows.FINAL_WINDOWS)

    @cached_property
    def corrections(self) -> T:
        """Final windows that a correction changed."""
        return self._made(of_windows.CORRECTIONS)

    @cached_property
    def alerts(self) -> T:
        """Rules that final windows broke."""
        return self._made(of_windows.ALERTS)

    @cached_property
    def episodes(self) -> T:
        """Episodes of alerts."""
        return self._made(of_windows.EPISODES)

    @cached_property
    def failed_windows(self) -> T:
        """Aggregates that can't be computed."""
        return self._made(of_windows.FAILED_WINDOWS)

    @cached_property
    def notifications(self) -> T:
        """What happened to episodes."""
        return self._made(of_windows.NOTIFICATIONS)

    @cached_property
    def firings(self) -> T:
        """Firings, of a definition with a trigger."""
        return self._made(of_firings.FIRINGS)

    @cached_property
    def early_warnings(self) -> T:
        """Rules that firings broke."""
        return self._made(of_firings.EARLY_WARNINGS)

    @cached_property
    def processed(self) -> T:
        """The rows that a user's function makes of firings."""
        return self._made(of_firings.PROCESSED)

    @cached_property
    def computed_days(self) -> T:
        """The days whose windows and alerts are computed to the end."""
        return self._made(of_firings.COMPUTED_DAYS)

    @cached_property
    def fired_days(self) -> T:
        """The days whose firings are computed, without a user's function."""
        return self._made(of_firings.FIRED_DAYS)

    @cached_property
    def processed_days(self) -> T:
        """The days whose firings are computed, with a user's function."""
        return self._made(of_firings.PROCESSED_DAYS)

    @property
    def days_of_firings(self) -> T:
        """The table of the days whose firings are computed, as the definition is now."""
        calls = of_firings.PROCESSED_DAYS.is_written(self._owner)
        return self.processed_days if calls else self.fired_days

    @property
    def of_every_definition(self) -> list[T]:
        """The results that every definition writes: no firings, no notifications."""
        return [getattr(self, kind.name) for kind in OF_WINDOWS if kind.is_always_written]

    @property
    def of_firings(self) -> list[T]:
        """The firings that the definition writes, and what follows from them."""
        kinds = (of_firings.FIRINGS, of_firings.EARLY_WARNINGS, of_firings.PROCESSED)
        return self._written(kinds)

    @property
    def written(self) -> list[T]:
        """All results that the definition writes."""
        return self._written(OF_WINDOWS)


class PipelineTables(_TablesOf[T]):
    """The tables of a pipeline: the source's, and those of each window definition."""

    @cached_property
    def raw_events(self) -> T:
        """The accepted records."""
        return self._made(of_source.RAW_EVENTS)

    @cached_property
    def arrival_log(self) -> T:
        """What arrived in each arrival unit."""
        return self._made(of_source.ARRIVAL_LOG)

    @cached_property
    def rejected_records(self) -> T:
        """The other records."""
        return self._made(of_source.REJECTED_RECORDS)

    @cached_property
    def quarantined_files(self) -> T:
        """The bad files that were left out (rule A8)."""
        return self._made(of_source.QUARANTINED_FILES)

    @cached_property
    def landed_files(self) -> T:
        """The files that were ingested."""
        return self._made(of_source.LANDED_FILES)

    def of(self, windows_name: str) -> WindowTables[T]:
        """The tables of a window definition."""
        if windows_name not in self._of_windows:
            owner = TableOwner(self._owner.pipeline, windows_name)
            self._of_windows[windows_name] = WindowTables(owner, self._warehouse, self._make)
        return self._of_windows[windows_name]

    @cached_property
    def _of_windows(self) -> dict[str, WindowTables[T]]:
        return {}

    @property
    def stream_checkpoint(self) -> str:
        """The folder in which Spark stores how far the pipeline's stream has come."""
        return f"{self._warehouse}/{self._owner.name}/_stream"

    @property
    def of_source(self) -> list[T]:
        """The source's results that the pipeline writes."""
        return self._written(OF_SOURCE)

    @property
    def written(self) -> list[T]:
        """Every result that the pipeline writes: the source's, then those of each definition."""
        of_windows = (self.of(name).written for name in self._owner.pipeline.windows)
        return [*self.of_source, *(table for tables in of_windows for table in tables)]


def specs_of(pipeline: Pipeline, warehouse: str) -> PipelineTables[TableSpec]:
    """The tables of a pipeline, as plain values.

    Args:
        pipeline: The pipeline.
        warehouse: The folder or URI of all tables.
    """
    return PipelineTables(TableOwner(pipeline), warehouse, lambda spec: spec)
