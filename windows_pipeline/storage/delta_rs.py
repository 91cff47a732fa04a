"""What the driver does with a table by itself, by delta-rs: looks, and writes of few rows.

Delta works out each version of a table by Spark jobs before it is read or written, about a second
of a small table; delta-rs reads the same log in milliseconds. It is used where the driver can reach
a table's files as they are: in a local folder. In an object store, whose keys Spark has, all is
Spark's.

Both keep Delta's protocol: a commit is a file that only one writer can make, `txn` says which
micro-batches are there, and overwritten rows are in the change data feed.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import (
    ColumnProperties,
    CommitProperties,
    DeltaTable,
    PostCommitHookProperties,
    Transaction,
    WriterProperties,
    write_deltalake,
)
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from windows_pipeline.compat.delta_rs import forget_last_checkpoint, reads_retention, takes_folder
from windows_pipeline.compat.hadoop_files import shares_files
from windows_pipeline.compat.local_frame import arrow_schema

_PLAIN_FILES = {"timestampNtz"}
"""The reader features with which a table's rows are those of its Parquet files."""
_MAPPED_COLUMNS = 2
"""The reader version of tables whose columns may have other names in their files."""
_SMALL_TYPES = (T.NumericType, T.BooleanType, T.DateType, T.TimestampType)
_PLAIN_TYPES = (T.StringType, *_SMALL_TYPES)
_MOST_BYTES = "spark.driver.maxResultSize"
"""Spark's own setting of how many bytes of results the driver takes; 0 for any number."""
_DEFAULT_MOST_BYTES = 1024**3
_SIZE = re.compile(r"(\d+)(?:([kmgtp])b?|b)?")
_SMALL_BYTES, _TEXT_BYTES, _OTHER_BYTES = 8, 64, 1_024
"""So many are taken to be in a number or a time, in a text, and in a value of any other type."""
_EARLIEST_US = -(2**63)
STATISTICS = "delta.dataSkippingStatsColumns"
"""The property that names the columns of whose values in a file Delta keeps least and most."""
_CHECKPOINT_INTERVAL = "delta.checkpointInterval"
_DEFAULT_CHECKPOINT_INTERVAL = "10"
_CLEANUP = "delta.enableExpiredLogCleanup"
_LOG = logging.getLogger(__name__)
# By itself delta-rs has another default interval than Delta.
_NO_CHECKPOINT = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
_BY_DIFFERENCES: Any = {"encoding": "DELTA_BINARY_PACKED", "dictionary_enabled": False}


def is_reached(spark: SparkSession, location: str) -> bool:
    """Whether the driver can reach a table there by itself, and is the one that Spark would find.

    That is a local folder, by its absolute path, whose name delta-rs can take.
    """
    return location.startswith("/") and takes_folder(location) and shares_files(spark)


def is_table(location: str) -> bool:
    """Whether there is a Delta table."""
    return DeltaTable.is_deltatable(location)


def may_hold(schema: T.StructType) -> bool:
    """Whether the driver can make a table of these columns; of others Spark knows how."""
    return all(_is_plain(field.dataType) for field in schema)


def create(
    location: str,
    schema: T.StructType,
    partition_by: Sequence[str],
    description: str,
    table_properties: Mapping[str, str],
) -> None:
    """Makes a table where none is.

    Raises:
        CommitFailedError: Another writer made it meanwhile.
    """
    arrow = arrow_schema(schema)
    fields = [
        field.with_metadata({name: str(text) for name, text in of_spark.metadata.items()})
        for field, of_spark in zip(arrow, schema, strict=True)
    ]
    DeltaTable.create(
        location,
        pa.schema(fields),
        mode="ignore",
        partition_by=list(partition_by),
        description=description,
        configuration=dict(table_properties),
        raise_if_key_not_exists=False,
    )


def _is_plain(kind: T.DataType) -> bool:
    if isinstance(kind, T.StructType):
        return may_hold(kind)
    if isinstance(kind, T.ArrayType):
        return _is_plain(kind.elementType)
    return isinstance(kind, _PLAIN_TYPES)


def properties(location: str) -> Mapping[str, str]:
    """A table's properties, each as it was set."""
    return DeltaTable(location).metadata().configuration


def version(location: str) -> int:
    """A table's newest version."""
    return DeltaTable(location).version()


