"""What is known of a record besides its value, as texts of the columns that are declared so."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.config.source import Source
from windows_pipeline.sources.landing import FileState

_HEADER = "headers."
_WRITTEN = "_written_ms"


def topic_metadata(source: Source) -> list[Column]:
    """The declared columns of a topic's metadata, of the columns of `read_topic`.

    A header that a record lacks is null; of several of one name the last counts.
    """
    return [_of_topic(what).alias(name) for name, what in source.metadata.items()]


def file_times(source: Source, written_ms: str) -> list[Column]:
    """The declared columns of a file's metadata, of the column with the time of writing in ms."""
    written = F.timestamp_millis(written_ms)
    return [_instant(written).alias(name) for name in source.metadata]


def with_file_times(records: DataFrame, source: Source, files: Iterable[FileState]) -> DataFrame:
    """Adds the declared columns of a file's metadata to the records of landed files.

    Args:
        records: The columns of a reader of landed files.
        source: The source.
        files: The files that were read, as the landing lists them.
    """
    if not source.metadata:
        return records
    schema = f"arrival_unit date, file string, {_WRITTEN} bigint"
    rows = [(file.day, file.name, file.written_ms) for file in files]
    of_files = small_frame(records.sparkSession, rows, schema)
    joined = records.join(F.broadcast(of_files), ["arrival_unit", "file"], "left")
    found = (F.col(name) for name in records.columns)
    return joined.select(*found, *file_times(source, _WRITTEN))


def _of_topic(what: str) -> Column:
    if what.startswith(_HEADER):
        name = what.removeprefix(_HEADER)
        named = F.filter("headers", lambda header: header["key"] == F.lit(name))
        return F.make_valid_utf8(F.try_element_at(named, F.lit(-1))["value"].cast("string"))
    return F.col("key") if what == "key" else _instant(F.col("arrived_at"))


def _instant(time: Column) -> Column:
    """The text of a time, with its zone."""
    return F.concat(time.cast("string"), F.lit("Z"))
