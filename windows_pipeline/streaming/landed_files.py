"""A stream of landed files, in the order in which they were written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from functools import partial
from itertools import accumulate
from pathlib import Path
from posixpath import normpath

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader

from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.config import Pipeline
from windows_pipeline.config.model import Partitions
from windows_pipeline.jobs.quarantine import QuarantinedFile
from windows_pipeline.sources.bad_files import BadFileError
from windows_pipeline.sources.landed_files import read_landed
from windows_pipeline.sources.landing import FileState, LandingFolder
from windows_pipeline.sources.tuning import IngestTuning
from windows_pipeline.storage.instants import timestamp_to_ms
from windows_pipeline.streaming.landed import BatchRecords, Landing
from windows_pipeline.streaming.order import FILE
from windows_pipeline.text.day_names import day_of
from windows_pipeline.text.instants import EPOCH_DAY
from windows_pipeline.text.paths import literal

_PATH = re.compile(r"/(\d{4}-\d{2}-\d{2})/([^/]+)$")
_SCHEME = re.compile(r"^[A-Za-z][\w+.-]*:(//[^/]*)?/")
_EVER = "36500d"
_LATER = "_later_arrival_unit"
"""A temporary column; the columns of a source begin with a letter."""
_FILE_COLUMNS = "path string, modificationTime timestamp, length bigint, content binary"


def names_of_files(files: DataStreamReader, path: str) -> DataFrame:
    """Follows the files in the folders of days.

    Args:
        files: The stream reader, with the maximum number of files of a micro-batch.
        path: The folder of the day folders.

    Returns:
        A row per file: `path`, `length` (bytes), `written_ms` (ms since 1970), and `begun_on` (days
        since 1970): the day (UTC) on which the micro-batch was begun. A micro-batch that is run
        again after a kill has the same day.
    """
    # Spark skips older files, and forgets that it has read them.
    files = files.option("maxFileAge", _EVER)
    # Spark takes a deeper folder such as hour=05 for a column, and fails where days differ in it.
    files = files.option("recursiveFileLookup", "true")
    found = files.format("binaryFile").schema(_FILE_COLUMNS).load(f"{literal(path)}/*/")
    # A number, as Python collects a timestamp in the zone of the machine.
    written_ms = timestamp_to_ms("modificationTime").alias("written_ms")
    begun_on = F.unix_date(F.current_date()).alias("begun_on")
    return found.select("path", "length", written_ms, begun_on)


def records_of_files(pipeline: Pipeline, path: str, tuning: IngestTuning) -> Landing:
    """Reads the files that a micro-batch names, in the order in which they were written.

    The records of a file that lands in the folder of an earlier day get a later arrival day: that
    of the newest file before it.
    """
    source = pipeline.source

    def landed(
        spark: SparkSession, names: DataFrame, last_arrival_unit: date, bad: Sequence[BadFileError]
    ) -> BatchRecords:
        # Spark names a file twice if the name of another file looks like a pattern that matches.
        found = list({row.path: row for row in names.collect()}.values())
        folder = LandingFolder(path)
        files = _in_days_of(pipeline.partitions, path, found)
        links = folder.links_among([(file.day, file.name) for file in files])
        files = [file for file in files if (file.day, file.name) not in links]
        passed_over = len(found) - len(files)
        left_out = {error.file: error for error in bad}
        quarantined = [
            _quarantined(file, left_out[str(file)], last_arrival_unit)
            for file in files
            if str(file) in left_out
        ]
        files = [file for file in files if str(file) not in left_out]
        if not files:
            no_rows = read_landed(spark, source, folder, []).withColumn(FILE, F.col("file"))
            return BatchRecords(no_rows, passed_over, quarantined=quarantined)
        of_batch = {file[:2] for file in files}
        of_days = folder.files({file.day for file in files})
        listed = [file for file in of_days if file[:2] in of_batch]
        records, name_of = _with_unique_names(read_landed(spark, source, folder, files), files)
        rank = {name_of(file): number for number, file in enumerate(files)}
        arrival_units = accumulate((max(file.day, last_arrival_unit) for file in files), max)
        later = {
            name_of(file): arrival_unit
            for file, arrival_unit in zip(files, arrival_units, strict=True)
            if arrival_unit > max(file.day, last_arrival_unit)
        }
        sizes_bytes = [file.size_bytes for file in files]
        return BatchRecords(
            _in_arrival_units(records, last_arrival_unit, later),
            passed_over,
            lambda names: sorted(names, key=rank.__getitem__),
            # Tasks number lines as they read them; only an arrival column needs a sort.
            None if source.is_by_line else tuning.ranges_for([sum(sizes_bytes)]),
            lambda with_records: [
                (name_of(file), file.size_bytes)
                for file in files
                if file.size_bytes
                and name_of(file) not in with_records
                and _must_have_record(source.format, folder, file)
            ],
            quarantined,
            partial(folder.require_unchanged, listed),
        )

    return landed


def _quarantined(file: FileState, error: BadFileError, last_arrival_unit: date) -> QuarantinedFile:
    fix = f"{error.fix}; a stream reads no name twice, so land the mended file under another name"
    arrival_unit = max(file.day, last_arrival_unit)
    return QuarantinedFile(
        arrival_unit, error.file, file.size_bytes, file.written_ms, error.cause, fix
    )


def _must_have_record(kind: str, folder: LandingFolder, file: FileState) -> bool:
    """Whether a file with bytes is wrong without a record.

    A CSV file of a header alone and a Parquet file without rows are right.
    """
    return kind == "jsonl" or (kind == "csv" and folder.is_blank(file.day, file.name))


def _in_days_of(partitions: Partitions, path: str, found: Sequence[Row]) -> list[FileState]:
    """The files of the pipeline's days, in the order in which they were written."""
    depth = _depth(path if "://" in path else str(Path(path).absolute())) + 2
    # After a file of next year's folder, all later records would get that day.
    tomorrow = EPOCH_DAY + timedelta(found[0].begun_on + 1) if found else date.max
    end = min(partitions.end or date.max, tomorrow)
    matched = ((_PATH.search(row.path), row) for row in found if _depth(row.path) == depth)
    files = [
        FileState(day, match[2], row.length, row.written_ms)
        for match, row in matched
        if match and (day := day_of(match[1])) is not None and partitions.start <= day <= end
    ]
    return sorted(files, key=lambda file: (file.written_ms, file.day, file.name))