def data_files(
    location: str,
    units: Collection[date] | None = None,
    column: str | None = None,
    since_ms: int | None = None,
) -> list[str] | None:
    """A table's files, as it names them below its folder; None where they do not tell its rows.

    Args:
        location: The table's folder.
        units: Leave out the files of other ones, where the table is divided by them.
        column: Leave out the files of which statistics say that its instants are all before ...
        since_ms: ... this one.
    """
    table = DeltaTable(location)
    if not _files_tell_rows(table):
        return None
    paths: list[str] = _files(table, units, column, since_ms)["path"].to_pylist()
    return paths


def rows_since(location: str, column: str, since_ms: int) -> int:
    """How many rows lie in files whose statistics do not say that they are all before a time."""
    files = _files(DeltaTable(location), column=column, since_ms=since_ms)
    return pc.sum(files["num_records"], min_count=0).as_py()  # type: ignore[no-any-return]


def _files(
    table: DeltaTable,
    units: Collection[date] | None = None,
    column: str | None = None,
    since_ms: int | None = None,
) -> pa.Table:
    """What the log says of a table's files, less those that `data_files` leaves out."""
    adds = pa.table(table.get_add_actions(flatten=True))
    if units is not None and "partition.arrival_unit" in adds.column_names:
        wanted = pa.array(sorted(units), pa.date32())
        adds = adds.filter(pc.is_in(adds["partition.arrival_unit"], wanted))
    if since_ms is not None and f"max.{column}" in adds.column_names:
        newest_us = adds[f"max.{column}"].cast(pa.int64())
        # Delta cuts times of statistics to milliseconds.
        is_wanted = pc.greater_equal(newest_us, max((since_ms - 1) * 1_000, _EARLIEST_US))
        adds = adds.filter(pc.fill_null(is_wanted, fill_value=True))
    return adds


def _files_tell_rows(table: DeltaTable) -> bool:
    protocol = table.protocol()
    if protocol.min_reader_version == _MAPPED_COLUMNS:
        return False
    return set(protocol.reader_features or ()) <= _PLAIN_FILES


def count(location: str) -> int | None:
    """How many rows a table has, as its log tells; None where the log does not."""
    table = DeltaTable(location)
    of_files = _files(table)["num_records"]
    if of_files.null_count or not _files_tell_rows(table):
        return None
    return pc.sum(of_files, min_count=0).as_py()  # type: ignore[no-any-return]


def units_with_rows(location: str, *, partitioned: bool) -> set[date]:
    """The units that a table holds rows of."""
    table = DeltaTable(location)
    if not partitioned:
        return set(rows(location, ["arrival_unit"])["arrival_unit"].unique().to_pylist())
    adds = _files(table)
    filled = adds.filter(pc.fill_null(pc.not_equal(adds["num_records"], 0), fill_value=True))
    return set(filled["partition.arrival_unit"].unique().to_pylist())


def rows_by_unit(location: str) -> dict[date, int] | None:
    """How many rows each unit has, as the log tells; None where the log does not."""
    table = DeltaTable(location)
    files = _files(table)
    if files["num_records"].null_count or not _files_tell_rows(table):
        return None
    found: dict[date, int] = {}
    if not files.num_rows:
        return found
    units, counts = files["partition.arrival_unit"].to_pylist(), files["num_records"].to_pylist()
    for unit, count_of_file in zip(units, counts, strict=True):
        found[unit] = found.get(unit, 0) + count_of_file
    return found


def rows(location: str, columns: Sequence[str]) -> pa.Table:
    """All rows of a table that is small as a whole, and that units do not divide.

    File by file: Arrow's scanner leaves threads behind, and a process that ends just after it has
    read a small table is aborted now and then (pyarrow 26, deltalake 1.6).
    """
    table = DeltaTable(location)
    schema = pa.schema(table.schema().to_arrow())
    wanted = pa.schema([schema.field(name) for name in columns])
    if not _files_tell_rows(table):
        return table.to_pyarrow_table(columns=list(columns))
    files = [
        pq.ParquetFile(f"{location}/{path}").read(list(columns), use_threads=False).cast(wanted)
        for path in _files(table)["path"].to_pylist()
    ]
    return pa.concat_tables(files) if files else wanted.empty_table()


def may_write(location: str) -> bool:
    """Whether delta-rs reads all that a table says of what is to be kept."""
    return reads_retention(properties(location))


def has_room(spark: SparkSession, schema: T.StructType, many: int) -> bool:
    """Whether Spark would hand over so many rows of these columns, as far as their types tell."""
    told = spark.conf.get(_MOST_BYTES, None)
    most = _DEFAULT_MOST_BYTES if told is None else bytes_of_size(told)
    # Where Spark has no limit, Python still has one.
    return many * sum(map(_bytes_of, schema)) <= (most or _DEFAULT_MOST_BYTES)


