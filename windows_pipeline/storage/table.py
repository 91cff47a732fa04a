"""Writes Delta tables by arrival unit; a table never mixes rows of two definitions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc
from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.compat.local_frame import arrow_schema, small_frame
from windows_pipeline.config.definition import (
    DefinitionChangedError,
    definition_changed,
    definition_changes,
    definition_digest,
    only_grace_differs,
)
from windows_pipeline.storage import delta_rs
from windows_pipeline.storage.arrival_units import arrival_units_sql, in_arrival_units
from windows_pipeline.storage.catalog import DEFINITION, DIGEST
from windows_pipeline.storage.retry import is_conflict, is_creation_conflict, retry_conflicts
from windows_pipeline.storage.stored import StoredTable
from windows_pipeline.text.problems import RefusedError

R = TypeVar("R")
P = ParamSpec("P")
ROWS_OF_A_TASK = 10_000
"""The most rows of a step that one task computes and sorts."""
_DEFAULTS = "spark.databricks.delta.properties.defaults."
_DEFAULTS_OF: WeakKeyDictionary[SparkSession, dict[str, str]] = WeakKeyDictionary()
_CHANGE_FEED = "delta.enableChangeDataFeed"
_FILES_A_BATCH = 2
"""The most files that a micro-batch writes; maintenance joins them."""
_REBUILDING = "windows_pipeline.rebuilding"
"""The table property of an unfinished rebuild; its value says which step comes next."""
_TO_BE_REPLACED, _REPLACED = "to be replaced", "replaced"


class TableRebuiltError(DefinitionChangedError):
    """A micro-batch may not add rows to a table that was rebuilt or redefined since it began."""


class TableRedefinedError(TableRebuiltError):
    """A rebuild or a correction gave a table another definition since a stream began."""


class TableMissingError(RefusedError):
    """A table to read does not exist; the message names the table and the fix."""


@contextmanager
def noted(note: str) -> Iterator[None]:
    """Adds a note to an error of the block, once: a full disk's error names no table."""
    try:
        yield
    except Exception as error:
        if note not in getattr(error, "__notes__", ()):  # writes call each other
            error.add_note(note)
        raise


def _named(write: Callable[Concatenate[Table, P], R]) -> Callable[Concatenate[Table, P], R]:
    """Makes an error of a write name the table in a note."""

    @wraps(write)
    def named(self: Table, /, *args: P.args, **arguments: P.kwargs) -> R:
        with noted(f"{self.name} ({self.location})"):
            return write(self, *args, **arguments)

    return named


