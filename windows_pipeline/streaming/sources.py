"""What a stream reads, and its micro-batches as records that were landed."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader

from windows_pipeline.config import Pipeline, Source
from windows_pipeline.literal_path import literal
from windows_pipeline.settings import Settings, resolve
from windows_pipeline.sources.formats import no_records, parsed_json, texts_of
from windows_pipeline.sources.kafka import KafkaTopic, read_topic
from windows_pipeline.sources.landed_files import day_of, read_files
from windows_pipeline.streaming.order import OFFSET, PARTITION

_FILE = re.compile(r"/(\d{4}-\d{2}-\d{2})/([^/]+)$")
_EVER = "36500d"
_BEGUN = "windows_pipeline_begun"
_FILE_COLUMNS = "path string, modificationTime timestamp, length bigint, content binary"


class Landed(NamedTuple):
    """What a micro-batch brought.

    Attributes:
        records: As `read_landed` gives them, with the stream's own order if it has one.
        passed_over: How many files lie in the folders of days that the pipeline does not have.
        whole_files: Whether they are of files that are too small for Spark to divide.
    """

    records: DataFrame
    passed_over: int = 0
    whole_files: bool = False


Landing = Callable[[SparkSession, DataFrame, date], Landed]
"""Makes of a micro-batch the records that it brought, none before a unit."""


def open_stream(
    spark: SparkSession, pipeline: Pipeline, settings: Settings
) -> tuple[DataFrame, Landing]:
    """Opens a pipeline's source as a stream.

    Landed files come in the order in which they were written. Of a Delta table only added rows
    are read. Their micro-batches have the arrival day of the folder, or of the run (UTC).

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
        return found.select("path", "length"), _landed_files(pipeline, path)
    if source.kafka is not None:
        return _timed(read_topic(spark, topic_of(source))), _topic_records(pipeline)
    path = resolve(source.place, settings.landing)
    table = _reader(spark, "maxFilesPerTrigger", source.max_per_batch)
    return _timed(table.format("delta").load(path)), _added_rows(pipeline)


def _reader(spark: SparkSession, limit: str, most: int | None) -> DataStreamReader:
    return spark.readStream if most is None else spark.readStream.option(limit, most)


def _landed_files(pipeline: Pipeline, path: str) -> Landing:
    source, partitions = pipeline.source, pipeline.partitions

    def landed(spark: SparkSession, names: DataFrame, last_unit: date) -> Landed:
        found = [(_FILE.search(row.path), row.length) for row in names.collect()]
        files = {(day_of(match[1]), match[2]): length for match, length in found if match}
        end = partitions.end or date.max
        wanted = [
            (day, name) for day, name in files if day is not None and partitions.start <= day <= end
        ]
        passed_over = len(files) - len(wanted)
        if not wanted:
            return Landed(no_records(spark, list(source.columns)), passed_over)
        # What lands in the folder of an earlier day comes now.
        unit = F.greatest(F.col("unit"), F.lit(last_unit))
        records = read_files(spark, source, path, wanted).withColumn("unit", unit)
        whole = max(files[one] for one in wanted) <= _divided_above(spark)
        return Landed(records, passed_over, whole)

    return landed


def _divided_above(spark: SparkSession) -> int:
    """Up to how many bytes Spark reads a file by one task, whatever else it reads."""
    session: Any = spark._jsparkSession  # noqa: SLF001
    conf = session.sessionState().conf()
    undivided: int = min(conf.filesOpenCostInBytes(), conf.filesMaxPartitionBytes())
    return undivided


def _added_rows(pipeline: Pipeline) -> Landing:
    columns = list(pipeline.source.columns)

    def landed(_spark: SparkSession, rows: DataFrame, last_unit: date) -> Landed:
        origin = [_begun_on(last_unit).alias("unit"), F.lit(None).cast("string").alias("file")]
        return Landed(texts_of(rows, columns, origin, beside=_BEGUN))

    return landed


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
    columns = list(pipeline.source.columns)
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
        return Landed(parsed_json(lines, columns, ["unit", "file", PARTITION, OFFSET]))

    return landed


def _timed(records: DataFrame) -> DataFrame:
    """With when their micro-batch was begun: Spark notes it, and gives it again after a kill.

    Raises:
        ValueError: They have a column of that name.
    """
    if _BEGUN in map(str.lower, records.columns):
        raise ValueError(
            f"column {_BEGUN!r} of the source is what a stream calls its own; rename it there"
        )
    return records.withColumn(_BEGUN, F.current_timestamp())


def _begun_on(last_unit: date) -> Column:
    """The arrival day (UTC) of a record that lies in no day's folder."""
    return F.greatest(F.to_date(_BEGUN), F.lit(last_unit))
