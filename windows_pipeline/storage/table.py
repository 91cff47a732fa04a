"""Delta tables: made once, written a unit at a time, never mixed with another definition."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TypeVar

import pyarrow as pa
from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.compat.local_frame import arrow_schema, small_frame
from windows_pipeline.config.definition import (
    definition_changes,
    definition_digest,
    only_grace_differs,
)
from windows_pipeline.storage import delta_rs as from_driver
from windows_pipeline.storage.arrival_units import in_units, units_sql
from windows_pipeline.storage.retry import beside_others, is_being_made, is_in_the_way
from windows_pipeline.storage.stored import StoredTable

R = TypeVar("R")
_DEFINITION = "windows_pipeline.definition"
"""The table property that holds the definition that its rows follow."""

_DIGEST = "windows_pipeline.digest"
"""The table property that holds the definition's digest: what is compared."""
_DEFAULTS = "spark.databricks.delta.properties.defaults."
_CHANGE_FEED = "delta.enableChangeDataFeed"
_FILES_A_BATCH = 2
"""A micro-batch makes few files; maintenance joins those of many."""
_ROWS_OF_A_TASK = 10_000
"""So many rows one task puts in order."""
_REBUILDING = "windows_pipeline.rebuilding"
"""The table property of a table that a rebuild is to empty, or has to fill; it says which."""
_TO_BE_EMPTIED, _EMPTIED = "to be emptied", "emptied"


class DefinitionChangedError(Exception):
    """A table holds rows of another definition; the message names the change and the cure."""


class TableMissingError(Exception):
    """A table that is to be read is not there yet; the message names it and the cure."""


