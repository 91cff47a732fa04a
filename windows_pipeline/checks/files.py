"""Finds tables' files that changed after they were written, and tables that disagree.

Needs no Spark, so that it starts quickly and works where Spark cannot read a table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from windows_pipeline.checks.stored_rows import (
    StoredFiles,
    differing_rows,
    rows_by_arrival_unit,
    stored_files,
)
from windows_pipeline.config import Pipeline
from windows_pipeline.storage import catalog
from windows_pipeline.storage.catalog import TableSpec
from windows_pipeline.storage.files.check import check_files
from windows_pipeline.storage.files.digests import LAST_CHECKPOINT, LIST_NAME, LOG_FOLDER
from windows_pipeline.storage.files.stream_checkpoint import damaged_files, is_commit, lacking
from windows_pipeline.text.counts import counted


class Fix(Enum):
    """How to fix a damage."""

    REPAIR = "repair"
    """Rebuild the table from raw_events and arrival_log, or its list of digests from its files."""
    SOURCE = "source"
    """Restore a backup, or ingest the source again, from which the table's rows came."""
    BACKUP = "backup"
    """Restore a backup: no other table has the file's rows."""
    STREAM = "stream"
    """Restore the stream's checkpoint, which says which records the tables have."""
    COMMIT = "commit"
    """Delete a commit of that checkpoint, which only says that a micro-batch ended."""
    DELETE = "delete"
    """Delete the file, which only helps readers find the newest checkpoint."""
    RUN = "run"
    """Run again: the rows are those of a run that was stopped, or that is running."""


class Finding(NamedTuple):
    """Something wrong with a table's files or rows.

    Attributes:
        table: The table's name, such as `flights/hourly/final_windows`.
        file: The file's path below the table's folder; None if rows are wrong, not a file.
        what: What is wrong.
        fix: How to fix it.
        arrival_unit: The arrival unit of the file or rows; None if it is not known.
    """

    table: str
    file: str | None
    what: str
    fix: Fix
    arrival_unit: date | None = None


class FilesResult(NamedTuple):
    """What checking the files of a pipeline found.

    Attributes:
        findings: What is wrong.
        tables: How many tables were looked at.
        compared: How many files are as they were written.
        new: How many data files had no digest; they have one now.
    """

    findings: list[Finding]
    tables: int
    compared: int
    new: int


_FIXES = {
    "raw_events": Fix.SOURCE,
    "arrival_log": Fix.SOURCE,
    "rejected_records": Fix.SOURCE,
    "quarantined_files": Fix.SOURCE,
    "corrections": Fix.BACKUP,
}


def check_pipeline_files(pipeline: Pipeline, warehouse: str) -> FilesResult:
    """Checks the files of all tables of a pipeline, and that tables agree with each other.

    Args:
        pipeline: The pipeline.
        warehouse: The local folder of all tables.

    Raises:
        OSError: A file or folder cannot be read for another reason than damage.
    """
    findings: list[Finding] = []
    compared = new = 0
    stored: dict[str, StoredFiles] = {}
    for table in _tables(pipeline, warehouse):
        if not (Path(table.location) / LOG_FOLDER).is_dir():
            continue
        checked = check_files(table.location)
        compared, new = compared + checked.compared, new + checked.new
        findings += [
            Finding(table.name, file, what, _fix(table, file), _arrival_unit_of(file))
            for file, what in checked.damages
        ]
        damaged = {damage.file for damage in checked.damages}
        stored[table.name] = stored_files(table, checked.live, damaged)
    findings += _gone_tables(pipeline, warehouse, stored)
    findings += _raw_and_log(pipeline, warehouse, stored)
    for name in pipeline.windows:
        findings += _final_and_keyed(pipeline, name, warehouse, stored)
    findings += _checkpoint(pipeline, warehouse, stored)
    return FilesResult(findings, len(stored), compared, new)


