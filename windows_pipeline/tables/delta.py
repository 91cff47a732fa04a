"""Delta tables: made once, written a unit at a time, never mixed with another definition."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.config.definition import definition_changes, definition_digest

_DEFINITION = "windows_pipeline.definition"
"""The table property that holds the definition that its rows follow."""

_DIGEST = "windows_pipeline.digest"
"""The table property that holds the definition's digest: what is compared."""
_LAST_COMMIT = "spark.databricks.delta.lastCommitVersionInSession"
"""Where Delta tells the version that the session's last write made."""
_FILES_A_BATCH = 2
"""A micro-batch makes few files; maintenance joins those of many."""
_REBUILDING = "windows_pipeline.rebuilding"
"""The table property of a table that was emptied and is not filled again yet."""


class DefinitionChangedError(Exception):
    """A table holds rows of another definition; the message names the change and the cure."""


class TableMissingError(Exception):
    """A table that is to be read is not there yet; the message names it and the cure."""


@dataclass(frozen=True)
class Table:
    """A Delta table of a pipeline, partitioned by `unit`, the arrival day.

    Attributes:
        name: Its name for people: `flights/hourly/final_windows`.
        description: What a row is.
        location: Its folder or URI.
        schema: Its columns; `unit` is one.
        sorted_by: How rows are sorted in a file, for pruning by file statistics.
        definition: The part of the pipeline's definition that its rows follow.
    """

    name: str
    description: str
    location: str
    schema: T.StructType
    sorted_by: tuple[str, ...]
    definition: dict[str, str]

    def exists(self, spark: SparkSession) -> bool:
        """Whether the table is there."""
        return DeltaTable.isDeltaTable(spark, self.location)

    def read(self, spark: SparkSession) -> DataFrame:
        """Its rows as they stand; `require` says first whether they can be read."""
        return spark.read.format("delta").load(self.location)

    def require(self, spark: SparkSession) -> None:
        """Refuses a table that is not there, or follows another definition.

        Raises:
            TableMissingError: The table is not there.
            DefinitionChangedError: It follows another definition.
        """
        if not self.exists(spark):
            raise TableMissingError(
                f"{self.name}: there is no such table yet; materialize it first"
            )
        self._require_definition(spark)

    def create_if_missing(self, spark: SparkSession) -> None:
        """Makes the table if it is not there.

        Raises:
            DefinitionChangedError: It is there and follows another definition.
        """
        if self.exists(spark):
            self._require_definition(spark)
        else:
            (
                DeltaTable.createIfNotExists(spark)
                .location(self.location)
                .addColumns(self.schema)
                .partitionedBy("unit")
                .comment(self.description)
                .property(_DEFINITION, self._definition_text())
                .property(_DIGEST, definition_digest(self.definition))
                .execute()
            )

    def replace_by_empty(self, spark: SparkSession) -> None:
        """Empties the table and gives it this definition; old versions stay for time travel.

        Until `mark_rebuilt` it is stale, so stopping half-way is seen.
        """
        if not self.exists(spark):
            self.create_if_missing(spark)
            return
        path = _sql_path(self.location)
        spark.sql(f"ALTER TABLE {path} SET TBLPROPERTIES ('{_REBUILDING}' = 'true')")
        (
            spark.createDataFrame([], self.schema)
            .write.format("delta")
            .mode("overwrite")
            .option("overwriteSchema", "true")
            .partitionBy("unit")
            .save(self.location)
        )
        # A definition holds rules' text: its quotes are escaped.
        text = self._definition_text().replace("\\", "\\\\").replace("'", "\\'")
        spark.sql(
            f"ALTER TABLE {path} SET TBLPROPERTIES ('{_DEFINITION}' = '{text}', "
            f"'{_DIGEST}' = '{definition_digest(self.definition)}')"
        )

    def mark_rebuilt(self, spark: SparkSession) -> None:
        """Says that an emptied table was filled again."""
        path = _sql_path(self.location)
        spark.sql(f"ALTER TABLE {path} UNSET TBLPROPERTIES IF EXISTS ('{_REBUILDING}')")

    def is_stale(self, spark: SparkSession) -> bool:
        """Whether it is there and follows another definition, or was emptied and not filled."""
        if not self.exists(spark):
            return False
        properties = _properties(spark, self.location)
        other = properties.get(_DIGEST) != definition_digest(self.definition)
        return other or _REBUILDING in properties

    def _definition_text(self) -> str:
        return json.dumps(self.definition, sort_keys=True)

    def _require_definition(self, spark: SparkSession) -> None:
        if _properties(spark, self.location).get(_DIGEST) == definition_digest(self.definition):
            return
        stored = _stored_definition(spark, self.location)
        changes = "; ".join(definition_changes(stored, self.definition))
        pipeline = self.name.split("/", 1)[0]
        raise DefinitionChangedError(
            f"{self.name} holds rows of another definition: {changes}. Put the definition back, "
            f"or rebuild what depends on it: windows-pipeline rebuild {pipeline}"
        )

    def publish(self, rows: DataFrame, days: Sequence[date]) -> int:
        """Replaces the rows of the given units, in one transaction; returns the version.

        Args:
            rows: The table's columns; only rows of these units.
            days: The units; those without a row become empty.
        """
        spark = rows.sparkSession
        columns = [F.col(field.name).cast(field.dataType) for field in self.schema]
        (
            rows.select(*columns)
            # One file a unit where units are small; split by size where they are not.
            .hint("rebalance", "unit")
            .sortWithinPartitions("unit", *self.sorted_by)
            .write.format("delta")
            .mode("overwrite")
            .option("replaceWhere", units_sql(days))
            .save(self.location)
        )
        return int(str(spark.conf.get(_LAST_COMMIT)))

    def append(self, rows: DataFrame, batch: int) -> None:
        """Adds the rows of a micro-batch, once however often it is run.

        Args:
            rows: The table's columns.
            batch: The micro-batch's number; each is larger than the one before.
        """
        columns = [F.col(field.name).cast(field.dataType) for field in self.schema]
        (
            rows.select(*columns)
            .coalesce(_FILES_A_BATCH)
            .sortWithinPartitions("unit", *self.sorted_by)
            .write.format("delta")
            .mode("append")
            # Delta takes one version of one application once.
            .option("txnAppId", self.name)
            .option("txnVersion", batch)
            .save(self.location)
        )

    def withdraw(self, spark: SparkSession, days: Sequence[date]) -> None:
        """Deletes the rows of the given units."""
        DeltaTable.forPath(spark, self.location).delete(in_units(days))


