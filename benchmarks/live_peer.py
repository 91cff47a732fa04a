"""The stream of `benchmarks.live` by Spark's transformWithStateInPandas, as one would write it.

A key's open records are its state; it emits and removes what the watermark has passed. It writes
one Delta table of closed windows: no raw records, no late ones, no alerts, no checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import (
        ExpiredTimerInfo,
        StatefulProcessorHandle,
        TimerValues,
    )

_RESULT = "key string, window_end bigint, record_count bigint, total bigint, most bigint"
_NEVER_MS = np.iinfo(np.int64).min


class SlidingByState(StatefulProcessor):
    """Sliding windows with both bounds inclusive, each emitted once, when it closes."""

    def __init__(self, difference_ms: int) -> None:
        self._difference_ms = difference_ms

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Names the state: the open records as arrays, and what was closed."""
        self._handle = handle
        self._open = handle.getValueState("open", "at binary, value binary, closed_ms bigint")

    def handleInputRows(  # type: ignore[override]  # noqa: N802  Spark's name; it gives frames
        self,
        key: tuple[str],
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Adds records and returns the windows that the watermark has closed."""
        given = pd.concat(list(rows))
        at, value = given["at"].to_numpy(np.int64), given["value"].to_numpy(np.int64)
        yield from self._tell(key, at, value, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(  # noqa: N802
        self,
        key: tuple[str],
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Returns the windows that the watermark has closed, for a key without new records."""
        none = np.empty(0, np.int64)
        yield from self._tell(key, none, none, timerValues.getCurrentWatermarkInMs())

    def _tell(
        self, key: tuple[str], at: np.ndarray, value: np.ndarray, close_ms: int
    ) -> Iterator[pd.DataFrame]:
        closed_ms = _NEVER_MS
        known = self._open.get() if self._open.exists() else None
        if known is not None:
            at = np.concatenate((np.frombuffer(known[0], np.int64), at))
            value = np.concatenate((np.frombuffer(known[1], np.int64), value))
            closed_ms = known[2]
        order = np.argsort(at, kind="stable")
        at, value = at[order], value[order]
        closed = sliding(at, value, self._difference_ms, closed_ms, close_ms)
        kept = at >= close_ms - self._difference_ms - 1
        self._open.update((at[kept].tobytes(), value[kept].tobytes(), max(closed_ms, close_ms)))
        for timer in self._handle.listTimers():
            self._handle.deleteTimer(timer)
        if kept.any():
            self._handle.registerTimer(max(close_ms, int(at[0])) + 1)
        if len(closed):
            yield closed.assign(key=key[0])[["key", *closed.columns]]


def sliding(
    at: np.ndarray, value: np.ndarray, difference_ms: int, from_ms: int, to_ms: int
) -> pd.DataFrame:
    """The windows of sorted records that end in [from, to)."""
    after_ms = at + 1 + difference_ms
    follows = np.searchsorted(at, after_ms, "right") > np.searchsorted(at, at, "right")
    ends = np.unique(np.concatenate((at, after_ms[follows])))
    ends = ends[(ends >= from_ms) & (ends < to_ms)]
    low = np.searchsorted(at, ends - difference_ms, "left")
    high = np.searchsorted(at, ends, "right")
    total = np.concatenate(([0], np.cumsum(value)))
    spans = np.stack((low, high), axis=1).ravel()
    most = np.maximum.reduceat(np.append(value, 0), spans)[::2] if len(ends) else ends
    columns = {"window_end": ends, "record_count": high - low}
    return pd.DataFrame({**columns, "total": total[high] - total[low], "most": most})


def start_peer(
    spark: SparkSession, landing: Path, folder: Path, difference_ms: int, grace_ms: int, files: int
) -> StreamingQuery:
    """Starts the stream over what has landed; it ends when all is in.

    Args:
        spark: The session; its state is kept by RocksDB, which the function needs.
        landing: A folder of Parquet files.
        folder: Where its table and checkpoint go.
        difference_ms: The windows' time difference.
        grace_ms: How far the watermark lies behind.
        files: How many a micro-batch takes.
    """
    provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider)
    records: DataFrame = (
        spark.readStream.schema("key string, at bigint, value bigint")
        .option("maxFilesPerTrigger", files)
        .parquet(str(landing))
    )
    timed = records.withColumn("time", F.timestamp_millis("at"))
    windows = (
        timed.withWatermark("time", f"{grace_ms} milliseconds")
        .groupBy("key")
        .transformWithStateInPandas(
            SlidingByState(difference_ms), _RESULT, outputMode="Append", timeMode="EventTime"
        )
    )
    writer = windows.writeStream.format("delta").outputMode("append")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    return writer.trigger(availableNow=True).start(str(folder / "windows"))
