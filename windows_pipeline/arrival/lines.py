"""Numbers records in the order of files, by name or time of writing, and of their lines (rule A1).

The task that reads a part of a file numbers its records. It reads the part from the first line to
the last, so the records are in order and nothing is sorted.
"""

from __future__ import annotations

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windows_pipeline.arrival.numbering import RangedOrder, in_whole_order, numbered_in_stretches
from windows_pipeline.sources.landed_columns import BLOCK


def in_line_order(judged: DataFrame) -> RangedOrder:
    """Numbers records as `in_arrival_order` does, by file name and line (rule A1).

    Args:
        judged: The frame that `judged_records` returns, with `_block` and `_line` of the reader.
    """
    numbered = numbered_in_stretches(judged, ["arrival_unit", "file", BLOCK])
    cached = numbered.persist(StorageLevel.MEMORY_AND_DISK)
    records, _ = in_whole_order(cached, F.min("file"), F.min(BLOCK))
    return RangedOrder(records.drop(BLOCK), cached)
