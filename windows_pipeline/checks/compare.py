"""Compares tables that should hold the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def units_that_differ(sides: Mapping[str, DataFrame], required: Sequence[str]) -> set[date]:
    """The units of which not all sides hold the same rows, as often.

    By the number of rows and two sums of hashes a unit: nothing is shuffled but these.

    Args:
        sides: Frames with the same columns, among them `arrival_unit`, by name.
        required: The sides that must have rows of a unit if any has; another may have none.
    """
    columns = next(iter(sides.values())).columns
    hashed = reduce(
        DataFrame.unionByName,
        [
            frame.select("arrival_unit", F.lit(name).alias("side"), _hash(columns).alias("hash"))
            for name, frame in sides.items()
        ],
    )
    low = F.col("hash").bitwiseAND(0xFFFFFFFF)
    # Halves: 2 ** 31 of them can be added.
    high = F.shiftrightunsigned("hash", 32)
    sums = hashed.groupBy("arrival_unit", "side").agg(
        F.struct(F.count("*"), F.sum(low), F.sum(high)).alias("checksum")
    )
    alike = sums.groupBy("arrival_unit").agg(
        F.count_if(F.col("side").isin(*required)).alias("there"),
        F.count_distinct("checksum").alias("checksums"),
    )
    differing = alike.where((F.col("checksums") > 1) | (F.col("there") < len(required)))
    return {row.arrival_unit for row in differing.select("arrival_unit").collect()}


def counted_alike(sides: Mapping[str, DataFrame], place: Sequence[str]) -> DataFrame:
    """Each distinct row once, by its place and a hash of the rest, with each side's count.

    Args:
        sides: Frames with the same columns by name.
        place: The columns that name a row.

    Returns:
        The place, `values_hash` (bigint), and `in_<side>` (bigint) of each side.
    """
    columns = next(iter(sides.values())).columns
    values = _hash([name for name in columns if name not in place])
    marked = [
        frame.select(*place, values.alias("values_hash"), F.lit(name).alias("side"))
        for name, frame in sides.items()
    ]
    counts = [F.count_if(F.col("side") == name).alias(f"in_{name}") for name in sides]
    return reduce(DataFrame.unionByName, marked).groupBy(*place, "values_hash").agg(*counts)


def _hash(columns: Sequence[str]) -> Column:
    # The hash passes over nulls, so where they stand has to be said.
    return F.xxhash64(*columns, *[F.col(name).isNull() for name in columns])