def _tables(pipeline: Pipeline, warehouse: str) -> list[TableSpec]:
    """All tables of a pipeline, those of bookkeeping last."""
    results = catalog.all_tables(pipeline, warehouse)
    return [*results, *catalog.bookkeeping_tables(pipeline, warehouse)]


def _fix(table: TableSpec, file: str) -> Fix:
    if file == LIST_NAME:
        return Fix.REPAIR
    if file == LAST_CHECKPOINT:
        return Fix.DELETE
    return _FIXES.get(table.name.rsplit("/", 1)[-1], Fix.REPAIR)


def _arrival_unit_of(file: str) -> date | None:
    folder, _, _ = file.partition("/")
    name, _, text = folder.partition("=")
    try:
        return date.fromisoformat(text) if name == "arrival_unit" else None
    except ValueError:
        return None


def _gone_tables(
    pipeline: Pipeline, warehouse: str, stored: Mapping[str, StoredFiles]
) -> Iterator[Finding]:
    """Missing tables that a run makes together with tables that exist."""
    source = catalog.source_tables(pipeline, warehouse)
    if stored:
        for table in (source.raw_events, source.arrival_log, source.rejected_records):
            if table.name not in stored:
                yield Finding(table.name, None, "the table is gone", Fix.SOURCE)
    for name in pipeline.windows:
        yield from _gone_results(pipeline, name, warehouse, stored)


def _gone_results(
    pipeline: Pipeline, windows_name: str, warehouse: str, stored: Mapping[str, StoredFiles]
) -> Iterator[Finding]:
    """Missing tables of a definition: all of them, or one beside others that were filled."""
    results = list(vars(catalog.window_tables(pipeline, windows_name, warehouse)).values())
    notified = catalog.notifications(pipeline, windows_name, warehouse)
    results += [] if notified is None else [notified]
    fired = catalog.firing_tables(pipeline, windows_name, warehouse)
    groups = [(results, False), *([] if fired is None else [(list(fired.all), True)])]
    if stored and not any(table.name in stored for tables, _ in groups for table in tables):
        what = "no table of the definition exists: it is new, or its folder is gone"
        yield Finding(results[0].name, None, what, Fix.RUN)
        return
    by_batches = _last_batch(pipeline, warehouse, stored) is not None
    for tables, of_firings in groups:
        days = catalog.computed_days(pipeline, windows_name, warehouse, fired=of_firings)
        computed = stored.get(days.name)
        is_filled = computed is not None and computed.live != []
        if is_filled or (by_batches and any(table.name in stored for table in tables)):
            for table in tables:
                if table.name not in stored:
                    what = "the table is gone"
                    yield Finding(table.name, LOG_FOLDER, what, _fix(table, LOG_FOLDER))


def _raw_and_log(
    pipeline: Pipeline, warehouse: str, stored: Mapping[str, StoredFiles]
) -> Iterator[Finding]:
    """Arrival units of which raw_events or rejected_records lack rows that arrival_log counts."""
    source = catalog.source_tables(pipeline, warehouse)
    log = stored.get(source.arrival_log.name)
    if log is None or not log.is_whole:
        return
    columns = ["arrival_unit", "rows", "arrival_unit_rejected", "batch"]
    accepted: Counter[date] = Counter()
    rejected_parts: dict[tuple[date, int | None], int] = {}
    for row in log.read(columns).to_pylist():
        accepted[row["arrival_unit"]] += row["rows"]
        rejected_parts[row["arrival_unit"], row["batch"]] = row["arrival_unit_rejected"]
    rejected: Counter[date] = Counter()
    for (arrival_unit, _), number in rejected_parts.items():
        rejected[arrival_unit] += number
    pairs = ((source.raw_events, accepted), (source.rejected_records, rejected))
    for table, logged in pairs:
        files = stored.get(table.name)
        if files is None or not files.is_whole:
            continue
        found = rows_by_arrival_unit(files)
        for arrival_unit in sorted(logged.keys() | found.keys()):
            if found[arrival_unit] != logged[arrival_unit]:
                rows = counted(found[arrival_unit], "row")
                what = (
                    f"{arrival_unit}: has {rows}, and arrival_log counts {logged[arrival_unit]:,}"
                )
                fix = Fix.SOURCE if found[arrival_unit] < logged[arrival_unit] else Fix.RUN
                yield Finding(table.name, None, what, fix, arrival_unit)


