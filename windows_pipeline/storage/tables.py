"""The tables of a pipeline as `Table`s that Spark reads and writes, made from the catalog."""

from __future__ import annotations

from dataclasses import replace

from windows_pipeline.config import Pipeline
from windows_pipeline.storage import catalog
from windows_pipeline.storage.catalog import TableSpec
from windows_pipeline.storage.table import Table

SourceTables = catalog.SourceTablesOf[Table]


class WindowTables(catalog.WindowTablesOf[Table]):
    """The tables of one named window definition."""

    def before_correction(self) -> WindowTables:
        """The same tables, whose rows may follow another grace until a correction is done."""
        return WindowTables(*map(with_any_grace, vars(self).values()))


class FiringTables(catalog.FiringTablesOf[Table]):
    """The tables of a definition that has a trigger."""

    def before_correction(self) -> FiringTables:
        """The same tables, whose rows may follow another grace until a correction is done."""
        return FiringTables(*(table and with_any_grace(table) for table in vars(self).values()))


def source_tables(pipeline: Pipeline, warehouse: str) -> SourceTables:
    """The tables of a pipeline's source."""
    specs = vars(catalog.source_tables(pipeline, warehouse)).values()
    return SourceTables(*(spec and _table(spec) for spec in specs))


def quarantined_files(pipeline: Pipeline, warehouse: str) -> Table:
    """The table of the bad files that were left out, whether or not the pipeline still skips."""
    return _table(catalog.quarantined_files(pipeline, warehouse))


def window_tables(pipeline: Pipeline, windows_name: str, warehouse: str) -> WindowTables:
    """The tables of a named window definition of a pipeline."""
    specs = catalog.window_tables(pipeline, windows_name, warehouse)
    return WindowTables(*map(_table, vars(specs).values()))


def firing_tables(pipeline: Pipeline, windows_name: str, warehouse: str) -> FiringTables | None:
    """The tables of a definition's firings; None if it has no trigger."""
    specs = catalog.firing_tables(pipeline, windows_name, warehouse)
    if specs is None:
        return None
    return FiringTables(*(spec and _table(spec) for spec in vars(specs).values()))


def notifications(pipeline: Pipeline, windows_name: str, warehouse: str) -> Table | None:
    """The table of notifications; None if the pipeline notifies nobody of episodes."""
    spec = catalog.notifications(pipeline, windows_name, warehouse)
    return None if spec is None else _table(spec)


def computed_days(
    pipeline: Pipeline,
    windows_name: str,
    warehouse: str,
    *,
    fired: bool,
    processed: bool | None = None,
) -> Table:
    """The table of the days that a definition has computed to the end; see `catalog`."""
    of_windows = (pipeline, windows_name, warehouse)
    return _table(catalog.computed_days(*of_windows, fired=fired, processed=processed))


def landed_files(pipeline: Pipeline, warehouse: str) -> Table:
    """The table of the files that were ingested, as they were then."""
    return _table(catalog.landed_files(pipeline, warehouse))


def all_tables(pipeline: Pipeline, warehouse: str) -> list[Table]:
    """Every table of results: the source's, each definition's, then firings and notifications."""
    return list(map(_table, catalog.all_tables(pipeline, warehouse)))


def _table(spec: TableSpec) -> Table:
    return Table(**vars(spec))


def with_any_grace(table: Table) -> Table:
    """The same table, whose rows may follow another grace until a correction is done."""
    return replace(table, grace_may_differ=True)
