"""Compares frames that should hold the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T


def arrival_units_that_differ(
    frames: Mapping[str, DataFrame], required: Sequence[str]
) -> set[date]:
    """Returns the arrival units of `differing_arrival_units`."""
    return {row.arrival_unit for row in differing_arrival_units(frames, required).collect()}


def differing_arrival_units(frames: Mapping[str, DataFrame], required: Sequence[str]) -> DataFrame:
    """Returns the arrival units in which the frames do not hold the same rows equally often.

    Compares, for each arrival unit and frame, the number of rows and two sums of hashes, so Spark
    shuffles only these sums.

    Args:
        frames: Frames by name, all with the same columns, `arrival_unit` among them.
        required: The names of the frames that must have rows of an arrival unit if any frame has.
            Another frame may lack the whole arrival unit.

    Returns:
        The column `arrival_unit`.
    """
    columns = next(iter(frames.values())).columns
    hashed = reduce(
        DataFrame.unionByName,
        [
            frame.select(
                "arrival_unit", F.lit(name).alias("frame"), _hash(frame, columns).alias("hash")
            )
            for name, frame in frames.items()
        ],
    )
    low = F.col("hash").bitwiseAND(0xFFFFFFFF)
    # A bigint can add up 2 ** 31 hashes of 32 bits each.
    high = F.shiftrightunsigned("hash", 32)
    sums = hashed.groupBy("arrival_unit", "frame").agg(
        F.struct(F.count("*"), F.sum(low), F.sum(high)).alias("checksum")
    )
    compared = sums.groupBy("arrival_unit").agg(
        F.count_if(F.col("frame").isin(*required)).alias("required"),
        F.count_distinct("checksum").alias("checksums"),
    )
    differing = compared.where((F.col("checksums") > 1) | (F.col("required") < len(required)))
    return differing.select("arrival_unit")


def copies_by_frame(frames: Mapping[str, DataFrame], key: Sequence[str]) -> DataFrame:
    """Returns each distinct row, by its key and a hash of the other columns, and its copies.

    Args:
        frames: Frames by name, all with the same columns.
        key: The columns that identify a row.

    Returns:
        The key, `_values_hash` (bigint), and for each frame `rows_in_<name>` (bigint): how often
        the frame has the row.
    """
    columns = next(iter(frames.values())).columns
    values = [name for name in columns if name not in key]
    marked = [
        frame.select(*key, _hash(frame, values).alias("_values_hash"), F.lit(name).alias("frame"))
        for name, frame in frames.items()
    ]
    counts = [F.count_if(F.col("frame") == name).alias(f"rows_in_{name}") for name in frames]
    return reduce(DataFrame.unionByName, marked).groupBy(*key, "_values_hash").agg(*counts)


def _hash(frame: DataFrame, columns: Sequence[str]) -> Column:
    # Spark's hash skips nulls, so the positions of nulls, even within structs, are hashed as well.
    fields = [
        F.col(name)[field.name]
        for name in columns
        if isinstance(kind := frame.schema[name].dataType, T.StructType)
        for field in kind
    ]
    nulls = [value.isNull() for value in (*map(F.col, columns), *fields)]
    return F.xxhash64(*columns, *nulls)
