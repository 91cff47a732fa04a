"""What a micro-batch brought, whatever source its stream follows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from windows_pipeline.streaming.order import InFiles


class Landed(NamedTuple):
    """What a micro-batch brought.

    Attributes:
        records: As `read_landed` gives them, with the stream's own order if it has one.
        passed_over: How many files lie in the folders of days that the pipeline does not have, or
            are links.
        in_files: Puts names of files, as the records have them, in the order of arrival.
        files: The names of files of which each must give a record, as the records have them, with
            their sizes.
        ranges: How many tasks should sort them; None for one a file, or a unit and source
            partition where an arrival column orders them.
    """

    records: DataFrame
    passed_over: int = 0
    in_files: InFiles = sorted
    ranges: int | None = None
    files: Sequence[tuple[str, int]] = ()


Landing = Callable[[SparkSession, DataFrame, date], Landed]
"""Makes of a micro-batch the records that it brought, none before a unit."""
