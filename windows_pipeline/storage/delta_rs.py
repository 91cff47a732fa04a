"""Reads and writes small tables on the driver with delta-rs, without Spark jobs.

Before it reads or writes, Spark's Delta runs jobs to find a table's version, which takes about a
second for a small table. delta-rs reads the same log in milliseconds. The driver uses delta-rs for
tables in local folders. Tables in an object store are left to Spark, which has the credentials.

Both writers keep Delta's protocol: only one writer can create the file of a commit, `txn` records
which micro-batches a table holds, and the change data feed holds overwritten rows.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
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

from windows_pipeline.compat.delta_rs import (
    forget_last_checkpoint,
    supports_folder,
    understands_retention,
)
from windows_pipeline.compat.hadoop_files import shares_files
from windows_pipeline.compat.local_frame import arrow_schema
from windows_pipeline.storage.arrival_units import arrival_units_sql
from windows_pipeline.storage.files.damage import LOG_FOLDER, damage_of
from windows_pipeline.storage.files.delta_log import entries_of_files, files_hold_exact_rows
from windows_pipeline.storage.files.rows import StoredRows

_SMALL_TYPES = (T.NumericType, T.BooleanType, T.DateType, T.TimestampType)
_PLAIN_TYPES = (T.StringType, *_SMALL_TYPES)
RESULT_LIMIT = "spark.driver.maxResultSize"
"""Spark's setting: how many bytes of results the driver accepts; 0 for no limit."""
_DEFAULT_RESULT_LIMIT = 1024**3
_SIZE = re.compile(r"(\d+)(?:([kmgtp])b?|b)?")
_SMALL_BYTES, _TEXT_BYTES, _OTHER_BYTES = 8, 64, 1_024
"""Estimated bytes of a number or time, of a text, and of a value of another type."""
_EARLIEST_US = -(2**63)
STATISTICS_COLUMNS = "delta.dataSkippingStatsColumns"
"""The table property that names the columns whose smallest and largest values files record."""
_CHECKPOINT_INTERVAL = "delta.checkpointInterval"
_DEFAULT_CHECKPOINT_INTERVAL = "10"
_CLEANUP = "delta.enableExpiredLogCleanup"
_LOG = logging.getLogger(__name__)
# delta-rs and Delta differ in their default checkpoint interval, so this module makes checkpoints.
_NO_CHECKPOINT = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
# Gzip is the only Parquet codec whose checksum every reader verifies; level 1 costs little.
_COMPRESSION: Any = {"compression": "GZIP", "compression_level": 1}
_DELTA_ENCODING: Any = {"encoding": "DELTA_BINARY_PACKED", "dictionary_enabled": False}


def driver_can_reach(spark: SparkSession, location: str) -> bool:
    """Whether delta-rs on the driver reaches the same table as Spark.

    True for the absolute path of a local folder that delta-rs supports, if Spark reads local
    files, too.
    """
    return location.startswith("/") and supports_folder(location) and shares_files(spark)


def _opened(location: str, version: int | None = None) -> DeltaTable:
    """Opens a table, at its newest version or another one.

    Raises:
        TableDamagedError: Its log cannot be read.
    """
    with damage_of(location, f"{location}/{LOG_FOLDER}"):
        return DeltaTable(location, version)


def is_table(location: str) -> bool:
    """Whether a folder holds a Delta table."""
    return DeltaTable.is_deltatable(location)


def can_create(schema: T.StructType) -> bool:
    """Whether delta-rs can create a table with these columns; otherwise Spark creates it."""
    return all(_is_plain(field.dataType) for field in schema)


