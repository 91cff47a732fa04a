"""The records of a micro-batch, in one form for every kind of source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from windows_pipeline.jobs.quarantine import QuarantinedFile
from windows_pipeline.sources.bad_files import BadFileError
from windows_pipeline.streaming.order import InFiles


class BatchRecords(NamedTuple):
    """The records of a micro-batch.

    Attributes:
        records: The columns of `read_landed`, and those of the source's own order if it has one.
        passed_over: How many files the stream skipped: links, and files outside the folders of the
            pipeline's days.
        in_files: Sorts file names, as the records have them, by order of arrival.
        ranges: How many tasks sort the records; None for a task per file, or per arrival unit and
            source partition if an arrival column orders the records.
        without_records: From the names of the files that have records, returns the names and sizes
            in bytes of the other files that must have records.
        quarantined: The bad files that were left out.
        require_unchanged: Requires that the landed files are still what was read.
    """

    records: DataFrame
    passed_over: int = 0
    in_files: InFiles = sorted
    ranges: int | None = None
    without_records: Callable[[set[str]], Sequence[tuple[str, int]]] = lambda _: ()
    quarantined: Sequence[QuarantinedFile] = ()
    require_unchanged: Callable[[], None] = lambda: None


Landing = Callable[[SparkSession, DataFrame, date, Sequence[BadFileError]], BatchRecords]
"""Turns the rows of a micro-batch into records, without those of bad files.

All records are of this arrival unit or of later ones."""
