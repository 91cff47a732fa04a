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
from windows_pipeline.storage.catalog.kind import TableKind, TableOwner, TableSpec
from windows_pipeline.storage.catalog.properties import (
    CORRECTION_BEGUN,
    CORRECTION_DETAILS,
    CORRECTION_FINISHED,
    DEFINITION,
    DIGEST,
)

__all__ = [
    "CORRECTION_BEGUN",
    "CORRECTION_DETAILS",
    "CORRECTION_FINISHED",
    "DEFINITION",
    "DIGEST",
    "OF_SOURCE",
    "OF_WINDOWS",
    "Columns",
    "PipelineSpecs",
    "PipelineTables",
    "TableColumn",
    "TableKind",
    "TableSpec",
    "WindowTables",
    "specs_of",
]

T_co = TypeVar("T_co", covariant=True)

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


class _Made:
    """A table of an owner, which is made when it is asked for first."""

    def __init__(self, kind: TableKind) -> None:
        self._kind = kind

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, tables: _TablesOf[T_co], owner: type | None = None) -> T_co:
        # The table takes this place in the instance, as a `cached_property` does.
        made = tables.__dict__[self._name] = tables.made(self._kind)
        return made


class _TablesOf(Generic[T_co]):
    """Tables of one owner."""

    def __init__(
        self, owner: TableOwner, warehouse: str, make: Callable[[TableSpec], T_co]
    ) -> None:
        """Takes what the tables are of, where they lie, and what is made of each.

        Args:
            owner: The pipeline, and maybe a definition.
            warehouse: The folder or URI of all tables.
            make: Makes a table of its plain value.
        """
        self._owner = owner
        self._warehouse = warehouse
        self._make = make

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline."""
        return self._owner.pipeline

    def made(self, kind: TableKind) -> T_co:
        """Makes a table."""
        return self._make(kind.of(self._owner, self._warehouse))

    def _written(self, kinds: Iterable[TableKind]) -> list[T_co]:
        """The results among some tables that the pipeline writes, as it is declared now."""
        results = (kind for kind in kinds if kind.step and kind.is_written(self._owner))
        return [getattr(self, kind.name) for kind in results]


class WindowTables(_TablesOf[T_co]):
    """The tables of one named window definition, also those that it does not write."""

    keyed_windows = _Made(of_windows.KEYED_WINDOWS)
    late_records = _Made(of_windows.LATE_RECORDS)
    final_windows = _Made(of_windows.FINAL_WINDOWS)
    corrections = _Made(of_windows.CORRECTIONS)
    alerts = _Made(of_windows.ALERTS)
    episodes = _Made(of_windows.EPISODES)
    failed_windows = _Made(of_windows.FAILED_WINDOWS)
    notifications = _Made(of_windows.NOTIFICATIONS)
    firings = _Made(of_firings.FIRINGS)
    early_warnings = _Made(of_firings.EARLY_WARNINGS)
    processed = _Made(of_firings.PROCESSED)
    computed_days = _Made(of_firings.COMPUTED_DAYS)
    fired_days = _Made(of_firings.FIRED_DAYS)
    processed_days = _Made(of_firings.PROCESSED_DAYS)

    @property
    def windows_name(self) -> str:
        """The definition's name."""
        return self._owner.windows_name or ""

    @property
    def days_of_firings(self) -> T_co:
        """The table of the days whose firings are computed, as the definition is now."""
        calls = of_firings.PROCESSED_DAYS.is_written(self._owner)
        return self.processed_days if calls else self.fired_days

    @property
    def of_every_definition(self) -> list[T_co]:
        """The results that every definition writes: no firings, no notifications."""
        return [getattr(self, kind.name) for kind in OF_WINDOWS if kind.is_always_written]

    @property
    def of_firings(self) -> list[T_co]:
        """The firings that the definition writes, and what follows from them."""
        kinds = (of_firings.FIRINGS, of_firings.EARLY_WARNINGS, of_firings.PROCESSED)
        return self._written(kinds)

    @property
    def written(self) -> list[T_co]:
        """All results that the definition writes."""
        return self._written(OF_WINDOWS)


class PipelineTables(_TablesOf[T_co]):
    """The tables of a pipeline: the source's, and those of each window definition."""

    raw_events = _Made(of_source.RAW_EVENTS)
    arrival_log = _Made(of_source.ARRIVAL_LOG)
    rejected_records = _Made(of_source.REJECTED_RECORDS)
    quarantined_files = _Made(of_source.QUARANTINED_FILES)
    landed_files = _Made(of_source.LANDED_FILES)

    def of(self, windows_name: str) -> WindowTables[T_co]:
        """The tables of a window definition."""
        if windows_name not in self._of_windows:
            owner = TableOwner(self.pipeline, windows_name)
            self._of_windows[windows_name] = WindowTables(owner, self._warehouse, self._make)
        return self._of_windows[windows_name]

    @cached_property
    def _of_windows(self) -> dict[str, WindowTables[T_co]]:
        return {}

    @property
    def stream_checkpoint(self) -> str:
        """The folder in which Spark stores how far the pipeline's stream has come."""
        return f"{self._warehouse}/{self._owner.name}/_stream"

    @property
    def of_source(self) -> list[T_co]:
        """The source's results that the pipeline writes."""
        return self._written(OF_SOURCE)

    @property
    def written(self) -> list[T_co]:
        """Every result that the pipeline writes: the source's, then those of each definition."""
        of_windows = (self.of(name).written for name in self.pipeline.windows)
        return [*self.of_source, *(table for tables in of_windows for table in tables)]


PipelineSpecs = PipelineTables[TableSpec]


def specs_of(pipeline: Pipeline, warehouse: str) -> PipelineSpecs:
    """The tables of a pipeline, as plain values.

    Args:
        pipeline: The pipeline.
        warehouse: The folder or URI of all tables.
    """
    return PipelineTables(TableOwner(pipeline), warehouse, lambda spec: spec)