def _final_and_keyed(
    pipeline: Pipeline, windows_name: str, warehouse: str, stored: Mapping[str, StoredFiles]
) -> Iterator[Finding]:
    """Arrival units whose final windows are not the closed windows of keyed_windows."""
    tables = catalog.window_tables(pipeline, windows_name, warehouse)
    final = stored.get(tables.final_windows.name)
    keyed = stored.get(tables.keyed_windows.name)
    if final is None or keyed is None or final.live is None or keyed.live is None:
        return
    damaged = (final.arrival_units - final.whole_arrival_units) | (
        keyed.arrival_units - keyed.whole_arrival_units
    )
    # A published arrival unit whose final windows are gone has no file.
    computed = _computed(pipeline, windows_name, warehouse, stored)
    published = final.arrival_units | computed
    for arrival_unit in sorted((published & (final.arrival_units | keyed.arrival_units)) - damaged):
        only_final, only_closed = differing_rows(
            final.of_arrival_unit(arrival_unit), _closed(keyed.of_arrival_unit(arrival_unit))
        )
        if only_final or only_closed:
            what = (
                f"{arrival_unit}: not in keyed_windows, closed and with the same values: "
                f"{counted(only_final, 'final window')}; not in final_windows: "
                f"{counted(only_closed, 'closed window')}"
            )
            if computed and arrival_unit not in computed:  # its records were ingested again
                what += (
                    "; if a run refused to change final windows, their records were changed, and "
                    f"the way is: windows-pipeline correct {pipeline.name} --windows "
                    f"{windows_name} --from {arrival_unit} --cause TEXT"
                )
            yield Finding(tables.final_windows.name, None, what, Fix.REPAIR, arrival_unit)


def _computed(
    pipeline: Pipeline, windows_name: str, warehouse: str, stored: Mapping[str, StoredFiles]
) -> set[date]:
    """The arrival units that a run by days has computed to the end."""
    table = catalog.computed_days(pipeline, windows_name, warehouse, fired=False)
    files = stored.get(table.name)
    if files is None or not files.is_whole:
        return set()
    return set(files.read(["arrival_unit"])["arrival_unit"].to_pylist())


def _closed(keyed: pa.Table) -> pa.Table:
    return keyed.filter(keyed["closed"].cast(pa.bool_()))


def _checkpoint(
    pipeline: Pipeline, warehouse: str, stored: Mapping[str, StoredFiles]
) -> Iterator[Finding]:
    """Damaged files of the stream's checkpoint, and what it lacks of the log's micro-batches."""
    checkpoint = catalog.stream_checkpoint(pipeline, warehouse)
    name = f"{pipeline.name}/{Path(checkpoint).name}"
    for file, what in damaged_files(Path(checkpoint)).items():
        yield Finding(name, file, what, Fix.COMMIT if is_commit(file) else Fix.STREAM)
    last = _last_batch(pipeline, warehouse, stored)
    lack = None if last is None else lacking(checkpoint, last, lambda file: Path(file).exists())
    if lack is not None:
        yield Finding(name, None, lack, Fix.STREAM)


def _last_batch(
    pipeline: Pipeline, warehouse: str, stored: Mapping[str, StoredFiles]
) -> int | None:
    """The newest micro-batch in the arrival log; None without one, or if the log is damaged."""
    log = stored.get(catalog.source_tables(pipeline, warehouse).arrival_log.name)
    if log is None or not log.is_whole:
        return None
    batches = log.read(["batch"])["batch"].to_pylist()
    return max((batch for batch in batches if batch is not None), default=None)
