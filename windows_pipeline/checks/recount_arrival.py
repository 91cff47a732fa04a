"""Evidence about offsets and running maxima, by other code than that which made them."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

_PLACE = ["arrival_unit", "source_partition"]


def beside_running_maxima(raw: DataFrame, stretch_rows: int | None) -> DataFrame:
    """Puts beside each record's running maximum what it should be (rule A2).

    Args:
        raw: `arrival_unit`, `source_partition`, `offset`, `event_time`, `running_max`, `batch`.
        stretch_rows: How many offsets of a unit and source partition a task takes; None for all.

    Returns:
        A row a record, unordered: `arrival_unit`, `source_partition`, `batch`, `running_max`,
        `so_far`
        (the largest event time up to the record) and `is_again` (boolean: its offset was there).
    """
    stretch = F.lit(0) if stretch_rows is None else F.floor(F.col("offset") / stretch_rows)
    in_stretches = raw.withColumn("stretch", stretch)
    own = [*_PLACE, "stretch"]
    in_order = Window.partitionBy(*own).orderBy("offset")
    so_far = in_order.rowsBetween(Window.unboundedPreceding, 0)
    seen = in_stretches.select(
        *own,
        "batch",
        "running_max",
        F.max("event_time").over(so_far).alias("so_far"),
        F.col("offset").eqNullSafe(F.lag("offset").over(in_order)).alias("is_again"),
    )
    if stretch_rows is None:
        return seen.drop("stretch")
    before = Window.partitionBy(*_PLACE).orderBy("stretch")
    before = before.rowsBetween(Window.unboundedPreceding, -1)
    of_stretch = in_stretches.groupBy(*own).agg(F.max("event_time").alias("largest"))
    earlier = of_stretch.select(*own, F.max("largest").over(before).alias("earlier"))
    return (
        seen.join(F.broadcast(earlier), own, "left")
        .withColumn("so_far", F.greatest("so_far", "earlier"))
        .drop("stretch", "earlier")
    )
