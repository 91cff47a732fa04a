"""Has the reader of a run judge a landed sample. Needs Spark."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from windows_pipeline.config.source import Source
from windows_pipeline.sources.bad_files import naming_bad_files
from windows_pipeline.sources.landed_files import read_landed
from windows_pipeline.sources.landing import LandingFolder
from windows_pipeline.sources.validation import judged_records
from windows_pipeline.starter.sample import MOST_RECORDS, Verdict


def judge(spark: SparkSession, source: Source, folder: Path, days: Sequence[date]) -> Verdict:
    """Reads landed files as a run does, and counts what it rejects.

    Args:
        spark: A session in time zone UTC.
        source: The source that the pipeline would have.
        folder: The folder of day folders.
        days: The days to read.

    Raises:
        BadFileError: A run cannot read a file.
    """
    landing = LandingFolder(str(folder))
    with naming_bad_files():
        landed = read_landed(spark, source, landing, landing.files(days))
        judged = judged_records(landed.limit(MOST_RECORDS), source)
        counts = judged.groupBy("reason").agg(F.count("*"), F.min("original")).collect()
    most_first = sorted(counts, key=lambda row: (-row[1], row.reason or ""))
    return {reason: (count, example or "") for reason, count, example in most_first}