@dataclass(frozen=True)
class Table(StoredTable):
    """A Delta table of one definition, written by arrival unit.

    Attributes:
        starts_over: Whether a rebuild writes the table. The old rows then count for nothing: the
            first publication replaces all rows and sets this definition. Until then readers see the
            old rows.
    """

    starts_over: bool = False

    @property
    def _sort_columns(self) -> tuple[str, ...]:
        """The columns that sort a file's rows; a partition needs no sorting by `arrival_unit`."""
        return self.sorted_by if self.partitioned else ("arrival_unit", *self.sorted_by)

    def require(self, spark: SparkSession) -> None:
        """Raises an error unless the table exists and follows this definition.

        Raises:
            TableMissingError: The table does not exist.
            DefinitionChangedError: The table follows another definition.
        """
        if not self.exists(spark):
            raise TableMissingError(
                f"{self.name}: the table must exist before it is read, but {self.location} holds "
                f"none; to fill it: {self.what_fills}"
            )
        self._require_definition(spark)

    @_named
    def create_if_missing(self, spark: SparkSession, *, rows_to_come: bool = False) -> None:
        """Creates the table if it does not exist.

        Args:
            spark: The session.
            rows_to_come: Whether a new table lacks rows that it should have. It is then stale
                until `mark_rebuilt`.

        Raises:
            DefinitionChangedError: The table exists and follows another definition.
        """

        def create() -> None:
            if not self.exists(spark):
                is_rebuilt = rows_to_come or self.starts_over
                self._create(spark, {_REBUILDING: _REPLACED} if is_rebuilt else {})
            elif not self.starts_over:
                self._require_definition(spark)

        retry_conflicts(create, is_creation_conflict)

    def _create(self, spark: SparkSession, properties_of_state: Mapping[str, str]) -> None:
        properties = {
            **_default_properties(spark),
            **properties_of_state,
            DEFINITION: self._definition_text(),
            DIGEST: definition_digest(self.definition),
            _CHANGE_FEED: str(self.change_feed).lower(),
            delta_rs.STATISTICS_COLUMNS: ",".join(self._sort_columns),
        }
        columns = self.partition_columns
        if self.driver_can_reach(spark) and delta_rs.can_create(self.schema):
            delta_rs.create(self.location, self.schema, columns, self.description, properties)
            return
        builder = DeltaTable.createIfNotExists(spark).location(self.location)
        builder = builder.addColumns(self.schema).partitionedBy(*columns).comment(self.description)
        for name, text in properties.items():
            builder = builder.property(name, text)
        builder.execute()

    @_named
    def replace_by_empty(self, spark: SparkSession) -> None:
        """Empties the table and gives it this definition; old versions stay for time travel.

        The table is stale until `mark_rebuilt`, so a rebuild that stops half-way is noticed.
        """
        if not self.exists(spark):
            self._create(spark, {_REBUILDING: _REPLACED})
            return
        self._replace_all(small_frame(spark, [], self.schema))

    def _replace_all(self, rows: DataFrame) -> int:
        """Replaces all rows, the columns and the definition; returns the newest version.

        A rebuild that is stopped before the definition is stored writes the rows again.
        """
        spark = rows.sparkSession
        (
            self._sorted(self._by_arrival_unit(rows))
            .to(self.schema)  # with the columns' descriptions
            .write.format("delta")
            .mode("overwrite")
            .option("overwriteSchema", "true")
            .partitionBy(*self.partition_columns)
            .save(self.location)
        )
        self.adopt_definition(spark, {_REBUILDING: _REPLACED})
        return self.version(spark)

    def adopt_definition(
        self, spark: SparkSession, properties_of_state: Mapping[str, str] | None = None
    ) -> None:
        """Records that the table's rows follow this definition."""
        digest = definition_digest(self.definition)
        properties = {DEFINITION: self._definition_text(), DIGEST: digest}
        self.set_properties(spark, {**(properties_of_state or {}), **properties})

    def mark_rebuilding(self, spark: SparkSession) -> None:
        """Records that a rebuild will replace the table's rows; micro-batches then add none."""
        self.set_properties(spark, {_REBUILDING: _TO_BE_REPLACED})

    def mark_rebuilt(self, spark: SparkSession) -> None:
        """Records that the rebuild is finished."""
        self.unset_properties(spark, _REBUILDING)

    def is_stale(self, spark: SparkSession) -> bool:
        """Whether the table exists, and follows another definition or has an unfinished rebuild."""
        if not self.exists(spark):
            return False
        return not self.follows_definition(spark) or self.is_rebuild_unfinished(spark)

    def is_rebuild_unfinished(self, spark: SparkSession) -> bool:
        """Whether a rebuild has begun and is not finished."""
        return _REBUILDING in self.properties(spark)

    def is_replaced(self, spark: SparkSession) -> bool:
        """Whether a rebuild that is not finished has replaced the rows or created the table."""
        return self.properties(spark).get(_REBUILDING) == _REPLACED

    def follows_definition(self, spark: SparkSession) -> bool:
        """Whether the table's rows follow this definition."""
        return self.properties(spark).get(DIGEST) == definition_digest(self.definition)

    def _definition_text(self) -> str:
        return json.dumps(self.definition, sort_keys=True)

    def _require_definition(self, spark: SparkSession) -> None:
        if self.follows_definition(spark):
            return
        stored = json.loads(self.texts(spark).get(DEFINITION, "{}"))
        only_grace = only_grace_differs(stored, self.definition)
        if only_grace and self.grace_may_differ:
            return
        first = min(self.arrival_units(spark), default=None) if only_grace else None
        raise definition_changed(self.name, stored, self.definition, first)

    def of_arrival_units(
        self, spark: SparkSession, days: Sequence[date], version: int | None = None
    ) -> DataFrame:
        """The rows of some arrival units; none while `starts_over` holds."""
        if self.starts_over:
            return small_frame(spark, [], self.schema)
        return super().of_arrival_units(spark, days, version)

    @_named
    def publish(
        self,
        rows: DataFrame,
        days: Sequence[date],
        row_count: int | None = None,
        gathered: pa.Table | None = None,
    ) -> int:
        """Replaces the rows of some arrival units in one transaction; returns the version.

        Args:
            rows: The new rows, with the table's columns, of these arrival units only.
            days: The arrival units; a unit without new rows becomes empty.
            row_count: An upper bound of the number of new rows; None if unknown.
            gathered: The same rows on the driver, if `gather` brought them there.
        """
        if self.starts_over:
            return self._replace_all(rows)
        spark = rows.sparkSession
        if gathered is not None:
            return self._replace_arrival_units(spark, days, gathered)
        if row_count == 0 and self._can_write(spark):
            return self._replace_arrival_units(spark, days, arrow_schema(self.schema).empty_table())
        if row_count is not None and self.fits_in_driver(spark, row_count):
            in_one_task = not self.partitioned or row_count <= ROWS_OF_A_TASK
            gathered = rows.coalesce(1) if in_one_task else rows.repartition("arrival_unit")
            new = delta_rs.fetch(self._sorted(gathered))
            if new is not None:
                return self._replace_arrival_units(spark, days, new)
        return self.replace(rows, arrival_units_sql(days))

    def is_written_by_driver(self, spark: SparkSession) -> bool:
        """Whether the driver may write the next rows itself; a rebuild is left to Spark."""
        return not self.starts_over and self._can_write(spark)

    def _can_write(self, spark: SparkSession) -> bool:
        """Whether the driver may write the table with delta-rs."""
        return self.driver_can_reach(spark) and delta_rs.can_write(self.location)

    def _sorted(self, rows: DataFrame) -> DataFrame:
        """The table's columns in their types, sorted within each partition."""
        return self.typed(rows).sortWithinPartitions("arrival_unit", *self.sorted_by)

    def _by_arrival_unit(self, rows: DataFrame) -> DataFrame:
        """The rows in tasks: a file or more for each arrival unit; without partitions, one file."""
        if not self.partitioned:
            return rows.coalesce(1)
        if rows.sparkSession.conf.get("spark.sql.adaptive.enabled") == "true":
            return rows.hint("rebalance", "arrival_unit")
        return rows.repartition("arrival_unit")  # without adaptive execution Spark ignores hints

    def typed(self, rows: DataFrame) -> DataFrame:
        """The table's columns in their types."""
        return rows.select(*[F.col(field.name).cast(field.dataType) for field in self.schema])

    def _replace_arrival_units(
        self, spark: SparkSession, days: Sequence[date], new: pa.Table
    ) -> int:
        if not new.num_rows and not self.arrival_units(spark, days):
            return self.version(spark)
        return self._retrying(lambda: delta_rs.replace(self.location, arrival_units_sql(days), new))

    @_named
    def publish_new(
        self,
        rows: DataFrame,
        days: Sequence[date],
        row_count: int | None = None,
        gathered: pa.Table | None = None,
    ) -> int:
        """Publishes the arrival units that have no rows yet, and leaves the others unchanged.

        So the change data feed holds first results and corrections, but no repetitions.

        Args:
            rows: The new rows, with the table's columns.
            days: The arrival units.
            row_count: An upper bound of the number of new rows; None if unknown.
            gathered: The same rows on the driver, if `gather` brought them there.
        """
        if self.starts_over:
            return self.publish(rows, days, row_count)
        spark = rows.sparkSession
        published = self.arrival_units(spark, days)
        new = [day for day in days if day not in published]
        if not new:
            return self.version(spark)
        if gathered is not None:
            gathered = gathered.filter(pc.is_in(gathered["arrival_unit"], pa.array(new)))
        return self.publish(rows.where(in_arrival_units(new)), new, row_count, gathered)

    @_named
    def replace(self, rows: DataFrame, where: str, gathered: pa.Table | None = None) -> int:
        """Replaces the rows that meet a condition in one transaction; returns the newest version.

        Args:
            rows: The new rows, with the table's columns; all meet the condition.
            where: The condition, as SQL over the table's columns.
            gathered: The same rows on the driver, if `gather` brought them there.
        """
        if gathered is not None:
            return self._retrying(lambda: delta_rs.replace(self.location, where, gathered))
        spark = rows.sparkSession
        write = (
            self._sorted(self._by_arrival_unit(rows))
            .write.format("delta")
            .mode("overwrite")
            .option("replaceWhere", where)
        )
        self._retrying(lambda: write.save(self.location))
        return self.version(spark)

    @_named
    def append(self, rows: DataFrame | pa.Table, batch: int, row_count: int) -> None:
        """Appends the rows of a micro-batch, unless the table already holds that micro-batch.

        The rows are not sorted: a micro-batch spans little event time, so the bounds of its files
        are narrow anyway, and maintenance joins such files. If the table `has_whole_days`, the
        rows replace all rows of their arrival units.

        Args:
            rows: The rows, with the table's columns. An Arrow table must have the table's types,
                may have other columns, and needs a table for which `fits_in_driver` is true.
            batch: The micro-batch's number; numbers must increase.
            row_count: The number of rows.

        Raises:
            TableRebuiltError: A rebuild is not finished, or a rebuild or correction gave the table
                another definition.
        """
        if isinstance(rows, DataFrame):
            added = self.typed(rows)
            new = (
                delta_rs.fetch(added) if self.fits_in_driver(rows.sparkSession, row_count) else None
            )
            if new is None:
                self._require_not_rebuilt(self.properties(rows.sparkSession))
                self._append_by_spark(added, batch)
                return
        else:
            new = rows.select(self.schema.names)
        days = set(new["arrival_unit"].unique().to_pylist()) if self.has_whole_days else ()
        delta_rs.append(self.location, new, self.name, batch, self._require_not_rebuilt, days)

    def mark_appended(self, spark: SparkSession, batch: int) -> None:
        """Records that the table has a micro-batch's rows; `append` then skips that micro-batch."""
        if self._can_write(spark):
            no_rows = arrow_schema(self.schema).empty_table()
            delta_rs.append(self.location, no_rows, self.name, batch)
        else:
            self._append_by_spark(small_frame(spark, [], self.schema), batch)

    def _require_not_rebuilt(self, properties: Mapping[str, str]) -> None:
        """Refuses the rows of a micro-batch that began before a rebuild or a correction.

        Delta refuses the append if the properties change after this check read them.

        Raises:
            TableRebuiltError: A rebuild is not finished.
            TableRedefinedError: A rebuild or correction gave the table another definition.
        """
        pipeline = self.name.split("/")[0]
        rule = (
            f"{self.name}: a micro-batch may add rows only while the table follows the definition "
            "with which the stream began"
        )
        again = (
            f"start the stream again: run the job {pipeline}_stream, or: windows-pipeline stream "
            f"{pipeline}"
        )
        if _REBUILDING in properties:
            raise TableRebuiltError(
                f"{rule}, but a rebuild has begun since and is not finished. If no rebuild is "
                f"active, resume it: run the job {pipeline}_rebuild, or: windows-pipeline rebuild "
                f"{pipeline}. Then {again}"
            )
        digest = definition_digest(self.definition)
        if properties.get(DIGEST, digest) != digest:
            raise TableRedefinedError(
                f"{rule}, but a {self._redefined(properties)}. To go on with that definition, "
                f"{again}"
            )

    def _redefined(self, properties: Mapping[str, str]) -> str:
        """What gave the table another definition, and which one."""
        text = properties.get(DEFINITION, "")
        if not text.startswith("{"):  # Spark may mask the text
            return "correction or rebuild has given the table another definition since"
        new = json.loads(text)
        by = "correction or rebuild" if only_grace_differs(self.definition, new) else "rebuild"
        changes = "; ".join(definition_changes(self.definition, new))
        return f"{by} has given the table another definition since: {changes}"

    def _append_by_spark(self, added: DataFrame, batch: int) -> None:
        write = added.coalesce(_FILES_A_BATCH).write.format("delta").mode("append")
        if self.has_whole_days:
            found = added.select("arrival_unit").distinct().collect()
            if days := [row["arrival_unit"] for row in found]:
                where = arrival_units_sql(days)
                write = write.mode("overwrite").option("replaceWhere", where)
        # Delta ignores a version of an application that it has committed before.
        write.option("txnAppId", self.name).option("txnVersion", batch).save(self.location)

    def fits_in_driver(self, spark: SparkSession, row_count: int) -> bool:
        """Whether the driver may collect that number of the table's rows and write them itself."""
        return self._can_write(spark) and delta_rs.fits_in_driver(spark, self.schema, row_count)

    @_named
    def withdraw(self, spark: SparkSession, days: Sequence[date]) -> None:
        """Deletes the rows of some arrival units."""
        if not self.arrival_units(spark, days):  # this query takes a third of a deletion's time
            return
        if self._can_write(spark):
            no_rows = arrow_schema(self.schema).empty_table()
            self._replace_arrival_units(spark, days, no_rows)
            return
        table = DeltaTable.forPath(spark, self.location)
        self._retrying(lambda: table.delete(in_arrival_units(days)))

    @_named
    def update_arrival_units(self, spark: SparkSession, values: pa.Table) -> None:
        """Sets columns of all rows of some arrival units in one transaction.

        Args:
            spark: The session.
            values: One row for each arrival unit: `arrival_unit`, and the columns to set.
        """
        columns = [name for name in values.column_names if name != "arrival_unit"]
        if self._can_write(spark):
            self._retrying(lambda: delta_rs.update_arrival_units(self.location, values, columns))
            return
        table = DeltaTable.forPath(spark, self.location).alias("old")
        new = spark.createDataFrame(values).alias("new")
        merged = table.merge(new, "old.arrival_unit = new.arrival_unit")
        set_to: dict[str, str | Column] = {name: f"new.{name}" for name in columns}
        self._retrying(lambda: merged.whenMatchedUpdate(set=set_to).execute())

    def _retrying(self, write: Callable[[], R]) -> R:
        """Writes; again if a run of other arrival units has changed a shared file meanwhile."""
        return retry_conflicts(write, lambda error: not self.partitioned and is_conflict(error))


def _default_properties(spark: SparkSession) -> dict[str, str]:
    """The default properties of new tables in Spark's configuration, read once a session."""
    found = _DEFAULTS_OF.get(spark)
    if found is None:
        # One query reads all properties; `spark.conf.getAll` queries each, which takes a second.
        configured = spark.sql("SET").collect()
        found = _DEFAULTS_OF[spark] = {
            f"delta.{name.removeprefix(_DEFAULTS)}": text
            for name, text in configured
            if name.startswith(_DEFAULTS)
        }
    return found
