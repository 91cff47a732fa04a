"""Keeps tables fast to read: joins small files, clusters rows, and deletes unused files."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from windows_pipeline.storage.arrival_units import arrival_units_sql
from windows_pipeline.storage.table import Table
from windows_pipeline.text.counts import counted


@dataclass(frozen=True)
class Maintained:
    """The result of a table's maintenance.

    Attributes:
        arrival_units: The arrival units whose files were joined and clustered.
        files_before: The number of their files before.
        files_after: The number of their files after.
    """

    arrival_units: list[date]
    files_before: int
    files_after: int

    def __str__(self) -> str:
        """A summary, such as `3 arrival units joined, 12 files to 3`."""
        joined = counted(len(self.arrival_units), "arrival unit")
        files = counted(self.files_before, "file")
        return f"{joined} joined, {files} to {self.files_after}"


def maintain(spark: SparkSession, table: Table) -> Maintained:
    """Joins the files of arrival units that have several, then deletes files that no version needs.

    Rows do not change, and time travel and the change data feed keep working: only files unused
    for the table's retention (`delta.deletedFileRetentionDuration`, a week by default) are
    deleted. Maintenance is idempotent; after a crash, run it again.

    Args:
        spark: The session.
        table: The table; its files are clustered by its `sorted_by` columns (Z-order).

    Raises:
        TableMissingError: The table does not exist.
        DefinitionChangedError: The table follows another definition.
    """
    table.require(spark)
    delta = DeltaTable.forPath(spark, table.location)
    arrival_units = _crowded_arrival_units(spark, table, delta)
    before = after = 0
    if arrival_units:
        optimize = delta.optimize()
        if table.partitioned:
            optimize = optimize.where(arrival_units_sql(arrival_units))
        metrics = optimize.executeZOrderBy(*table.sorted_by).select("metrics.*").collect()[0]
        before, after = metrics["numFilesRemoved"], metrics["numFilesAdded"]
    delta.vacuum()
    return Maintained(arrival_units, before, after)


def _crowded_arrival_units(spark: SparkSession, table: Table, delta: DeltaTable) -> list[date]:
    """The arrival units that have several files, one of them newer than the last joining.

    An arrival unit larger than one file keeps several files, and is not rewritten each time. If the
    table is not partitioned, all arrival units share files, so all are returned or none.
    """
    if not table.count(spark):  # Spark has no file metadata for a table without rows
        return []
    joined = delta.history().where("operation = 'OPTIMIZE'").agg(F.max("timestamp")).collect()[0][0]
    partition = F.struct(*table.partition_columns)
    files = (
        table.read(spark)
        .select("arrival_unit", "_metadata.file_path", "_metadata.file_modification_time")
        .groupBy(partition.alias("partition"))
        .agg(
            F.collect_set("arrival_unit").alias("arrival_units"),
            F.count_distinct("file_path").alias("files"),
            F.max("file_modification_time").alias("newest"),
        )
        .where("files > 1")
    )
    if joined is not None:
        files = files.where(F.col("newest") > F.lit(joined))
    found = files.select("arrival_units").collect()
    return sorted(arrival_unit for row in found for arrival_unit in row.arrival_units)
