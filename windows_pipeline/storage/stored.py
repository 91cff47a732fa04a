"""Reads a Delta table: whether it exists, its rows, version and properties."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

import pyarrow as pa
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.storage import delta_rs
from windows_pipeline.storage.arrival_units import in_arrival_units
from windows_pipeline.storage.catalog import TableSpec
from windows_pipeline.storage.spark_schema import spark_schema
from windows_pipeline.text.paths import literal

_MOST_FILES = 1_000
"""The most files to pass to Spark by name; for more, Spark's Delta reads the table."""


@dataclass(frozen=True)
class StoredTable(TableSpec):
    """A stored Delta table of a pipeline; its column `arrival_unit` is the arrival day.

    Attributes:
        grace_may_differ: Whether its rows may follow another grace; a correction sets this.
    """

    grace_may_differ: bool = False

    @cached_property
    def schema(self) -> T.StructType:
        """Spark's schema of its columns."""
        return spark_schema(self.columns)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The columns that partition its files."""
        return ("arrival_unit",) if self.partitioned else ()

    def exists(self, spark: SparkSession) -> bool:
        """Whether the table exists."""
        if self.driver_can_reach(spark):
            return delta_rs.is_table(self.location)
        return DeltaTable.isDeltaTable(spark, self.location)

    def driver_can_reach(self, spark: SparkSession) -> bool:
        """Whether the driver can read and write the table with delta-rs."""
        return delta_rs.driver_can_reach(spark, self.location)

    def _is_found(self, spark: SparkSession) -> bool:
        """Whether the table exists and the driver can read it with delta-rs."""
        return self.driver_can_reach(spark) and delta_rs.is_table(self.location)

    def read(
        self,
        spark: SparkSession,
        arrival_units: Collection[date] | None = None,
        since_ms: int | None = None,
        version: int | None = None,
    ) -> DataFrame:
        """The rows; call `Table.require` first.

        Args:
            spark: The session.
            arrival_units: If given, rows of other arrival units may be left out.
            since_ms: If given, rows may be left out whose first column of `sorted_by` lies before
                this instant (milliseconds since 1970).
            version: An older version that followed this definition; None for the newest.
        """
        paths = None
        if self._is_found(spark):
            sorted_by = self.sorted_by[0]
            paths = delta_rs.data_files(self.location, arrival_units, sorted_by, since_ms, version)
        if paths is None or len(paths) > _MOST_FILES:
            if version is not None:
                return self.read_version(spark, version)
            return spark.read.format("delta").load(self.location)
        if not paths:
            return small_frame(spark, [], self.schema)
        # Naming the version's files saves the Spark jobs that would list them.
        files = (
            spark.read.schema(self.schema)
            .option("basePath", self.location)
            .parquet(*[literal(f"{self.location}/{path}") for path in paths])
        )
        return files.select(*[f"`{name}`" for name in self.schema.names])

    def of_arrival_units(
        self, spark: SparkSession, days: Sequence[date], version: int | None = None
    ) -> DataFrame:
        """The rows of some arrival units; see `read`."""
        found = self.read(spark, arrival_units=days, version=version)
        return found.where(in_arrival_units(days))

    def read_version(self, spark: SparkSession, version: int) -> DataFrame:
        """The rows of an older version, with the columns that it had."""
        of_version = spark.read.format("delta").option("versionAsOf", version)
        return of_version.load(self.location)

    def count(self, spark: SparkSession) -> int:
        """The number of rows."""
        row_count = delta_rs.count(self.location) if self._is_found(spark) else None
        return self.read(spark).count() if row_count is None else row_count

    def rows_by_arrival_unit(self, spark: SparkSession, days: Collection[date]) -> dict[date, int]:
        """The number of rows of each of some arrival units; the table must be partitioned."""
        if not self.exists(spark):
            return dict.fromkeys(days, 0)
        found = delta_rs.rows_by_arrival_unit(self.location) if self._is_found(spark) else None
        if found is None:
            counted = (
                self.of_arrival_units(spark, sorted(days)).groupBy("arrival_unit").count().collect()
            )
            found = {row["arrival_unit"]: row["count"] for row in counted}
        return {day: found.get(day, 0) for day in days}

    def rows_since(self, spark: SparkSession, since_ms: int) -> int:
        """An upper bound of the rows that `read` returns from a time on; 0 if unknown."""
        if not self._is_found(spark):
            return 0
        return delta_rs.rows_since(self.location, self.sorted_by[0], since_ms)

    def rows(self, spark: SparkSession, columns: Sequence[str]) -> pa.Table:
        """Columns of all rows, collected to the driver; for small tables only."""
        if self._is_found(spark):
            return delta_rs.rows(self.location, columns)
        return self.read(spark).select(*columns).toArrow()

    def version(self, spark: SparkSession) -> int:
        """The newest version."""
        if self.driver_can_reach(spark):
            return delta_rs.version(self.location)
        history = DeltaTable.forPath(spark, self.location).history(1)
        return int(history.select("version").collect()[0][0])

    def arrival_units(self, spark: SparkSession, days: Sequence[date] | None = None) -> set[date]:
        """The arrival units that have rows; only those among the given ones, if any are given."""
        if self.driver_can_reach(spark):
            with_rows = delta_rs.arrival_units_with_rows(
                self.location, partitioned=self.partitioned
            )
            return with_rows if days is None else with_rows & set(days)
        rows = self.read(spark) if days is None else self.of_arrival_units(spark, days)
        found = rows.select("arrival_unit").distinct().collect()
        return {row.arrival_unit for row in found}

    def properties(self, spark: SparkSession) -> dict[str, str]:
        """The table properties; Spark masks values that look like secrets.

        Spark takes a pipeline's `hourly` for a URL, for example. `texts` returns unmasked values,
        but takes longer.
        """
        if self.driver_can_reach(spark):
            return dict(delta_rs.properties(self.location))
        rows = spark.sql(f"SHOW TBLPROPERTIES {self.sql_path}").collect()
        return {row["key"]: row["value"] for row in rows}

    def texts(self, spark: SparkSession) -> dict[str, str]:
        """The table properties with their unmasked texts; slower than `properties`."""
        if self.driver_can_reach(spark):
            return dict(delta_rs.properties(self.location))
        detail = DeltaTable.forPath(spark, self.location).detail().select("properties").collect()
        found: dict[str, str] = detail[0][0]
        return found

    def set_properties(self, spark: SparkSession, properties: Mapping[str, str]) -> None:
        """Sets table properties in one commit."""
        listed = ", ".join(f"'{name}' = '{_quoted(text)}'" for name, text in properties.items())
        spark.sql(f"ALTER TABLE {self.sql_path} SET TBLPROPERTIES ({listed})")

    def unset_properties(self, spark: SparkSession, *names: str) -> None:
        """Removes table properties in one commit, if they are set."""
        listed = ", ".join(f"'{name}'" for name in names)
        spark.sql(f"ALTER TABLE {self.sql_path} UNSET TBLPROPERTIES IF EXISTS ({listed})")

    @property
    def sql_path(self) -> str:
        """The table's name in SQL, by its location."""
        escaped = self.location.replace("`", "``")
        return f"delta.`{escaped}`"


def _quoted(text: str) -> str:
    """Escapes a text for a SQL string in single quotes."""
    return text.replace("\\", "\\\\").replace("'", "\\'")
