"""Landed files: the records of a source, one folder an arrival day."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession

from windows_pipeline.config.model import Source
from windows_pipeline.sources.formats import READERS, LandedFile, no_records, with_exact_numbers

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_LISTING_THREADS = 16
"""An object store answers a listing in tens of milliseconds: ask for many days at once."""


@dataclass(frozen=True)
class _Root:
    filesystem: fs.FileSystem
    path: str
    """As the file system names it, without a scheme."""
    uri: str
    """As Spark reads it."""


def landed_days(path: str) -> list[date]:
    """The days that have a folder `<path>/YYYY-MM-DD/`, in order; other names are ignored.

    Args:
        path: A local path, or a URI such as ``s3://bucket/folder``.

    Raises:
        FileNotFoundError: There is no such folder.
    """
    root = _root(path)
    if root.filesystem.get_file_info(root.path).type != fs.FileType.Directory:
        raise FileNotFoundError(
            f"{path}: there is no such folder; land the files in {path}/YYYY-MM-DD/, "
            "or correct the source's path"
        )
    entries = root.filesystem.get_file_info(fs.FileSelector(root.path))
    names = [entry.base_name for entry in entries if entry.type == fs.FileType.Directory]
    return sorted(day for name in names if (day := day_of(name)) is not None)


def read_landed(spark: SparkSession, source: Source, path: str, days: Iterable[date]) -> DataFrame:
    """Reads the records landed on some days, unparsed as far as types go.

    A file whose name starts with ``_`` or ``.`` is ignored; a compressed one is read by its
    ending (``.gz``). Blank lines are skipped. Fields that the source doesn't declare are
    ignored, but stand in `original`. Folders are listed, and heads of CSV and Parquet files
    read, where this runs; the records only by Spark.

    Args:
        spark: A session, classic or Connect, in time zone UTC.
        source: Its format and columns count here. CSV: each file starts with a header, a
            folder's files have the same one, and a field can't hold a line break (such a
            record's lines are malformed).
        path: Where the day folders lie; a local path or a URI.
        days: The days to read, each once whatever is given twice.

    Returns:
        One row a line (Parquet: a row), unordered: `unit` (date, from the folder's name),
        `file` (its name), `original` (the line's exact text; Parquet: the row as JSON),
        `malformed` (boolean: the line is no JSON object, or has too few or too many CSV
        fields), and every declared column as text, null where it is absent or empty in CSV.
        Nested values are JSON.

    Raises:
        FileNotFoundError: A day has no folder.
        ValueError: CSV files of a folder differ in their header, or lack a declared column;
            a Parquet file holds times in nanoseconds, which Spark can't read.
    """
    root = _root(path)
    entries = _entries(root, path, days)
    files = [_file(root, day, entry.base_name) for day, entry in entries]
    return _read(spark, source, root, files)


def landed_bytes(path: str, days: Iterable[date]) -> dict[date, int]:
    """How large the files are that landed on some days, by day; a day without files has none.

    Raises:
        FileNotFoundError: A day has no folder.
    """
    sizes: dict[date, int] = {}
    for day, entry in _entries(_root(path), path, days):
        sizes[day] = sizes.get(day, 0) + entry.size
    return sizes


def read_files(
    spark: SparkSession, source: Source, path: str, files: Iterable[tuple[date, str]]
) -> DataFrame:
    """Reads some landed files, each by its day and name; else as `read_landed`."""
    root = _root(path)
    return _read(spark, source, root, [_file(root, day, name) for day, name in sorted(files)])


def _read(
    spark: SparkSession, source: Source, root: _Root, files: Sequence[LandedFile]
) -> DataFrame:
    if not files:
        return no_records(spark, list(source.columns))
    rows = READERS[source.format](spark, root.filesystem, files, list(source.columns))
    return with_exact_numbers(rows, source.columns) if source.format == "jsonl" else rows


def _root(path: str) -> _Root:
    if "://" not in path:
        absolute = Path(path).absolute()
        return _Root(fs.LocalFileSystem(), absolute.as_posix(), f"file://{absolute.as_posix()}")
    # Hadoop calls S3 s3a; Arrow calls it s3.
    filesystem, inner = fs.FileSystem.from_uri(re.sub(r"^s3[an]://", "s3://", path))
    return _Root(filesystem, inner.rstrip("/"), path.rstrip("/"))


def day_of(name: str) -> date | None:
    """The arrival day that a folder is named after; None of any other name."""
    if not _DAY.fullmatch(name):
        return None
    try:
        return date.fromisoformat(name)
    except ValueError:
        return None


def _entries(root: _Root, path: str, days: Iterable[date]) -> list[tuple[date, fs.FileInfo]]:
    """The files of some days, by day and name."""
    wanted = sorted(set(days))
    with ThreadPoolExecutor(_LISTING_THREADS) as threads:
        listed = threads.map(lambda day: _entries_of(root, path, day), wanted)
        return [
            (day, entry) for day, of_day in zip(wanted, listed, strict=True) for entry in of_day
        ]


def _entries_of(root: _Root, path: str, day: date) -> Sequence[fs.FileInfo]:
    folder = f"{root.path}/{day}"
    try:
        entries = root.filesystem.get_file_info(fs.FileSelector(folder))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(
            f"{path}/{day}: there is no such folder; land the day's files, "
            "or an empty folder for a day without events"
        ) from error
    return [
        entry
        for entry in sorted(entries, key=lambda entry: entry.base_name)
        if entry.type == fs.FileType.File and not entry.base_name.startswith(("_", "."))
    ]


def _file(root: _Root, day: date, name: str) -> LandedFile:
    return LandedFile(day, name, f"{root.path}/{day}/{name}", f"{root.uri}/{day}/{name}")