def bytes_of_size(text: str) -> int:
    """How many bytes a size of Spark's configuration is: `1g`, `512m`, or plain bytes.

    Raises:
        ValueError: It is no such size; Spark itself would not start with it.
    """
    found = _SIZE.fullmatch(text.strip().lower())
    if found is None:
        raise ValueError(f"{_MOST_BYTES} must be a size such as 512m or 1g, not {text!r}")
    number, unit = found.groups()
    return int(number) << (10 * "bkmgtp".index(unit or "b"))


def _bytes_of(field: T.StructField) -> int:
    if isinstance(field.dataType, _SMALL_TYPES):
        return _SMALL_BYTES
    return _TEXT_BYTES if isinstance(field.dataType, T.StringType) else _OTHER_BYTES


def fetched(rows: DataFrame) -> pa.Table | None:
    """Rows, here; None where they are more than Spark hands over."""
    try:
        return rows.toArrow()
    except Py4JJavaError as error:
        if _MOST_BYTES in str(error):
            return None
        raise


def append(location: str, added: pa.Table, application: str, batch: int) -> None:
    """Adds the rows of a micro-batch, once however often it is run.

    Args:
        location: The table's folder.
        added: All its columns.
        application: The name of what writes.
        batch: The micro-batch's number; each is larger than the one before.
    """
    table = DeltaTable(location)
    there = table.transaction_version(application)
    if there is not None and there >= batch:
        return
    write_deltalake(
        table,
        added,
        mode="append",
        commit_properties=CommitProperties(app_transactions=[Transaction(application, batch)]),
        post_commithook_properties=_NO_CHECKPOINT,
        writer_properties=_in_files(table, added.schema),
    )
    _make_checkpoint_if_due(table, location)


def replace_units(location: str, units: Sequence[date], new: pa.Table) -> int:
    """Replaces the rows of some units, in one transaction; returns the version.

    Args:
        location: The table's folder.
        units: The units.
        new: All columns; rows of these units only.

    Raises:
        CommitFailedError: Another writer changed what was read.
    """
    table = DeltaTable(location)
    listed = ", ".join(f"DATE '{unit}'" for unit in sorted(set(units)))
    write_deltalake(
        table,
        new,
        mode="overwrite",
        predicate=f"arrival_unit IN ({listed})",
        post_commithook_properties=_NO_CHECKPOINT,
        writer_properties=_in_files(table, new.schema),
    )
    _make_checkpoint_if_due(table, location)
    return table.version()


def update_units(location: str, values: pa.Table, columns: Sequence[str]) -> None:
    """Sets columns of all rows of some units, in one transaction.

    Args:
        location: The table's folder.
        values: A row a unit: `arrival_unit`, and the columns.
        columns: The columns.

    Raises:
        CommitFailedError: Another writer changed what was read.
    """
    table = DeltaTable(location)
    table.merge(
        values,
        "old.arrival_unit = new.arrival_unit",
        source_alias="new",
        target_alias="old",
        post_commithook_properties=_NO_CHECKPOINT,
        writer_properties=_in_files(table, pa.schema(table.schema().to_arrow())),
    ).when_matched_update({name: f"new.{name}" for name in columns}).execute()
    _make_checkpoint_if_due(table, location)


def _in_files(table: DeltaTable, schema: pa.Schema) -> WriterProperties:
    """How columns stand in a table's files: whole numbers and times by what they differ.

    Neighbours differ little, so that is half as large as with dictionaries, and quicker to write.
    Least and most values are there of the columns that the table has statistics of.
    """
    told = table.metadata().configuration.get(STATISTICS)
    bounded = schema.names if told is None else told.split(",")
    return WriterProperties(
        column_properties={
            field.name: ColumnProperties(
                statistics_enabled="CHUNK" if field.name in bounded else "NONE",
                **(_BY_DIFFERENCES if _is_whole(field.type) else {}),
            )
            for field in schema
        }
    )


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_temporal(kind))


def _make_checkpoint_if_due(table: DeltaTable, location: str) -> None:
    """Sums up the log as often as the table says, and lets go of what nobody may ask for."""
    told = table.metadata().configuration
    if table.version() % int(told.get(_CHECKPOINT_INTERVAL, _DEFAULT_CHECKPOINT_INTERVAL)):
        return
    try:
        forget_last_checkpoint(location)
        table.create_checkpoint()
        if told.get(_CLEANUP, "true").lower() != "false":
            table.cleanup_metadata()
    except (DeltaError, OSError):  # the rows are there: only readers take longer
        _LOG.warning("%s: no checkpoint was made, or old commits stay", location, exc_info=True)
