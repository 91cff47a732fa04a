"""From which event time on records matter to the windows of a unit."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.incremental.rows import reach_of_rows_ms
from windows_pipeline.incremental.windows import reach_ms
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.windows import GracedRows, PipelineWindows, SessionRows, SessionWindows

_FIRST_LOOK_BACK_MS = 86_400_000


def asks_records(spec: PipelineWindows) -> bool:
    """Whether records have to be looked at to tell how far windows reach: those of sessions."""
    return isinstance(getattr(spec, "window", spec), (SessionWindows, SessionRows))


def reached_from_ms(
    raw_events: DataFrame, spec: PipelineWindows, closes_ms: Collection[int]
) -> dict[int, int]:
    """From which event time on records matter to windows that are open at a close time.

    Sessions reach back as far as their records go, without a longer gap: to the start of the
    first one that goes on at the close time. Only for them the records are looked at. Frames of
    rows, or without a bound, and blocks of rows reach back to the first record.

    Args:
        raw_events: `key` and `event_time` of all records that came until then, or of more.
        spec: The windows.
        closes_ms: The close times.

    Returns:
        The event time by close time; `NEVER_MS` where nothing was closed.
    """
    known = sorted(close for close in set(closes_ms) if close != NEVER_MS)
    match spec:
        case SessionWindows(gap_ms=gap_ms) | GracedRows(window=SessionRows(gap_ms=gap_ms)):
            return {NEVER_MS: NEVER_MS, **_starts_of_sessions(raw_events, gap_ms, known)}
        case GracedRows():
            reach = reach_of_rows_ms(spec)
        case _:
            reach = reach_ms(spec)
    found = {close: NEVER_MS if reach is None else max(close - reach, NEVER_MS) for close in known}
    return {NEVER_MS: NEVER_MS, **found}


def _starts_of_sessions(
    raw_events: DataFrame, gap_ms: int, closes_ms: Sequence[int]
) -> dict[int, int]:
    """The start of the first session that goes on at each close time, else that time.

    Nothing before it can be in one session with anything after the close time: of some key there
    is a longer gap between them, and what another key has there ended before. Late records
    count as others do: they may only lead further back than needed.

    The look-back grows until no session begins where it does.
    """
    if not closes_ms:
        return {}
    look_back_ms = max(_FIRST_LOOK_BACK_MS, 2 * gap_ms)
    while True:
        from_ms = closes_ms[0] - look_back_ms
        starts = _going_on(raw_events, gap_ms, closes_ms, from_ms)
        # A record just before could have joined the first one.
        if all(start >= from_ms + gap_ms for start in starts.values()):
            return {close: starts.get(close, close) for close in closes_ms}
        look_back_ms *= 2


def _going_on(
    raw_events: DataFrame, gap_ms: int, closes_ms: Sequence[int], from_ms: int
) -> dict[int, int]:
    """By close time that lies within sessions, where the first of these starts."""
    # By the table's own column, so that older files are not opened.
    until = F.timestamp_millis(F.lit(closes_ms[-1] + gap_ms))
    near = raw_events.where(
        (F.col("event_time") >= F.timestamp_millis(F.lit(from_ms))) & (F.col("event_time") < until)
    ).select("key", F.unix_millis("event_time").alias("time_ms"))
    by_time = Window.partitionBy("key").orderBy("time_ms")
    silence_ms = F.col("time_ms") - F.lag("time_ms").over(by_time)
    begins = silence_ms.isNull() | (silence_ms > F.lit(gap_ms))
    began = near.withColumn("began_ms", F.when(begins, F.col("time_ms")))
    session = F.last("began_ms", ignorenulls=True).over(by_time)
    sessions = (
        began.withColumn("start_ms", session)
        .groupBy("key", "start_ms")
        .agg(F.max("time_ms").alias("_end_ms"))
    )
    spark = raw_events.sparkSession
    closes = small_frame(spark, [(close,) for close in closes_ms], "close_ms bigint")
    rows = (
        sessions.join(F.broadcast(closes), F.expr("start_ms < close_ms AND close_ms <= _end_ms"))
        .groupBy("close_ms")
        .agg(F.min("start_ms").alias("start_ms"))
        .collect()
    )
    return {row.close_ms: row.start_ms for row in rows}
