"""Numbers records by arrival in ranges, so that no task sorts a whole source partition (A1)."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windows_pipeline.arrival.numbering import RangedOrder, in_whole_order, numbered_in_stretches
from windows_pipeline.arrival.order import ORDERED_WITHIN, order_of_arrival
from windows_pipeline.sources.landed_columns import LINE

_LOG = logging.getLogger(__name__)


def in_arrival_order_by_ranges(
    accepted: DataFrame, arrival: str | None, ranges: int
) -> RangedOrder:
    """Numbers records as `in_arrival_order` does, in ranges of about equal size.

    Spark sorts the records into ranges of the whole order, and each task numbers its range in one
    pass. The driver collects one sum a range, arrival unit and source partition, adds up the sums
    of the earlier ranges, and the tasks add these to their numbers. Records that tie in the whole
    order are equal and lie in one range, so the numbers don't depend on where ranges end.

    Spark reads the records twice, for a sample that gives the ranges' bounds and for the ranges, so
    they are persisted meanwhile: typing their texts takes longer. The ranges are persisted, because
    computed again they could end elsewhere than the sums say.

    Args:
        accepted: The records, with the columns that `in_arrival_order` needs.
        arrival: The arrival column's name; None for no such column.
        ranges: The number of ranges, which is the number of tasks that sort.
    """
    order = order_of_arrival(accepted.columns, arrival)
    typed = accepted.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        in_ranges = numbered_in_ranges(typed, ORDERED_WITHIN, order, ranges)
        return in_whole_order(in_ranges.persist(StorageLevel.MEMORY_AND_DISK))
    finally:
        typed.unpersist()


def numbered_in_ranges(
    records: DataFrame, within: Sequence[str], order: Sequence[str], ranges: int
) -> DataFrame:
    """Cuts the whole order into ranges, and numbers the records within each.

    Spark computes the records twice, first for a sample that gives the ranges' bounds; the bounds
    may differ each time the frame is computed.

    Args:
        records: `_event_time_ms` (bigint, ms) and the columns of the order.
        within: `arrival_unit`, `source_partition` and others, with each value of which numbers
            restart.
        order: The columns that order the records with equal values of `within`.
        ranges: The number of ranges.

    Returns:
        The records with the columns of `numbered_in_stretches`; a stretch is a part of a range, and
        the numbers of stretches are in the order.
    """
    _LOG.info("sorting records in %d ranges", ranges)
    whole = [*within, *order]
    if "original" in records.columns:  # rejected records tie in all other columns
        whole.append("original")
    columns = [F.col(f"`{name}`") for name in whole]
    in_ranges = records.repartitionByRange(ranges, *columns).sortWithinPartitions(*columns)
    lined = in_ranges.withColumn(LINE, F.monotonically_increasing_id())
    runs = [name for name in within if name != "source_partition"]
    return numbered_in_stretches(lined, runs, whole)