def _depth(path: str) -> int:
    """How many names a path has, without its scheme and host."""
    return len(list(filter(None, normpath(_SCHEME.sub("/", path)).split("/"))))


def _in_arrival_units(
    records: DataFrame, last_arrival_unit: date, later: Mapping[str, date]
) -> DataFrame:
    """Sets each record's arrival day: that of its folder, or a later day."""
    arrival_unit = F.greatest("arrival_unit", F.lit(last_arrival_unit))
    if not later:
        return records.withColumn("arrival_unit", arrival_unit)
    of_files = small_frame(
        records.sparkSession, list(later.items()), f"{FILE} string, {_LATER} date"
    )
    joined = records.join(F.broadcast(of_files), FILE, "left")
    return joined.withColumn("arrival_unit", F.coalesce(_LATER, arrival_unit)).drop(_LATER)


def _with_unique_names(
    records: DataFrame, files: Iterable[FileState]
) -> tuple[DataFrame, Callable[[FileState], str]]:
    """Adds a unique name of the file to each record; returns what names a file so, too."""
    if max(Counter(file.name for file in files).values()) == 1:
        return records.withColumn(FILE, F.col("file")), lambda file: file.name
    named = F.concat_ws("/", F.col("arrival_unit").cast("string"), "file")
    return records.withColumn(FILE, named), lambda file: f"{file.day}/{file.name}"
