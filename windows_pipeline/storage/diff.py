"""What differs between two states of a table, and making one of the other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.storage.arrival_units import units_sql
from windows_pipeline.storage.table import Table


def differences(before: DataFrame, after: DataFrame, place: Sequence[str]) -> DataFrame:
    """Lists the rows that changed, went or came.

    Args:
        before: Rows; each place once.
        after: Rows with the same columns.
        place: The columns that name a row.

    Returns:
        The place, `change` (string: `changed`, `retracted`, `added`), and `old` and `new`
        (structs of the other columns, in their order; null where there is none).
    """
    values = [name for name in after.columns if name not in place]
    sides = (
        rows.select(*place, F.struct(*values).alias(side))
        for side, rows in (("old", before), ("new", after))
    )
    both = reduce(lambda old, new: old.unionByName(new, allowMissingColumns=True), sides)
    met = both.groupBy(*place).agg(
        *(F.first(side, ignorenulls=True).alias(side) for side in ("old", "new"))
    )
    what = (
        F.when(F.col("old").isNull(), "added")
        .when(F.col("new").isNull(), "retracted")
        .otherwise("changed")
    )
    differing = met.where(~F.col("old").eqNullSafe(F.col("new")))
    return differing.select(*place, what.alias("change"), "old", "new")


def with_differences(rows: DataFrame, found: DataFrame, place: Sequence[str]) -> DataFrame:
    """The rows as differences leave them.

    Args:
        rows: The rows before.
        found: The place, and `new`, as `differences` gives them.
        place: The columns that name a row.
    """
    same = reduce(and_, (rows[name].eqNullSafe(found[name]) for name in place))
    untouched = rows.join(found, same, "left_anti")
    there = found.where(F.col("new").isNotNull()).select(*place, "new.*")
    return untouched.unionByName(there)


def apply_differences(
    spark: SparkSession, table: Table, found: DataFrame, place: Sequence[str]
) -> int:
    """Makes a table's rows of what they are the ones that they should be.

    Only the rows that differ are written, so the change data feed tells of these alone.

    Args:
        spark: The session.
        table: The table.
        found: What `differences` gives of the table's rows as they stand; persisted.
        place: The columns that name a row; `arrival_unit` is one.

    Returns:
        The table's version, a new one if anything differs.
    """
    units = [row.arrival_unit for row in found.select("arrival_unit").distinct().collect()]
    if not units:
        return table.version(spark)
    values = [name for name in table.schema.names if name not in place]
    of_new: dict[str, str | Column] = {name: f"found.new.{name}" for name in values}
    of_place: dict[str, str | Column] = {name: f"found.{name}" for name in place}
    same = " AND ".join(f"stored.{name} <=> found.{name}" for name in place)
    in_units = units_sql(units).replace("arrival_unit ", "stored.arrival_unit ")
    (
        DeltaTable.forPath(spark, table.location)
        .alias("stored")
        .merge(found.alias("found"), f"{in_units} AND {same}")
        .whenMatchedUpdate("found.change = 'changed'", of_new)
        .whenMatchedDelete("found.change = 'retracted'")
        .whenNotMatchedInsert("found.change = 'added'", {**of_place, **of_new})
        .execute()
    )
    return table.version(spark)
