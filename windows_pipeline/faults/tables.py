"""Faults of stored tables, and of sources that Spark cannot open."""

from __future__ import annotations

import re

from windows_pipeline.faults.chain import is_of_library, line_at, links, text_of
from windows_pipeline.faults.fault import Fault
from windows_pipeline.storage.files.damage import damage_in

_BACKUP = "Put it back from a backup"
_REBUILD = "windows-pipeline rebuild PIPELINE --from STEP"
_FILE = r"(?:file:)?(/[^\n]*?\.parquet)"
_GONE = re.compile(
    rf"PATH_NOT_FOUND\] Path does not exist: {_FILE}"
    rf"|Object at location {_FILE} not found"
    rf"|Failed to open local file '{_FILE}'. Detail: \[errno 2\]"
    rf"|FILE_NOT_EXIST\][^\n]*?{_FILE}"
    rf"|FileNotFoundException: (?:File )?{_FILE}"
)
"""The errors of Spark, delta-rs and PyArrow for a missing data file of a foreign table."""
_LOG = re.compile(
    r"No table metadata or protocol found|Expected contiguous commit files|Kernel error"
    r"|DELTA_(?:VERSIONS_NOT_CONTIGUOUS|TRUNCATED|STATE_RECOVER|LOG_FILE_NOT_FOUND|FILE_NOT_FOUND)"
)
"""The errors of delta-rs and Delta for log entries that are gone or cut."""
_FOLDER = re.compile(r"(/[^\s\"']+?)/_delta_log")


def of_tables(error: BaseException) -> Fault | None:
    """The fault of a table that an error or its causes report; None if they report none."""
    damaged = damage_in(error)
    if damaged is not None:
        return Fault(*damaged.lines)
    for link in links(error):
        if not is_of_library(link):
            continue
        text = text_of(link)
        if found := _GONE.search(text):
            name = next(group for group in found.groups() if group)
            title = f"{name}: this file of a table is gone"
            return Fault(title, fix=f"{_BACKUP}, or correct what the pipeline reads")
        if found := _LOG.search(text):
            notes: list[str] = getattr(link, "__notes__", [])
            folder = _FOLDER.search(text)
            table = notes[0] if notes else folder[1] if folder else "a table of the pipeline"
            title = f"{table}: an entry of its log (_delta_log) is gone or damaged"
            fix = f"{_BACKUP}; or move the table's folder away and compute it again: {_REBUILD}"
            return Fault(title, line_at(text, found.start()), fix)
    return None
