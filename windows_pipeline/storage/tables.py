"""The tables of a pipeline as `Table`s that Spark reads and writes, made from the catalog."""

from __future__ import annotations

from windows_pipeline.config import Pipeline
from windows_pipeline.storage import catalog
from windows_pipeline.storage.catalog.kind import TableOwner
from windows_pipeline.storage.table import Table

PipelineTables = catalog.PipelineTables[Table]
WindowTables = catalog.WindowTables[Table]


def tables_of(
    pipeline: Pipeline, warehouse: str, *, grace_may_differ: bool = False
) -> PipelineTables:
    """The tables of a pipeline.

    Args:
        pipeline: The pipeline.
        warehouse: The folder or URI of all tables.
        grace_may_differ: Whether their rows may follow another grace, until a correction is done.
    """

    def made(spec: catalog.TableSpec) -> Table:
        return Table(**vars(spec), grace_may_differ=grace_may_differ)

    return PipelineTables(TableOwner(pipeline), warehouse, made)