def _sql_path(location: str) -> str:
    escaped = location.replace("`", "``")
    return f"delta.`{escaped}`"


def _properties(spark: SparkSession, location: str) -> dict[str, str]:
    """The table's properties; quick, but Spark blanks out values that look like secrets.

    (It takes a pipeline's `hourly` for a URL, so the definition cannot be read this way.)
    """
    rows = spark.sql(f"SHOW TBLPROPERTIES {_sql_path(location)}").collect()
    return {row["key"]: row["value"] for row in rows}


def _stored_definition(spark: SparkSession, location: str) -> dict[str, str]:
    """The definition that a table was made with; empty where it names none."""
    detail = DeltaTable.forPath(spark, location).detail().select("properties").collect()
    stored: dict[str, str] = json.loads(detail[0][0].get(_DEFINITION, "{}"))
    return stored


def in_units(days: Sequence[date]) -> Column:
    """The condition that a row is of one of these units."""
    return F.expr(units_sql(days))


def units_sql(days: Sequence[date]) -> str:
    """The same condition as SQL."""
    first, last = min(days), max(days)
    if len(set(days)) == (last - first) // timedelta(days=1) + 1:
        return f"unit >= DATE'{first}' AND unit <= DATE'{last}'"
    listed = ", ".join(f"DATE'{day}'" for day in sorted(set(days)))
    return f"unit IN ({listed})"
