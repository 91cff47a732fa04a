"""The order of arrival within a micro-batch, after what came before it (rules A1, A2)."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from windows_pipeline.engine.arrival import in_arrival_order
from windows_pipeline.engine.timeline import NEVER_MS
from windows_pipeline.streaming.standing import Standing

PARTITION, OFFSET = "stream_partition", "stream_offset"
"""The columns of a source that has partitions and offsets of its own."""


def in_stream_order(judged: DataFrame, arrival: str | None, standing: Standing) -> DataFrame:
    """Numbers the records of a micro-batch and gives each the stream time of its unit.

    Args:
        judged: What `judged_records` gives, with `stream_partition` (text) and `stream_offset`
            (bigint) where the source has its own.
        arrival: The arrival column's name; None for no such column.
        standing: What came before.

    Returns:
        The records, unordered, with `offset` and `running_max` (bigint, ms) as
        `in_arrival_order` gives them, over all that came of the unit and source partition.
        Where the stream time in force was later than that of a record's own partition, it
        is the former: the decision stays with the record (rule A4).
    """
    if OFFSET in judged.columns:
        own = judged.withColumn("source_partition", F.col(PARTITION))
        by_offset = Window.partitionBy("unit", "source_partition", F.col("reason").isNull())
        so_far = by_offset.orderBy(OFFSET).rowsBetween(Window.unboundedPreceding, 0)
        ordered = own.withColumns(
            {"offset": F.col(OFFSET), "running_max": F.max("event_time").over(so_far)}
        ).drop(PARTITION, OFFSET)
    else:
        ordered = in_arrival_order(judged, arrival)
    return _continued(ordered, standing, counts_on=OFFSET not in judged.columns)


def _continued(ordered: DataFrame, standing: Standing, *, counts_on: bool) -> DataFrame:
    """The same, after the records of the same unit and the decisions before."""
    last_unit = standing.last_unit
    so_far = standing.of_unit(last_unit) if last_unit is not None else {}
    rows = []
    for partition, stream_time_ms in standing.stream_time_ms.items():
        of_unit = so_far.get(partition)
        next_offset = (
            0 if of_unit is None or of_unit.last_offset is None else of_unit.last_offset + 1
        )
        largest_ms = None if of_unit is None else of_unit.max_event_time_ms
        rows.append((partition, next_offset, largest_ms, stream_time_ms))
    if not rows:
        return ordered
    schema = "source_partition string, next_offset bigint, largest_ms bigint, known_ms bigint"
    before = ordered.sparkSession.createDataFrame(rows, schema)
    never, in_force = F.lit(NEVER_MS), F.lit(standing.in_force_ms)
    is_same_unit = F.col("unit") == F.lit(last_unit)
    largest = F.when(is_same_unit, F.col("largest_ms"))
    decided = F.when(in_force > F.coalesce("known_ms", never), in_force)
    places = F.when(is_same_unit & F.lit(counts_on), F.col("next_offset")).otherwise(0)
    return (
        ordered.join(F.broadcast(before), "source_partition", "left")
        .withColumn("offset", F.col("offset") + F.coalesce(places, F.lit(0)))
        .withColumn("running_max", F.greatest("running_max", largest, decided))
        .drop("next_offset", "largest_ms", "known_ms")
    )