def create(
    location: str,
    schema: T.StructType,
    partition_by: Sequence[str],
    description: str,
    table_properties: Mapping[str, str],
) -> None:
    """Creates a table if the folder holds none.

    Raises:
        CommitFailedError: Another writer created it at the same time.
    """
    arrow = arrow_schema(schema)
    fields = [
        field.with_metadata({name: str(text) for name, text in spark_field.metadata.items()})
        for field, spark_field in zip(arrow, schema, strict=True)
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
        return can_create(kind)
    if isinstance(kind, T.ArrayType):
        return _is_plain(kind.elementType)
    return isinstance(kind, _PLAIN_TYPES)


def properties(location: str) -> Mapping[str, str]:
    """A table's properties, with their texts as set."""
    return _opened(location).metadata().configuration


def version(location: str) -> int:
    """The newest version of a table."""
    return _opened(location).version()


def data_files(
    location: str,
    arrival_units: Collection[date] | None = None,
    column: str | None = None,
    since_ms: int | None = None,
    version: int | None = None,
) -> list[str] | None:
    """The paths of a table's files below its folder; None if files do not hold exactly its rows.

    Args:
        location: The table's folder.
        arrival_units: If the table is partitioned by arrival unit, only the files of these units.
        column: A timestamp column. With `since_ms`, files are left out whose statistics say that
            all their values lie before it.
        since_ms: The instant, in milliseconds since 1970.
        version: An older version; None for the newest.
    """
    table = _opened(location, version)
    if not files_hold_exact_rows(table):
        return None
    paths: list[str] = _files(table, arrival_units, column, since_ms)["path"].to_pylist()
    return paths


def rows_since(location: str, column: str, since_ms: int) -> int:
    """The number of rows in files that may hold values of a column at or after a time."""
    files = _files(_opened(location), column=column, since_ms=since_ms)
    return pc.sum(files["num_records"], min_count=0).as_py()  # type: ignore[no-any-return]


def _files(
    table: DeltaTable,
    arrival_units: Collection[date] | None = None,
    column: str | None = None,
    since_ms: int | None = None,
) -> pa.Table:
    """The log's entries of a table's files, without those that `data_files` leaves out."""
    adds = entries_of_files(table)
    if arrival_units is not None and "partition.arrival_unit" in adds.column_names:
        wanted = pa.array(sorted(arrival_units), pa.date32())
        adds = adds.filter(pc.is_in(adds["partition.arrival_unit"], wanted))
    if since_ms is not None and f"max.{column}" in adds.column_names:
        newest_us = adds[f"max.{column}"].cast(pa.int64())
        # Delta cuts times of statistics to milliseconds.
        is_wanted = pc.greater_equal(newest_us, max((since_ms - 1) * 1_000, _EARLIEST_US))
        adds = adds.filter(pc.fill_null(is_wanted, fill_value=True))
    return adds


def count(location: str) -> int | None:
    """A table's number of rows, from its log; None if the log does not say."""
    table = _opened(location)
    counts = _files(table)["num_records"]
    if counts.null_count or not files_hold_exact_rows(table):
        return None
    return pc.sum(counts, min_count=0).as_py()  # type: ignore[no-any-return]


def arrival_units_with_rows(location: str, *, partitioned: bool) -> set[date]:
    """The arrival units of which a table has rows."""
    table = _opened(location)
    if not partitioned:
        return set(rows(location, ["arrival_unit"])["arrival_unit"].unique().to_pylist())
    adds = _files(table)
    filled = adds.filter(pc.fill_null(pc.not_equal(adds["num_records"], 0), fill_value=True))
    return set(filled["partition.arrival_unit"].unique().to_pylist())


def rows_by_arrival_unit(location: str) -> dict[date, int] | None:
    """The number of rows of each arrival unit, from the log; None if the log does not say."""
    table = _opened(location)
    files = _files(table)
    if files["num_records"].null_count or not files_hold_exact_rows(table):
        return None
    if not files.num_rows:
        return {}
    sums = files.group_by("partition.arrival_unit").aggregate([("num_records", "sum")])
    columns = (sums["partition.arrival_unit"], sums["num_records_sum"])
    return dict(zip(*(column.to_pylist() for column in columns), strict=True))


def rows(location: str, columns: Sequence[str]) -> pa.Table:
    """All rows of a small, unpartitioned table."""
    return StoredRows(_opened(location), location).read(columns)


def can_write(location: str) -> bool:
    """Whether delta-rs understands a table's retention periods."""
    return understands_retention(properties(location))


def fits_in_driver(
    spark: SparkSession, schema: T.StructType, row_count: int, limit_setting: str = RESULT_LIMIT
) -> bool:
    """Whether Spark's limit of results lets the driver collect that number of rows.

    Args:
        spark: The session.
        schema: The columns; their types decide the estimated size of a row.
        row_count: The number of rows.
        limit_setting: The setting of Spark that holds the limit.
    """
    size = spark.conf.get(limit_setting, None)
    limit = _DEFAULT_RESULT_LIMIT if size is None else bytes_of_size(size)
    # Even without a limit of Spark, the driver's Python needs a limit.
    return row_count * sum(map(_bytes_of, schema)) <= (limit or _DEFAULT_RESULT_LIMIT)


def bytes_of_size(text: str) -> int:
    """The bytes of a size in Spark's configuration, such as `1g`, `512m` or a number of bytes.

    Raises:
        ValueError: The text is not such a size; Spark would not start with it.
    """
    found = _SIZE.fullmatch(text.strip().lower())
    if found is None:
        raise ValueError(
            f"{RESULT_LIMIT} must be a size such as 512m or 1g, not {text!r}; write "
            "such a size under spark in settings.yaml"
        )
    number, suffix = found.groups()
    return int(number) << (10 * "bkmgtp".index(suffix or "b"))


def _bytes_of(field: T.StructField) -> int:
    # The list of failed aggregates is nearly always empty.
    if isinstance(field.dataType, _SMALL_TYPES) or field.name == "failed":
        return _SMALL_BYTES
    return _TEXT_BYTES if isinstance(field.dataType, T.StringType) else _OTHER_BYTES


def fetch(rows: DataFrame) -> pa.Table | None:
    """Collects rows to the driver; None if they exceed Spark's limit of results."""
    try:
        return rows.toArrow()
    except Py4JJavaError as error:
        if RESULT_LIMIT in str(error):
            return None
        raise


def append(
    location: str,
    added: pa.Table,
    application: str,
    batch: int,
    require: Callable[[Mapping[str, str]], None] = lambda _: None,
    replaced: Collection[date] = (),
) -> None:
    """Appends the rows of a micro-batch, unless the table already holds that micro-batch.

    Args:
        location: The table's folder.
        added: The rows, with all columns of the table.
        application: The name of the writing application.
        batch: The micro-batch's number; numbers must increase.
        require: Raises an error if the table's properties forbid the append.
        replaced: The arrival units whose earlier rows the rows replace.

    Raises:
        CommitFailedError: Another writer changed the table's properties meanwhile.
    """
    table = _opened(location)
    require(table.metadata().configuration)
    last_batch = table.transaction_version(application)
    if last_batch is not None and last_batch >= batch:
        return
    properties = CommitProperties(app_transactions=[Transaction(application, batch)])
    write = partial(
        write_deltalake,
        table,
        added,
        commit_properties=properties,
        post_commithook_properties=_NO_CHECKPOINT,
        writer_properties=_writer_properties(table, added.schema),
    )
    if replaced:
        with damage_of(location):  # the write reads old rows of shared files
            write(mode="overwrite", predicate=arrival_units_sql(sorted(replaced)))
    else:
        write(mode="append")
    _make_checkpoint_if_due(table, location)


def replace(location: str, where: str, new: pa.Table) -> int:
    """Replaces the rows that meet a condition in one transaction; returns the new version.

    Args:
        location: The table's folder.
        where: The condition, as SQL over the table's columns.
        new: The new rows, with all columns; all meet the condition.

    Raises:
        CommitFailedError: Another writer changed rows that this write had read.
    """
    table = _opened(location)
    with damage_of(location):  # the write reads old rows, of shared files or for the change feed
        write_deltalake(
            table,
            new,
            mode="overwrite",
            predicate=where,
            post_commithook_properties=_NO_CHECKPOINT,
            writer_properties=_writer_properties(table, new.schema),
        )
    _make_checkpoint_if_due(table, location)
    return table.version()


def update_arrival_units(location: str, values: pa.Table, columns: Sequence[str]) -> None:
    """Sets columns of all rows of some arrival units in one transaction.

    Args:
        location: The table's folder.
        values: One row for each arrival unit: `arrival_unit`, and the columns to set.
        columns: The names of the columns to set.

    Raises:
        CommitFailedError: Another writer changed rows that this write had read.
    """
    table = _opened(location)
    with damage_of(location):
        table.merge(
            values,
            "old.arrival_unit = new.arrival_unit",
            source_alias="new",
            target_alias="old",
            post_commithook_properties=_NO_CHECKPOINT,
            writer_properties=_writer_properties(table, pa.schema(table.schema().to_arrow())),
        ).when_matched_update({name: f"new.{name}" for name in columns}).execute()
    _make_checkpoint_if_due(table, location)


def _writer_properties(table: DeltaTable, schema: pa.Schema) -> WriterProperties:
    """Compression, encodings and statistics: Gzip; DELTA_BINARY_PACKED for integers and times.

    Neighbouring values differ little, so this halves the size of dictionaries and writes faster.
    Only columns for which the table has statistics get smallest and largest values.
    """
    named = table.metadata().configuration.get(STATISTICS_COLUMNS)
    with_bounds = schema.names if named is None else named.split(",")
    return WriterProperties(
        **_COMPRESSION,
        column_properties={
            field.name: ColumnProperties(
                statistics_enabled="CHUNK" if field.name in with_bounds else "NONE",
                **(_DELTA_ENCODING if _is_whole(field.type) else {}),
            )
            for field in schema
        },
    )


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_temporal(kind))


def _make_checkpoint_if_due(table: DeltaTable, location: str) -> None:
    """Makes a checkpoint at the table's interval, and deletes expired commits from the log."""
    stored = table.metadata().configuration
    if table.version() % int(stored.get(_CHECKPOINT_INTERVAL, _DEFAULT_CHECKPOINT_INTERVAL)):
        return
    try:
        forget_last_checkpoint(location)
        table.create_checkpoint()
        if stored.get(_CLEANUP, "true").lower() != "false":
            table.cleanup_metadata()
    except (DeltaError, OSError):  # the commit succeeded; readers only take longer
        _LOG.warning(
            "%s: a checkpoint failed, or expired commits were not deleted", location, exc_info=True
        )
