"""Cuts each key's time into time shards for row windows (see `time_shards`)."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windows_pipeline.engine.literals import bigint
from windows_pipeline.engine.time_shards import (
    length_for_look_back,
    with_home_shard,
    within_a_day,
)
from windows_pipeline.tuning import TUNING, Tuning
from windows_pipeline.windows import RowWindow


def row_shard_length_ms(window: RowWindow, tuning: Tuning = TUNING) -> int | None:
    """How long a time shard is, in milliseconds; None where windows are computed without shards.

    Frames with an open bound, frames counted in rows and sessions have no longest length.
    """
    look_back_ms = window.shard_look_back_ms
    return None if look_back_ms is None else length_for_look_back(look_back_ms, tuning)


def rows_in_time_shards(
    records: DataFrame, window: RowWindow, tuning: Tuning = TUNING, *, of_days: bool = False
) -> DataFrame:
    """Puts each row into the time shard of its event time, and into a neighbour that needs it.

    The shard before or after needs the row where windows of that shard's rows contain it.

    Args:
        records: `_event_time_ms` and any other columns.
        window: The windows.
        tuning: How long a time shard is.
        of_days: Whether the rows are of arrival days, so that a day shall be several shards.

    Returns:
        The rows with `_time_shard` (bigint) and `_in_home_shard` (boolean). The same frame where
        the windows are computed without shards.
    """
    length_ms = row_shard_length_ms(window, tuning)
    if of_days:
        length_ms = within_a_day(length_ms, tuning)
    if length_ms is None:
        return records
    time_ms = F.col("_event_time_ms")
    back_ms, ahead_ms = window.bounds_ms or (0, 0)
    others_ms = [
        F.try_subtract(time_ms, bigint(ahead_ms)),
        F.try_add(time_ms, bigint(back_ms or 0)),
    ]
    return with_home_shard(records, time_ms, others_ms, length_ms)
