"""Reads the landed files of a source."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from pyspark.sql import DataFrame, SparkSession

from windows_pipeline.config.source import Source
from windows_pipeline.sources.csv_files import read_csv, require_headers
from windows_pipeline.sources.file_checks import parquet_schemas, require_readable
from windows_pipeline.sources.formats import (
    Reader,
    no_records,
    read_jsonl,
    read_parquet,
    with_exact_numbers,
)
from windows_pipeline.sources.landing import FileState, LandingFolder
from windows_pipeline.sources.metadata import with_file_times

_READERS: dict[str, Reader] = {"jsonl": read_jsonl, "csv": read_csv, "parquet": read_parquet}


def read_landed(
    spark: SparkSession, source: Source, landing: LandingFolder, files: Iterable[FileState]
) -> DataFrame:
    """Reads the records of landed files, with their values as text.

    The end of a file's name says how it is compressed (``.gz``). Blank lines are skipped. Only
    `original` has the fields that the source doesn't declare. The driver reads the heads of
    files; only Spark's tasks read records.

    Args:
        spark: A session, classic or Connect, in time zone UTC.
        source: The source's format and columns, and how CSV files are written. A CSV file starts
            with a header, and the files of a folder have the same header.
        landing: The folder of day folders.
        files: The files, as it lists them.

    Returns:
        A row per record, in the order of the file within a task: `arrival_unit` (date, the
        folder's name), `file` (the file's name), `original` (the record's text, with U+FFFD for
        bytes that are no text; Parquet: the row as JSON), `malformed` (boolean: the line is not a
        JSON object, the CSV record breaks RFC 4180 or has too few or too many fields, or the bytes
        are not text in the encoding), `_block` and `_line` (bigint: the byte at which the task's
        part of the file begins, and the record's number among those of all tasks, with gaps), and
        every declared column as text: null if it is absent, or nothing in CSV. Nested values are
        JSON.

    Raises:
        BadFileError: Files are bad (rule A8); the error names all that the driver finds. For a file
            that a task finds bad, Spark raises an error of its own: see `naming_bad_files`.
    """
    listed = sorted(files)
    found = [landing.landed(file) for file in listed]
    if not found:
        return no_records(spark, source.read_types)
    require_readable(landing.filesystem, found)
    rows = _READERS[source.format](spark, landing.filesystem, found, source)
    exact = with_exact_numbers(rows, source) if source.format == "jsonl" else rows
    return with_file_times(exact, source, listed)


def require_readable_days(source: Source, landing: LandingFolder, days: Iterable[date]) -> None:
    """Requires that the driver finds no bad file on some days, before Spark reads them.

    Raises:
        BadFileError: Files are bad; the error names all that a check finds.
        FileNotFoundError: A day has no folder.
    """
    files = [landing.landed(file) for file in landing.files(days)]
    require_readable(landing.filesystem, files)
    if source.format == "csv":
        require_headers(landing.filesystem, files, source)
    elif source.format == "parquet":
        parquet_schemas(landing.filesystem, files)