@dataclass(frozen=True)
class Table(StoredTable):
    """A table that is made here, of one definition, and written a unit at a time."""

    @property
    def _sort_columns(self) -> tuple[str, ...]:
        """The columns that rows of a file are sorted by; a partition has one `arrival_unit`."""
        return self.sorted_by if self.partitioned else ("arrival_unit", *self.sorted_by)

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

    def create_if_missing(self, spark: SparkSession, *, rows_to_come: bool = False) -> None:
        """Makes the table if it is not there.

        Args:
            spark: The session.
            rows_to_come: Whether it should have rows already, so is stale until `mark_rebuilt`.

        Raises:
            DefinitionChangedError: It is there and follows another definition.
        """

        def make() -> None:
            if self.exists(spark):
                self._require_definition(spark)
            else:
                self._create(spark, {_REBUILDING: _EMPTIED} if rows_to_come else {})

        beside_others(make, is_being_made)

    def _create(self, spark: SparkSession, own: Mapping[str, str]) -> None:
        properties = {
            **_default_properties(spark),
            **own,
            _DEFINITION: self._definition_text(),
            _DIGEST: definition_digest(self.definition),
            _CHANGE_FEED: str(self.change_feed).lower(),
            from_driver.STATISTICS: ",".join(self._sort_columns),
        }
        columns = self.partition_columns
        if self.is_reached(spark) and from_driver.may_hold(self.schema):
            from_driver.create(self.location, self.schema, columns, self.description, properties)
            return
        builder = DeltaTable.createIfNotExists(spark).location(self.location)
        builder = builder.addColumns(self.schema).partitionedBy(*columns).comment(self.description)
        for name, text in properties.items():
            builder = builder.property(name, text)
        builder.execute()

    def replace_by_empty(self, spark: SparkSession) -> None:
        """Empties the table and gives it this definition; old versions stay for time travel.

        Until `mark_rebuilt` it is stale, so stopping half-way is seen.
        """
        if not self.exists(spark):
            self._create(spark, {_REBUILDING: _EMPTIED})
            return
        self.set_properties(spark, {_REBUILDING: _EMPTIED})
        (
            small_frame(spark, [], self.schema)
            .write.format("delta")
            .mode("overwrite")
            .option("overwriteSchema", "true")
            .partitionBy(*self.partition_columns)
            .save(self.location)
        )
        self.adopt_definition(spark)

    def adopt_definition(self, spark: SparkSession) -> None:
        """Says that its rows follow this definition now."""
        digest = definition_digest(self.definition)
        self.set_properties(spark, {_DEFINITION: self._definition_text(), _DIGEST: digest})

    def mark_rebuilding(self, spark: SparkSession) -> None:
        """Says that it is to be emptied and filled again: no micro-batch goes on from there."""
        self.set_properties(spark, {_REBUILDING: _TO_BE_EMPTIED})

    def mark_rebuilt(self, spark: SparkSession) -> None:
        """Says that an emptied table was filled again."""
        self.unset_properties(spark, _REBUILDING)

    def is_stale(self, spark: SparkSession) -> bool:
        """Whether it is there and follows another definition, or was emptied and not filled."""
        if not self.exists(spark):
            return False
        return not self.follows_definition(spark) or self.is_half_rebuilt(spark)

    def is_half_rebuilt(self, spark: SparkSession) -> bool:
        """Whether it was emptied and not filled again, or is to be."""
        return _REBUILDING in self.properties(spark)

    def is_emptied(self, spark: SparkSession) -> bool:
        """Whether it was emptied, or made, and is not filled yet."""
        return self.properties(spark).get(_REBUILDING) == _EMPTIED

    def follows_definition(self, spark: SparkSession) -> bool:
        """Whether its rows follow this definition."""
        return self.properties(spark).get(_DIGEST) == definition_digest(self.definition)

    def _definition_text(self) -> str:
        return json.dumps(self.definition, sort_keys=True)

    def _require_definition(self, spark: SparkSession) -> None:
        if self.follows_definition(spark):
            return
        stored = json.loads(self.texts(spark).get(_DEFINITION, "{}"))
        only_grace = only_grace_differs(stored, self.definition)
        if only_grace and self.grace_may_differ:
            return
        changes = "; ".join(definition_changes(stored, self.definition))
        pipeline, windows, *_ = self.name.split("/")
        correct = (
            ", or keep what was published and list what becomes of it: "
            f"windows-pipeline correct {pipeline} --windows {windows} --from DAY --cause TEXT"
        )
        raise DefinitionChangedError(
            f"{self.name} holds rows of another definition: {changes}. Put the definition back, "
            f"or rebuild what depends on it: windows-pipeline rebuild {pipeline}"
            f"{correct if only_grace else ''}"
        )

    def publish(self, rows: DataFrame, days: Sequence[date], many: int | None = None) -> int:
        """Replaces the rows of the given units, in one transaction; returns the version.

        Args:
            rows: The table's columns; only rows of these units.
            days: The units; those without a row become empty.
            many: How many rows these are at most, where it is known.
        """
        spark = rows.sparkSession
        if many is not None and self.takes(spark, many):
            in_one = not self.partitioned or many <= _ROWS_OF_A_TASK
            gathered = rows.coalesce(1) if in_one else rows.repartition("arrival_unit")
            new = from_driver.fetched(self._placed(gathered))
            if new is not None:
                return self._replace_units(spark, days, new)
        return self.replace(rows, units_sql(days))

    def _may_write(self, spark: SparkSession) -> bool:
        """Whether the driver may write it by itself."""
        return self.is_reached(spark) and from_driver.may_write(self.location)

    def _placed(self, rows: DataFrame) -> DataFrame:
        """The table's columns in their types, in each partition as a file has them."""
        return self._typed(rows).sortWithinPartitions("arrival_unit", *self.sorted_by)

    def _typed(self, rows: DataFrame) -> DataFrame:
        """The table's columns in their types."""
        return rows.select(*[F.col(field.name).cast(field.dataType) for field in self.schema])

    def _replace_units(self, spark: SparkSession, days: Sequence[date], new: pa.Table) -> int:
        if not new.num_rows and not self.units(spark, days):
            return self.version(spark)
        return self._beside_others(lambda: from_driver.replace_units(self.location, days, new))

    def publish_new(self, rows: DataFrame, days: Sequence[date], many: int | None = None) -> int:
        """The same, of units that have no rows so far: those that have stay untouched.

        So the change data feed tells of first results and of corrections, and of no repetition.
        """
        spark = rows.sparkSession
        there = self.units(spark, days)
        new = [day for day in days if day not in there]
        return self.publish(rows.where(in_units(new)), new, many) if new else self.version(spark)

    def replace(self, rows: DataFrame, where: str) -> int:
        """Replaces the rows that meet a condition, in one transaction; returns the newest version.

        Args:
            rows: The table's columns; only rows that meet it.
            where: The condition, as SQL over the table's columns.
        """
        spark = rows.sparkSession
        # One file a unit where units are small, split by size where they are not; or one in all.
        if not self.partitioned:
            placed = rows.coalesce(1)
        elif spark.conf.get("spark.sql.adaptive.enabled") == "true":
            placed = rows.hint("rebalance", "arrival_unit")
        else:  # Spark takes the hint only where plans may change while they run.
            placed = rows.repartition("arrival_unit")
        write = (
            self._placed(placed)
            .write.format("delta")
            .mode("overwrite")
            .option("replaceWhere", where)
        )
        self._beside_others(lambda: write.save(self.location))
        return self.version(spark)

    def append(self, rows: DataFrame | pa.Table, batch: int, many: int) -> None:
        """Adds the rows of a micro-batch, once however often it is run.

        They lie in files as they come: a micro-batch has little event time, so a file's least and
        largest values tell as much as they would in order, and maintenance joins such files.

        Args:
            rows: The table's columns; if they were fetched, of its types and beside any others,
                and for a table that `takes` them.
            batch: The micro-batch's number; each is larger than the one before.
            many: How many rows these are.
        """
        if isinstance(rows, DataFrame):
            added = self._typed(rows)
            new = from_driver.fetched(added) if self.takes(rows.sparkSession, many) else None
            if new is None:
                self._append_by_spark(added, batch)
                return
        else:
            new = rows.select(self.schema.names)
        from_driver.append(self.location, new, self.name, batch)

    def _append_by_spark(self, added: DataFrame, batch: int) -> None:
        (
            added.coalesce(_FILES_A_BATCH)
            .write.format("delta")
            .mode("append")
            # Delta takes one version of one application once.
            .option("txnAppId", self.name)
            .option("txnVersion", batch)
            .save(self.location)
        )

    def takes(self, spark: SparkSession, many: int) -> bool:
        """Whether the driver may fetch so many of its rows, and write them by itself."""
        return self._may_write(spark) and from_driver.has_room(spark, self.schema, many)

    def withdraw(self, spark: SparkSession, days: Sequence[date]) -> None:
        """Deletes the rows of the given units, where there are any."""
        if not self.units(spark, days):  # to look takes a third of what a deletion takes
            return
        if self._may_write(spark):
            none = arrow_schema(self.schema).empty_table()
            self._replace_units(spark, days, none)
            return
        table = DeltaTable.forPath(spark, self.location)
        self._beside_others(lambda: table.delete(in_units(days)))

    def update_units(self, values: DataFrame) -> None:
        """Sets columns of all rows of some units, in one transaction; others stay as they are.

        Args:
            values: A row a unit: `arrival_unit`, and the columns to set.
        """
        spark = values.sparkSession
        columns = [name for name in values.columns if name != "arrival_unit"]
        if self._may_write(spark):
            new = values.toArrow()
            self._beside_others(lambda: from_driver.update_units(self.location, new, columns))
            return
        table = DeltaTable.forPath(spark, self.location).alias("old")
        merged = table.merge(values.alias("new"), "old.arrival_unit = new.arrival_unit")
        set_to: dict[str, str | Column] = {name: f"new.{name}" for name in columns}
        self._beside_others(lambda: merged.whenMatchedUpdate(set=set_to).execute())

    def _beside_others(self, write: Callable[[], R]) -> R:
        """Writes; again, where a run of other units changed a file that their rows share."""
        return beside_others(write, lambda error: not self.partitioned and is_in_the_way(error))


def _default_properties(spark: SparkSession) -> dict[str, str]:
    """The properties that Spark's configuration gives to new tables."""
    # One query for all names: `spark.conf.getAll` asks for each by itself, which takes a second.
    configured = spark.sql("SET").collect()
    return {
        f"delta.{name.removeprefix(_DEFAULTS)}": text
        for name, text in configured
        if name.startswith(_DEFAULTS)
    }
