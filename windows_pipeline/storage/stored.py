"""A Delta table as it is stored: whether it is there, its rows, its version, its properties."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import pyarrow as pa
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.storage import delta_rs as from_driver
from windows_pipeline.storage.arrival_units import in_units
from windows_pipeline.text.paths import literal

_MOST_FILES = 1_000
"""So many files of a table are handed to Spark by name, at most; to find more is Delta's."""


@dataclass(frozen=True)
class StoredTable:
    """A Delta table of a pipeline as it is stored, with a column `arrival_unit`, the arrival day.

    Attributes:
        name: Its name for people: `flights/hourly/final_windows`.
        description: What a row is.
        location: Its folder or URI.
        schema: Its columns; `arrival_unit` is one.
        sorted_by: How rows are sorted in a file, unless a micro-batch appended it, for pruning by
            file statistics; there are statistics of these columns only, as those of others would
            tell little.
        definition: The part of the pipeline's definition that its rows follow.
        change_feed: Whether Delta keeps its change data feed, from its creation on.
        grace_may_differ: Whether rows of another grace are allowed: a correction mends them.
        partitioned: Whether each unit has files of its own, so that runs of different units do
            not meet. A small table that is read whole does without: its units share files.
    """

    name: str
    description: str
    location: str
    schema: T.StructType
    sorted_by: tuple[str, ...]
    definition: dict[str, str]
    change_feed: bool = False
    grace_may_differ: bool = False
    partitioned: bool = True

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """What its files are divided by."""
        return ("arrival_unit",) if self.partitioned else ()

    def exists(self, spark: SparkSession) -> bool:
        """Whether the table is there."""
        if self.is_reached(spark):
            return from_driver.is_table(self.location)
        return DeltaTable.isDeltaTable(spark, self.location)

    def is_reached(self, spark: SparkSession) -> bool:
        """Whether the driver can read and write it by itself."""
        return from_driver.is_reached(spark, self.location)

    def _is_found(self, spark: SparkSession) -> bool:
        """Whether it is there, for the driver to read."""
        return self.is_reached(spark) and from_driver.is_table(self.location)

    def read(
        self,
        spark: SparkSession,
        units: Collection[date] | None = None,
        since_ms: int | None = None,
    ) -> DataFrame:
        """Its rows as they stand; `require` says first whether they can be read.

        Args:
            spark: The session.
            units: Rows of other ones may be left out.
            since_ms: Rows may be left out whose first column of `sorted_by` is before it.
        """
        found = None
        if self._is_found(spark):
            found = from_driver.data_files(self.location, units, self.sorted_by[0], since_ms)
        if found is None or len(found) > _MOST_FILES:
            return spark.read.format("delta").load(self.location)
        if not found:
            return small_frame(spark, [], self.schema)
        # The files of the version by name, so that Spark need not find them, by jobs of its own.
        files = (
            spark.read.schema(self.schema)
            .option("basePath", self.location)
            .parquet(*[literal(f"{self.location}/{path}") for path in found])
        )
        return files.select(*[f"`{name}`" for name in self.schema.names])

    def of_units(self, spark: SparkSession, days: Sequence[date]) -> DataFrame:
        """Its rows of some units."""
        return self.read(spark, units=days).where(in_units(days))

    def read_version(self, spark: SparkSession, version: int) -> DataFrame:
        """Its rows as they stood in a version."""
        of_version = spark.read.format("delta").option("versionAsOf", version)
        return of_version.load(self.location)

    def count(self, spark: SparkSession) -> int:
        """How many rows it has."""
        many = from_driver.count(self.location) if self._is_found(spark) else None
        return self.read(spark).count() if many is None else many

    def rows_by_unit(self, spark: SparkSession, days: Collection[date]) -> dict[date, int]:
        """How many rows it has of each of some units; of a table that units divide."""
        if not self.exists(spark):
            return dict.fromkeys(days, 0)
        found = from_driver.rows_by_unit(self.location) if self._is_found(spark) else None
        if found is None:
            counted = self.of_units(spark, sorted(days)).groupBy("arrival_unit").count().collect()
            found = {row["arrival_unit"]: row["count"] for row in counted}
        return {day: found.get(day, 0) for day in days}

    def rows_since(self, spark: SparkSession, since_ms: int) -> int:
        """At most how many rows `read` gives from a time on; 0 where only Spark could tell."""
        if not self._is_found(spark):
            return 0
        return from_driver.rows_since(self.location, self.sorted_by[0], since_ms)

    def rows(self, spark: SparkSession, columns: Sequence[str]) -> pa.Table:
        """Columns of all its rows, here: of a table that is small as a whole."""
        if self._is_found(spark):
            return from_driver.rows(self.location, columns)
        return self.read(spark).select(*columns).toArrow()

    def version(self, spark: SparkSession) -> int:
        """Its newest version."""
        if self.is_reached(spark):
            return from_driver.version(self.location)
        history = DeltaTable.forPath(spark, self.location).history(1)
        return int(history.select("version").collect()[0][0])

    def units(self, spark: SparkSession, days: Sequence[date]) -> set[date]:
        """Which of the given units have rows."""
        if self.is_reached(spark):
            there = from_driver.units_with_rows(self.location, partitioned=self.partitioned)
            return there & set(days)
        found = self.of_units(spark, days).select("arrival_unit").distinct().collect()
        return {row.arrival_unit for row in found}

    def properties(self, spark: SparkSession) -> dict[str, str]:
        """Its properties; quick, but Spark blanks out values that look like secrets.

        (It takes a pipeline's `hourly` for a URL, so texts cannot be read this way.)
        """
        if self.is_reached(spark):
            return dict(from_driver.properties(self.location))
        rows = spark.sql(f"SHOW TBLPROPERTIES {self._sql_path}").collect()
        return {row["key"]: row["value"] for row in rows}

    def texts(self, spark: SparkSession) -> dict[str, str]:
        """Its properties, each as it was set; slower."""
        if self.is_reached(spark):
            return dict(from_driver.properties(self.location))
        detail = DeltaTable.forPath(spark, self.location).detail().select("properties").collect()
        found: dict[str, str] = detail[0][0]
        return found

    def set_properties(self, spark: SparkSession, properties: Mapping[str, str]) -> None:
        """Sets properties, all at once."""
        listed = ", ".join(f"'{name}' = '{_quoted(text)}'" for name, text in properties.items())
        spark.sql(f"ALTER TABLE {self._sql_path} SET TBLPROPERTIES ({listed})")

    def unset_properties(self, spark: SparkSession, *names: str) -> None:
        """Takes properties away, all at once, where they are set."""
        listed = ", ".join(f"'{name}'" for name in names)
        spark.sql(f"ALTER TABLE {self._sql_path} UNSET TBLPROPERTIES IF EXISTS ({listed})")

    @property
    def _sql_path(self) -> str:
        escaped = self.location.replace("`", "``")
        return f"delta.`{escaped}`"


def _quoted(text: str) -> str:
    """Fit to stand between quotes: a rule's text, or a cause, may hold some."""
    return text.replace("\\", "\\\\").replace("'", "\\'")
