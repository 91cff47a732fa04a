"""Finds the differences between two states of a table, and applies them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.storage.arrival_units import arrival_units_sql
from windows_pipeline.storage.table import Table


def differences(before: DataFrame, after: DataFrame, key: Sequence[str]) -> DataFrame:
    """Lists the rows that changed, were retracted or were added.

    Args:
        before: Rows; each key occurs once.
        after: Rows with the same columns; each key occurs once.
        key: The columns that identify a row.

    Returns:
        The key, `change` (string: `changed`, `retracted` or `added`), and `old` and `new`
        (structs of the other columns, in their order; null if `before` or `after` has no row).
    """
    values = [name for name in after.columns if name not in key]
    states = (
        rows.select(*key, F.struct(*values).alias(state))
        for state, rows in (("old", before), ("new", after))
    )
    both = reduce(lambda old, new: old.unionByName(new, allowMissingColumns=True), states)
    joined = both.groupBy(*key).agg(
        *(F.first(state, ignorenulls=True).alias(state) for state in ("old", "new"))
    )
    change = (
        F.when(F.col("old").isNull(), "added")
        .when(F.col("new").isNull(), "retracted")
        .otherwise("changed")
    )
    differing = joined.where(~F.col("old").eqNullSafe(F.col("new")))
    return differing.select(*key, change.alias("change"), "old", "new")


def with_differences(rows: DataFrame, found: DataFrame, key: Sequence[str]) -> DataFrame:
    """Returns rows with differences applied.

    Args:
        rows: The rows before.
        found: The key and `new` of the frame that `differences` returns.
        key: The columns that identify a row.
    """
    same = reduce(and_, (rows[name].eqNullSafe(found[name]) for name in key))
    unchanged = rows.join(found, same, "left_anti")
    changed = found.where(F.col("new").isNotNull()).select(*key, "new.*")
    return unchanged.unionByName(changed)


def apply_differences(spark: SparkSession, table: Table, found: DataFrame) -> int:
    """Applies differences to a stored table.

    Writes only the rows that differ, so the change data feed lists only these.

    Args:
        spark: The session.
        table: The table; `arrival_unit` is part of its key.
        found: The frame that `differences` returns for its stored rows by its key; persisted.

    Returns:
        The table's version, a new one if any row differs.
    """
    arrival_units = [row.arrival_unit for row in found.select("arrival_unit").distinct().collect()]
    if not arrival_units:
        return table.version(spark)
    values = [name for name in table.schema.names if name not in table.key]
    of_new: dict[str, str | Column] = {name: f"found.new.{name}" for name in values}
    of_key: dict[str, str | Column] = {name: f"found.{name}" for name in table.key}
    same = " AND ".join(f"stored.{name} <=> found.{name}" for name in table.key)
    in_arrival_units = arrival_units_sql(arrival_units).replace(
        "arrival_unit ", "stored.arrival_unit "
    )
    (
        DeltaTable.forPath(spark, table.location)
        .alias("stored")
        .merge(found.alias("found"), f"{in_arrival_units} AND {same}")
        .whenMatchedUpdate("found.change = 'changed'", of_new)
        .whenMatchedDelete("found.change = 'retracted'")
        .whenNotMatchedInsert("found.change = 'added'", {**of_key, **of_new})
        .execute()
    )
    return table.version(spark)
