"""Opens the source of a stream: landed files, a Delta table or a topic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader

from windows_pipeline.compat.hadoop_files import FileTimes
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.config import Pipeline, Source
from windows_pipeline.settings import Settings, resolve
from windows_pipeline.sources.bad_files import BadFileError
from windows_pipeline.sources.formats import parsed_json, texts_of, with_exact_numbers
from windows_pipeline.sources.kafka.topic import KafkaTopic, read_topic
from windows_pipeline.sources.metadata import file_times, topic_metadata
from windows_pipeline.sources.tuning import IngestTuning
from windows_pipeline.streaming.landed import BatchRecords, Landing
from windows_pipeline.streaming.landed_files import names_of_files, records_of_files
from windows_pipeline.streaming.order import FILE, OFFSET, PARTITION
from windows_pipeline.text.references import resolved

_BEGUN, _READ_FROM = "windows_pipeline_begun", "windows_pipeline_file"
"""Columns that a stream adds to records outside day folders: when the micro-batch began (a batch
that is run again after a kill keeps this time), and the file that holds the record."""
_WRITTEN = "windows_pipeline_written"
_ASKING_THREADS = 16
"""An object store answers in tens of milliseconds: ask for many files at once."""


def open_stream(
    spark: SparkSession, pipeline: Pipeline, settings: Settings, tuning: IngestTuning
) -> tuple[DataFrame, Landing]:
    """Opens a pipeline's source as a stream.

    Landed files and the files of a Delta table come in the order in which they were written; from
    a Delta table only added rows are read. A record's arrival day is that of its folder, or that of
    an earlier file if later; without folders it is the day (UTC) on which the micro-batch began.

    Returns:
        The streaming frame, and the function that turns each micro-batch into records.

    Raises:
        ValueError: The source has a column whose name is reserved.
    """
    source = pipeline.source
    if source.is_landed:
        path = resolve(source.required_path, settings.landing)
        reader = _reader(spark, "maxFilesPerTrigger", source.max_per_batch)
        return names_of_files(reader, path), records_of_files(pipeline, path, tuning)
    if source.kafka is not None:
        records = read_topic(spark, topic_of(source))
        return _with_reserved(records, {_BEGUN: F.current_timestamp()}), _topic_records(pipeline)
    path = resolve(source.required_path, settings.landing)
    table = _reader(spark, "maxFilesPerTrigger", source.max_per_batch).format("delta").load(path)
    reserved = {_BEGUN: F.current_timestamp(), _READ_FROM: F.input_file_name()}
    return _with_reserved(table, reserved), _added_rows(pipeline)


def _reader(spark: SparkSession, limit: str, most: int | None) -> DataStreamReader:
    return spark.readStream if most is None else spark.readStream.option(limit, most)


def _added_rows(pipeline: Pipeline) -> Landing:
    source = pipeline.source

    def landed(
        spark: SparkSession, rows: DataFrame, last_arrival_unit: date, _bad: Sequence[BadFileError]
    ) -> BatchRecords:
        origin = [
            _begun_on(last_arrival_unit).alias("arrival_unit"),
            F.lit(None).cast("string").alias("file"),
            F.col(_READ_FROM).alias(FILE),
            *file_times(source, _WRITTEN),
        ]
        timed = _with_times_of_files(rows) if source.metadata else rows
        records = texts_of(timed, source, origin, excluded=(_BEGUN, _READ_FROM, _WRITTEN))
        return BatchRecords(records, in_files=lambda names: _as_written(spark, names))

    return landed


def _with_times_of_files(rows: DataFrame) -> DataFrame:
    """Adds the time when each row's file was written, in ms since 1970."""
    names = [row[0] for row in rows.select(_READ_FROM).distinct().collect()]
    times = _written(rows.sparkSession, names)
    schema = f"{_READ_FROM} string, {_WRITTEN} bigint"
    of_files = small_frame(rows.sparkSession, [(file, ms) for ms, file in times], schema)
    return rows.join(F.broadcast(of_files), _READ_FROM)


def _as_written(spark: SparkSession, files: Iterable[str]) -> Sequence[str]:
    """Sorts files, named by their URIs, by the time when they were written, then by name."""
    named = list(files)
    return named if len(named) < 2 else [file for _, file in sorted(_written(spark, named))]


def _written(spark: SparkSession, files: Iterable[str]) -> list[tuple[int, str]]:
    """When each file, named by its URI, was written, in ms since 1970."""
    times = FileTimes(spark)

    def written(file: str) -> tuple[int, str]:
        return times.written_ms(file), file

    with ThreadPoolExecutor(_ASKING_THREADS) as threads:
        return list(threads.map(written, files))


def topic_of(source: Source) -> KafkaTopic:
    """The topic of a Kafka source.

    Raises:
        ConfigError: The topic's name refers to a variable that is not set.
        ValueError: The source has another format.
    """
    declared = source.kafka
    if declared is None:
        raise ValueError(
            f"source.format: must be kafka to have a topic, but is {source.format}; name the topic "
            "under source, with format: kafka"
        )
    return KafkaTopic(
        declared.servers,
        resolved(declared.topic, may_be_secret=False),
        declared.starting,
        source.max_per_batch,
        declared.options,
    )


def _topic_records(pipeline: Pipeline) -> Landing:
    source = pipeline.source
    topic = topic_of(pipeline.source).topic

    def landed(
        _spark: SparkSession,
        records: DataFrame,
        last_arrival_unit: date,
        _bad: Sequence[BadFileError],
    ) -> BatchRecords:
        position = F.concat(F.lit(f"{topic}-"), "source_partition", F.lit("@"), "offset")
        lines = records.select(
            _begun_on(last_arrival_unit).alias("arrival_unit"),
            position.alias("file"),
            F.col("original").alias("value"),
            F.col("source_partition").alias(PARTITION),
            F.col("offset").alias(OFFSET),
            *("key", "arrived_at", "headers"),
        )
        parsed = parsed_json(
            lines, source, ["arrival_unit", "file", PARTITION, OFFSET, *topic_metadata(source)]
        )
        return BatchRecords(with_exact_numbers(parsed, source))

    return landed


def _with_reserved(records: DataFrame, columns: Mapping[str, Column]) -> DataFrame:
    """Adds the stream's reserved columns to the records.

    Raises:
        ValueError: The records already have a column with a reserved name.
    """
    for name in {*columns} & set(map(str.lower, records.columns)):
        raise ValueError(
            f"column {name!r} of the source: streams reserve this name; rename the column in the "
            "source, and under source.columns"
        )
    return records.withColumns(dict(columns))


def _begun_on(last_arrival_unit: date) -> Column:
    """The arrival day (UTC) of a record that lies in no day's folder."""
    return F.greatest(F.to_date(_BEGUN), F.lit(last_arrival_unit))
