"""Recounts offsets and running maxima of raw_events, by other code than the ingestion's."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

_ORDERED_WITHIN = ["arrival_unit", "source_partition"]


def recount_running_maxima(raw: DataFrame, stretch_rows: int | None) -> DataFrame:
    """Recounts the running maximum of each record (rule A2).

    Args:
        raw: `arrival_unit`, `source_partition`, `offset`, `event_time`, `running_max`, `batch`.
        stretch_rows: How many offsets of an arrival unit and source partition one task recounts;
            None to recount them all in one task.

    Returns:
        A row a record, unordered: `arrival_unit`, `source_partition`, `batch`, `running_max`,
        `so_far` (the recount: the largest event time up to the record) and `is_again` (boolean:
        whether another record has the same offset).
    """
    stretch = F.lit(0) if stretch_rows is None else F.floor(F.col("offset") / stretch_rows)
    in_stretches = raw.withColumn("stretch", stretch)
    within = [*_ORDERED_WITHIN, "stretch"]
    in_order = Window.partitionBy(*within).orderBy("offset")
    up_to_record = in_order.rowsBetween(Window.unboundedPreceding, 0)
    recounted = in_stretches.select(
        *within,
        "batch",
        "running_max",
        F.max("event_time").over(up_to_record).alias("so_far"),
        F.col("offset").eqNullSafe(F.lag("offset").over(in_order)).alias("is_again"),
    )
    if stretch_rows is None:
        return recounted.drop("stretch")
    earlier_stretches = (
        Window.partitionBy(*_ORDERED_WITHIN)
        .orderBy("stretch")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    of_stretch = in_stretches.groupBy(*within).agg(F.max("event_time").alias("largest"))
    earlier = of_stretch.select(*within, F.max("largest").over(earlier_stretches).alias("earlier"))
    return (
        recounted.join(F.broadcast(earlier), within, "left")
        .withColumn("so_far", F.greatest("so_far", "earlier"))
        .drop("stretch", "earlier")
    )
