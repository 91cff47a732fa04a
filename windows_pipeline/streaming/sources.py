"""What a stream reads, and its micro-batches as records that were landed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from itertools import accumulate
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader

from windows_pipeline.config import Pipeline, Source
from windows_pipeline.literal_path import literal
from windows_pipeline.settings import Settings, resolve
from windows_pipeline.small_frame import small_frame
from windows_pipeline.sources.formats import (
    no_records,
    parsed_json,
    texts_of,
    with_exact_numbers,
)
from windows_pipeline.sources.kafka import KafkaTopic, read_topic
from windows_pipeline.sources.landed_files import day_of, read_files
from windows_pipeline.sources.landed_sizes import ranges_for
from windows_pipeline.streaming.order import FILE, OFFSET, PARTITION, InFiles

_PATH = re.compile(r"/(\d{4}-\d{2}-\d{2})/([^/]+)$")
_EVER = "36500d"
_EPOCH = date(1970, 1, 1)
_BEGUN, _READ_FROM = "windows_pipeline_begun", "windows_pipeline_file"
"""What a stream notes with a record that lies in no day's folder: when its micro-batch was begun,
which Spark gives again after a kill, and the file that holds it."""
_ASKING_THREADS = 16
"""An object store answers in tens of milliseconds: ask for many files at once."""
_FILE_COLUMNS = "path string, modificationTime timestamp, length bigint, content binary"


class Landed(NamedTuple):
    """What a micro-batch brought.

    Attributes:
        records: As `read_landed` gives them, with the stream's own order if it has one.
        passed_over: How many files lie in the folders of days that the pipeline does not have.
        whole_files: Whether they are of files that are too small for Spark to divide.
        in_files: Puts names of files, as the records have them, in the order of arrival.
        ranges: How many tasks should sort them; None for one a file, or a unit and source
            partition where an arrival column orders them.
    """

    records: DataFrame
    passed_over: int = 0
    whole_files: bool = False
    in_files: InFiles = sorted
    ranges: int | None = None


Landing = Callable[[SparkSession, DataFrame, date], Landed]
"""Makes of a micro-batch the records that it brought, none before a unit."""


def open_stream(
    spark: SparkSession, pipeline: Pipeline, settings: Settings
) -> tuple[DataFrame, Landing]:
    """Opens a pipeline's source as a stream.

    Landed files, and those of a Delta table, come in the order in which they were written. Of a
    Delta table only added rows are read. Records have the arrival day of their folder, or of an
    earlier file's where that is later; of no folder, that on which the micro-batch began (UTC).

    Raises:
        ValueError: The table has a column that a stream adds.
    """
    source = pipeline.source
    if source.is_landed:
        path = resolve(source.place, settings.landing)
        files = _reader(spark, "maxFilesPerTrigger", source.max_per_batch)
        # Spark passes over files older than that, and forgets which it has read.
        files = files.option("maxFileAge", _EVER)
        found = files.format("binaryFile").schema(_FILE_COLUMNS).load(f"{literal(path)}/*/")
        # Not as a time: Python would have it in its own zone.
        written_ms = F.unix_millis("modificationTime").alias("written_ms")
        begun_on = F.unix_date(F.current_date()).alias("begun_on")
        names = found.select("path", "length", written_ms, begun_on)
        return names, _landed_files(pipeline, path)
    if source.kafka is not None:
        records = read_topic(spark, topic_of(source))
        return _noted(records, {_BEGUN: F.current_timestamp()}), _topic_records(pipeline)
    path = resolve(source.place, settings.landing)
    table = _reader(spark, "maxFilesPerTrigger", source.max_per_batch).format("delta").load(path)
    noted = {_BEGUN: F.current_timestamp(), _READ_FROM: F.input_file_name()}
    return _noted(table, noted), _added_rows(pipeline)


def _reader(spark: SparkSession, limit: str, most: int | None) -> DataStreamReader:
    return spark.readStream if most is None else spark.readStream.option(limit, most)


def _landed_files(pipeline: Pipeline, path: str) -> Landing:
    source, partitions = pipeline.source, pipeline.partitions

    def landed(spark: SparkSession, names: DataFrame, last_unit: date) -> Landed:
        found = names.collect()
        placed = ((_PATH.search(row.path), row) for row in found)
        files = ((day_of(match[1]), match[2], row) for match, row in placed if match)
        # A folder of next year would have all that comes after it come in that day.
        tomorrow = _EPOCH + timedelta(found[0].begun_on + 1) if found else date.max
        end = min(partitions.end or date.max, tomorrow)
        wanted = {
            (day, name): row
            for day, name, row in files
            if day is not None and partitions.start <= day <= end
        }
        passed_over = len(found) - len(wanted)
        if not wanted:
            nothing = no_records(spark, list(source.columns)).withColumn(FILE, F.col("file"))
            return Landed(nothing, passed_over)
        records, name_of = _told_apart(read_files(spark, source, path, wanted), wanted)
        as_written = sorted(wanted, key=lambda one: (wanted[one].written_ms, *one))
        # What lands in the folder of an earlier day comes now.
        comes_on = accumulate((max(day, last_unit) for day, _ in as_written), max)
        units = dict(zip(as_written, comes_on, strict=True))
        rank = {name_of(*one): number for number, one in enumerate(as_written)}
        sizes_bytes = [row.length for row in wanted.values()]
        whole = max(sizes_bytes) <= _divided_above(spark)
        # An arrival column orders the records of all files.
        in_orders = sizes_bytes if source.arrival is None else [sum(sizes_bytes)]
        return Landed(
            _with_units(records, {name_of(*one): unit for one, unit in units.items()})
            if any(unit > max(day, last_unit) for (day, _), unit in units.items())
            else records.withColumn("unit", F.greatest("unit", F.lit(last_unit))),
            passed_over,
            whole,
            lambda names: sorted(names, key=rank.__getitem__),
            ranges_for(in_orders),
        )

    return landed


def _with_units(records: DataFrame, units: Mapping[str, date]) -> DataFrame:
    """Records with the units of their files."""
    of_files = small_frame(records.sparkSession, list(units.items()), f"{FILE} string, unit date")
    return records.drop("unit").join(F.broadcast(of_files), FILE)


def _told_apart(
    records: DataFrame, files: Iterable[tuple[date, str]]
) -> tuple[DataFrame, Callable[[date, str], str]]:
    """Records with a name of their file that no other file has, and what makes such a name."""
    if max(Counter(name for _, name in files).values()) == 1:
        return records.withColumn(FILE, F.col("file")), lambda _, name: name
    named = F.concat_ws("/", F.col("unit").cast("string"), "file")
    return records.withColumn(FILE, named), lambda day, name: f"{day}/{name}"


def _divided_above(spark: SparkSession) -> int:
    """Up to how many bytes Spark reads a file by one task, whatever else it reads."""
    session: Any = spark._jsparkSession  # noqa: SLF001
    conf = session.sessionState().conf()
    undivided: int = min(conf.filesOpenCostInBytes(), conf.filesMaxPartitionBytes())
    return undivided


def _added_rows(pipeline: Pipeline) -> Landing:
    columns = list(pipeline.source.columns)

    def landed(spark: SparkSession, rows: DataFrame, last_unit: date) -> Landed:
        origin = [
            _begun_on(last_unit).alias("unit"),
            F.lit(None).cast("string").alias("file"),
            F.col(_READ_FROM).alias(FILE),
        ]
        records = texts_of(rows, columns, origin, beside=(_BEGUN, _READ_FROM))
        return Landed(records, in_files=lambda names: _as_written(spark, names))

    return landed


def _as_written(spark: SparkSession, files: Iterable[str]) -> Sequence[str]:
    """Files, by their URI, in the order in which they were written; then by name."""
    jvm: Any = spark._jvm  # noqa: SLF001
    hadoop = spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001

    def written(file: str) -> tuple[int, str]:
        path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(file))
        return path.getFileSystem(hadoop).getFileStatus(path).getModificationTime(), file

    named = list(files)
    if len(named) < 2:
        return named
    with ThreadPoolExecutor(_ASKING_THREADS) as threads:
        return [file for _, file in sorted(threads.map(written, named))]


def topic_of(source: Source) -> KafkaTopic:
    """The topic of a source that has one.

    Raises:
        ValueError: It has none.
    """
    declared = source.kafka
    if declared is None:
        raise ValueError(f"source: format {source.format} has no topic")
    return KafkaTopic(
        declared.servers,
        declared.topic,
        declared.starting,
        source.max_per_batch,
        declared.options,
    )


def _topic_records(pipeline: Pipeline) -> Landing:
    columns = pipeline.source.columns
    topic = topic_of(pipeline.source).topic

    def landed(_spark: SparkSession, records: DataFrame, last_unit: date) -> Landed:
        place = F.concat(F.lit(f"{topic}-"), "source_partition", F.lit("@"), "offset")
        lines = records.select(
            _begun_on(last_unit).alias("unit"),
            place.alias("file"),
            F.col("original").alias("value"),
            F.col("source_partition").alias(PARTITION),
            F.col("offset").alias(OFFSET),
        )
        parsed = parsed_json(lines, list(columns), ["unit", "file", PARTITION, OFFSET])
        return Landed(with_exact_numbers(parsed, columns))

    return landed


def _noted(records: DataFrame, columns: Mapping[str, Column]) -> DataFrame:
    """With columns that a stream notes with each record.

    Raises:
        ValueError: They have a column of that name.
    """
    for name in {*columns} & set(map(str.lower, records.columns)):
        raise ValueError(
            f"column {name!r} of the source is what a stream calls its own; rename it there"
        )
    return records.withColumns(dict(columns))


def _begun_on(last_unit: date) -> Column:
    """The arrival day (UTC) of a record that lies in no day's folder."""
    return F.greatest(F.to_date(_BEGUN), F.lit(last_unit))
