"""Which ingested days have landed files that changed since; without Spark."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date, datetime

from windows_pipeline.query.tables.arrival_days import log_parts
from windows_pipeline.query.tables.local import LocalTable, NoTableError
from windows_pipeline.query.tables.wanted import Wanted
from windows_pipeline.sources.file_changes import ChangedFile, file_changes
from windows_pipeline.sources.landing import LandingFolder
from windows_pipeline.storage.catalog import PipelineSpecs, TableSpec
from windows_pipeline.text.instants import epoch_ms


def changed_files(tables: PipelineSpecs, folder: LandingFolder) -> list[ChangedFile]:
    """The files of all ingested days that changed since, by day and name.

    None where nothing was ingested by days, or the landed files are gone, as they need not stay.

    Raises:
        UnreadableTableError: Only Spark reads the tables.
        TableDamagedError: A file of a table is gone or cannot be read.
    """
    ingested = {part.arrival_unit for part in log_parts(tables.arrival_log)}
    try:
        days = [day for day in folder.days if day in ingested]
        return changed_since_ingested(tables, folder, days)
    except (FileNotFoundError, NoTableError):
        return []


def changed_since_ingested(
    tables: PipelineSpecs, folder: LandingFolder, days: Collection[date]
) -> list[ChangedFile]:
    """The files of some ingested days that were added, deleted or changed since, by day and name.

    Args:
        tables: The pipeline's tables.
        folder: The folder of day folders.
        days: Days that were ingested and that have a folder.

    Raises:
        NoTableError: Nothing was ingested by days.
        UnreadableTableError: Only Spark reads the tables.
        TableDamagedError: A file of a table is gone or cannot be read.
    """
    known = _files_of(tables.landed_files, days)
    if tables.pipeline.source.skips_bad_files:
        try:
            left_out = _files_of(tables.quarantined_files, days)
        except NoTableError:
            left_out = {}
        known |= {(day, name.partition("/")[2]): state for (day, name), state in left_out.items()}
    return file_changes(known, folder.files(days))


def _files_of(
    spec: TableSpec, days: Collection[date]
) -> dict[tuple[date, str], tuple[int | None, int | None]]:
    columns = ("arrival_unit", "file", "size_bytes", "written")
    rows = LocalTable(spec).read(Wanted(), columns=columns).to_pylist()
    return {
        (row["arrival_unit"], row["file"]): (row["size_bytes"], _ms(row["written"]))
        for row in rows
        if row["arrival_unit"] in days
    }


def _ms(instant: datetime | None) -> int | None:
    return None if instant is None else epoch_ms(instant)
