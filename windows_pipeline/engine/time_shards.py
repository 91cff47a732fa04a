"""Cuts each key's time into time shards; each has the earlier records that its windows need.

Without shards, a hot key, or windows over all records, would be one task. Each time shard is a
group of its own, and so can be a task of its own. A window belongs to the shard in which it ends.
A record belongs to the shard in which the last window that can contain it ends: its home shard.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.engine.literals import bigint
from windows_pipeline.kernels.windows.arrays import WindowArrays
from windows_pipeline.tuning import TUNING, Tuning
from windows_pipeline.windows import WindowSpec

TIME_SHARD = "_time_shard"
IN_HOME_SHARD = "_in_home_shard"
"""The column that says whether a row is in its home shard, or a copy in another one."""
PREFERRED_SHARD_MS = 90 * 60_000
"""A time shard is at most this long, unless `least_shard_look_backs` needs a longer one."""


def shard_length_ms(windows: WindowSpec, tuning: Tuning = TUNING) -> int | None:
    """How long a time shard is, in milliseconds; None where windows are computed without shards."""
    look_back_ms = windows.shard_look_back_ms
    return None if look_back_ms is None else length_for_look_back(look_back_ms, tuning)


def length_for_look_back(look_back_ms: int, tuning: Tuning = TUNING) -> int | None:
    """The length of time shards for windows with this look-back; None if it would be too long."""
    length_ms = look_back_ms * tuning.shard_look_backs
    return length_ms if length_ms <= tuning.max_shard_ms else None


def within_a_day(length_ms: int | None, tuning: Tuning = TUNING) -> int | None:
    """Shortens a time shard for a pipeline, whose arrival units are days.

    Then a key's day is several shards, unless windows are longer than an hour and a half.
    """
    if length_ms is None:
        return None
    look_back_ms = length_ms // tuning.shard_look_backs
    look_backs = max(tuning.least_shard_look_backs, PREFERRED_SHARD_MS // look_back_ms)
    return look_back_ms * min(tuning.shard_look_backs, look_backs)


def in_time_shards(
    records: DataFrame, windows: WindowSpec, length_ms: int, *, with_partly_late: bool = False
) -> DataFrame:
    """Assigns each record to every time shard in which a window contains or just lost it.

    Args:
        records: `_event_time_ms` and any other columns.
        windows: The windows.
        length_ms: The result of `shard_length_ms`, or of `within_a_day`.
        with_partly_late: Whether partly late records are listed. Their home shard then also needs
            the records that made the windows that contain them (rule A5), as a close time does.

    Returns:
        The records with `_time_shard` (bigint); a record that the next shard needs comes twice.
    """
    look_back_ms = windows.look_back_ms if with_partly_late else windows.shard_look_back_ms
    assert look_back_ms is not None  # noqa: S101  other windows have no length of shards
    time_ms = F.col("_event_time_ms")
    last_ms = F.try_add(time_ms, bigint(look_back_ms))
    return records.withColumn(TIME_SHARD, F.explode(_shards_of(time_ms, [last_ms], length_ms)))


def with_home_shard(
    rows: DataFrame, home_ms: Column, others_ms: Sequence[Column], length_ms: int
) -> DataFrame:
    """Puts each row into its home shard, and a copy into one other shard that needs it.

    Args:
        rows: Any columns.
        home_ms: The instant whose shard is the row's home shard.
        others_ms: Instants whose shards need the row, too. All are less than a shard apart, so
            at most one of them lies outside the home shard.
        length_ms: How long a time shard is.

    Returns:
        The rows with `_time_shard` (bigint) and `_in_home_shard` (boolean).
    """
    shards = F.posexplode(_shards_of(home_ms, others_ms, length_ms))
    placed = rows.select("*", shards.alias(IN_HOME_SHARD, TIME_SHARD))
    return placed.withColumn(IN_HOME_SHARD, F.col(IN_HOME_SHARD) == 0)


def _shards_of(home_ms: Column, others_ms: Sequence[Column], length_ms: int) -> Column:
    """The numbers of the one or two time shards that the instants lie in, the home shard first."""
    # The kernels refuse a time that is null or out of range, and name it.
    home = F.coalesce(_shard_of(home_ms, length_ms), F.lit(0))
    shards = F.array(home)
    for other_ms in others_ms:
        other = _shard_of(other_ms, length_ms)
        shards = F.when(other != home, F.array(home, other)).otherwise(shards)
    return shards


def shard_of_groups(table: pa.Table, starts: np.ndarray) -> np.ndarray:
    """The number of each group's time shard.

    Args:
        table: `_time_shard` of rows by group.
        starts: Where each group's rows begin; one more entry for the end of the last.
    """
    return np.array(table.column(TIME_SHARD).take(pa.array(starts[:-1])), np.int64)


def ends_in_shard(end_ms: np.ndarray, shard: np.ndarray, length_ms: int) -> np.ndarray:
    """A mask of the windows that end in the time shard that found them.

    Args:
        end_ms: The windows' ends.
        shard: The number of each window's time shard.
        length_ms: How long a time shard is.
    """
    inside: np.ndarray = end_ms // length_ms == shard
    return inside


def ending_in_shard(
    windows: WindowArrays, shard_of_group: np.ndarray, length_ms: int, advance_ms: int
) -> WindowArrays:
    """Keeps the windows that end in the time shard that found them, so that each comes once.

    Args:
        windows: The windows; a run of hopping windows is cut at the shard's bounds.
        shard_of_group: The number of each group's time shard.
        length_ms: How long a time shard is.
        advance_ms: From each window of a run to the next.
    """
    shard = shard_of_group[windows.group]
    end_ms, last_end_ms = windows.end_ms, windows.last_end_ms
    if last_end_ms is None:
        return windows.only(ends_in_shard(end_ms, shard, length_ms))
    first_ms = shard * length_ms
    beyond_ms = first_ms + length_ms
    end_ms = end_ms + _whole_advances(first_ms - end_ms, advance_ms)
    last_end_ms = last_end_ms - _whole_advances(last_end_ms - beyond_ms + 1, advance_ms)
    cut = windows._replace(end_ms=end_ms, last_end_ms=last_end_ms)
    return cut.only(end_ms <= last_end_ms)


def in_home_shard(records: pa.Table, length_ms: int | None, shard_ms: int) -> np.ndarray:
    """A mask of the records that are in their home shard, which alone judges them (rule A5).

    Args:
        records: `_event_time_ms` and `_time_shard`.
        length_ms: How long after a record the last window that can contain it ends.
        shard_ms: How long a time shard is.
    """
    assert length_ms is not None  # noqa: S101  sessions have no time shards
    last_end_ms = np.array(records.column("_event_time_ms"), np.int64) + length_ms
    is_home: np.ndarray = last_end_ms // shard_ms == np.array(records.column(TIME_SHARD), np.int64)
    return is_home


def _whole_advances(distance_ms: np.ndarray, advance_ms: int) -> np.ndarray:
    """Distances rounded up to whole advances, in milliseconds; 0 for a negative distance."""
    rounded: np.ndarray = -(-np.maximum(distance_ms, 0) // advance_ms) * advance_ms
    return rounded


def _shard_of(instant_ms: Column, length_ms: int) -> Column:
    """The number of an instant's time shard; null where the instant is null or out of range."""
    length = bigint(length_ms)
    below = F.try_subtract(instant_ms, F.pmod(instant_ms, length))
    return F.call_function("div", below, length)
