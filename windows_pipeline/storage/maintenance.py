"""Keeps tables readable: few files a unit, clustered as they are read, and no dead ones."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from windows_pipeline.storage.arrival_units import units_sql
from windows_pipeline.storage.table import Table


@dataclass(frozen=True)
class Maintained:
    """What maintenance did to a table.

    Attributes:
        units: The units whose files were joined and clustered.
        files_before: How many files these had.
        files_after: How many they have.
    """

    units: list[date]
    files_before: int
    files_after: int

    def __str__(self) -> str:
        """The same in a few words."""
        return f"{len(self.units)} units joined, {self.files_before} files to {self.files_after}"


def maintain(spark: SparkSession, table: Table) -> Maintained:
    """Joins the files of units that have several, then deletes files that no version needs.

    Rows stay as they are, and so does what readers of time travel and of the change data feed
    are promised: only files that have been unused for the table's own retention
    (`delta.deletedFileRetentionDuration`, a week by default) are deleted, and joining files
    changes no data. Run again, it does nothing; stopped anywhere, it is run again.

    Args:
        spark: The session.
        table: The table; its files are clustered by its `sorted_by` columns (Z-order).

    Raises:
        TableMissingError: The table is not there.
        DefinitionChangedError: It follows another definition.
    """
    table.require(spark)
    delta = DeltaTable.forPath(spark, table.location)
    units = _crowded_units(spark, table, delta)
    before = after = 0
    if units:
        optimize = delta.optimize()
        if table.partitioned:
            optimize = optimize.where(units_sql(units))
        metrics = optimize.executeZOrderBy(*table.sorted_by).select("metrics.*").collect()[0]
        before, after = metrics["numFilesRemoved"], metrics["numFilesAdded"]
    delta.vacuum()
    return Maintained(units, before, after)


def _crowded_units(spark: SparkSession, table: Table, delta: DeltaTable) -> list[date]:
    """The units with several files, of which one came after the last time that they were joined.

    A unit that is larger than a file keeps several, and is not written anew each time. Where units
    share files they are all joined or none.
    """
    if not table.count(spark):  # Spark knows no files of a table without rows
        return []
    joined = delta.history().where("operation = 'OPTIMIZE'").agg(F.max("timestamp")).collect()[0][0]
    place = F.struct(*table.partition_columns)
    files = (
        table.read(spark)
        .select("arrival_unit", "_metadata.file_path", "_metadata.file_modification_time")
        .groupBy(place.alias("place"))
        .agg(
            F.collect_set("arrival_unit").alias("units"),
            F.count_distinct("file_path").alias("files"),
            F.max("file_modification_time").alias("newest"),
        )
        .where("files > 1")
    )
    if joined is not None:
        files = files.where(F.col("newest") > F.lit(joined))
    return sorted(unit for row in files.select("units").collect() for unit in row.units)
