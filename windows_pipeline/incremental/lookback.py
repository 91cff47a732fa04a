"""From which event time on records matter to the windows of an arrival unit."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.storage.instants import ms_to_timestamp, timestamp_to_ms
from windows_pipeline.windows import PipelineWindows

_FIRST_LOOKBACK_MS = 86_400_000


def lookback_from_ms(
    raw_events: DataFrame, spec: PipelineWindows, closes_ms: Collection[int]
) -> dict[int, int]:
    """The event time from which records matter to windows that are open at a close time.

    Sessions look back to the start of the earliest session that spans the close time. Only
    sessions need a query over the records. Frames by rows, frames without a lower bound and
    blocks of rows look back to the first record.

    Args:
        raw_events: `key` and `event_time` of all records that arrived before the last close time;
            later records may be among them.
        spec: The windows.
        closes_ms: The close times.

    Returns:
        The event time in ms by close time; `NEVER_MS` for a close time of `NEVER_MS`.
    """
    known = sorted(close for close in set(closes_ms) if close != NEVER_MS)
    gap_ms, back_ms = spec.timeout_ms, spec.look_back_ms
    if gap_ms is not None:
        return {NEVER_MS: NEVER_MS, **_starts_of_sessions(raw_events, gap_ms, known)}
    found = {
        close: NEVER_MS if back_ms is None else max(close - back_ms, NEVER_MS) for close in known
    }
    return {NEVER_MS: NEVER_MS, **found}


def _starts_of_sessions(
    raw_events: DataFrame, gap_ms: int, closes_ms: Sequence[int]
) -> dict[int, int]:
    """The start of the earliest session that spans each close time; without one, the close time.

    No record before that start shares a session with a record after the close time: a longer gap
    separates the two, or the earlier session ended. Late records count like others; they can only
    lengthen the look-back.

    The look-back doubles until no session begins at its edge.
    """
    if not closes_ms:
        return {}
    back_ms = max(_FIRST_LOOKBACK_MS, 2 * gap_ms)
    while True:
        from_ms = closes_ms[0] - back_ms
        starts = _spanning_starts(raw_events, gap_ms, closes_ms, from_ms)
        # A record just before the edge could belong to a session that begins at the edge.
        if all(start >= from_ms + gap_ms for start in starts.values()):
            return {close: starts.get(close, close) for close in closes_ms}
        back_ms *= 2


def _spanning_starts(
    raw_events: DataFrame, gap_ms: int, closes_ms: Sequence[int], from_ms: int
) -> dict[int, int]:
    """The start of the earliest session across each close time, in records from a time on."""
    # A filter on the table's own column lets Spark skip older files.
    until = ms_to_timestamp(F.lit(closes_ms[-1] + gap_ms))
    near = raw_events.where(
        (F.col("event_time") >= ms_to_timestamp(F.lit(from_ms))) & (F.col("event_time") < until)
    ).select("key", timestamp_to_ms("event_time").alias("time_ms"))
    by_time = Window.partitionBy("key").orderBy("time_ms")
    silence_ms = F.col("time_ms") - F.lag("time_ms").over(by_time)
    begins = silence_ms.isNull() | (silence_ms > F.lit(gap_ms))
    began = near.withColumn("began_ms", F.when(begins, F.col("time_ms")))
    session = F.last("began_ms", ignorenulls=True).over(by_time)
    sessions = (
        began.withColumn("start_ms", session)
        .groupBy("key", "start_ms")
        .agg(F.max("time_ms").alias("end_ms"))
    )
    spark = raw_events.sparkSession
    closes = small_frame(spark, [(close,) for close in closes_ms], "close_ms bigint")
    spans = F.expr("start_ms < close_ms AND close_ms <= end_ms")
    rows = (
        sessions.join(F.broadcast(closes), spans)
        .groupBy("close_ms")
        .agg(F.min("start_ms").alias("start_ms"))
        .collect()
    )
    return {row.close_ms: row.start_ms for row in rows}
