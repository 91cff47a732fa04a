"""How long episodes last: a silence until its key has a record again (rules B8, E5, E6)."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.incremental.alerts import RuleSql, with_severity_until
from windows_pipeline.incremental.silences import (
    MOST_SILENCES_MS,
    NEXT_RECORD,
    SEEN,
    with_next_record,
)
from windows_pipeline.storage.instants import ms_to_timestamp, timestamp_to_ms
from windows_pipeline.windows import PipelineWindows, has_silences


def whole_episodes(
    found: DataFrame,
    final: DataFrame,
    spec: PipelineWindows,
    rules: Mapping[str, RuleSql],
    closed_ms: Column,
) -> DataFrame:
    """Adds when each episode ends, and whether it is open.

    Args:
        found: Rows of `episodes`.
        final: The final windows up to the time for which the episodes are computed.
        spec: The windows.
        rules: The rules by name.
        closed_ms: The close time then, from columns of `found`; null if it is not known.

    Returns:
        The columns of `found`, `until` and `is_open`. `until` is the end of the episode's last
        window; of a silence the time of its key's next record or, while the key is silent, the
        close time. `is_open` says whether a later window may continue the episode, of a silence
        whether its key is still silent; null if that is not known. A severity of a silence that
        reads how long the episode has lasted is that of the whole silence, and `worst` is then
        the silence where no window before is as bad.
    """
    if has_silences(spec):
        return _lasting(_with_next_record(found, final), spec, rules, closed_ms)
    is_open = _may_continue(spec, closed_ms)
    return found.withColumns({"until": F.col("episode_end"), "is_open": is_open})


def episodes_of_days(
    found: DataFrame,
    final: DataFrame,
    spec: PipelineWindows,
    rules: Mapping[str, RuleSql],
    days: DataFrame,
) -> DataFrame:
    """Lists on each day its own episodes, and silences of earlier days that are still open.

    A day shows its own silences until their end, whichever day has it; a silence of an earlier
    day is open at the day's close time. Both hold for `MOST_SILENCES_MS` of a silence.

    Args:
        found: Rows of `episodes` by `arrival_unit`.
        final: The final windows up to the time for which the episodes are computed.
        spec: The windows.
        rules: The rules by name.
        days: `listed_on` (date) and `_closed_ms` (bigint: the close time after the day, or null).

    Returns:
        `listed_on` and the columns of `whole_episodes`, as of that day.
    """
    is_own, closed_ms = F.col("arrival_unit") == F.col("listed_on"), F.col("_closed_ms")
    if not has_silences(spec):
        listed = found.join(F.broadcast(days), is_own)
        return whole_episodes(listed, final, spec, rules, closed_ms)
    back_ms = timestamp_to_ms(NEXT_RECORD)
    followed_ms = timestamp_to_ms("last.window_start") + F.lit(MOST_SILENCES_MS)
    goes_on = F.col("ends_empty") & (F.col("arrival_unit") < F.col("listed_on"))
    goes_on &= (back_ms.isNull() | (back_ms >= closed_ms)) & (closed_ms <= followed_ms)
    followed = _with_next_record(found, final).join(F.broadcast(days), is_own | goes_on)
    is_over = is_own & (back_ms <= followed_ms)
    as_of_day = followed.withColumn(NEXT_RECORD, F.when(is_over, F.col(NEXT_RECORD)))
    return _lasting(as_of_day, spec, rules, closed_ms)


def _may_continue(spec: PipelineWindows, closed_ms: Column) -> Column:
    """Whether a window that is not closed may continue an episode."""
    possible = timestamp_to_ms("episode_end") + F.lit(getattr(spec, "length_ms", 0))
    return possible >= closed_ms


def _with_next_record(found: DataFrame, final: DataFrame) -> DataFrame:
    """Adds `NEXT_RECORD` to episodes; null for those that do not end with a silence."""
    # Read twice below: episodes with records, and silences.
    found = found.localCheckpoint()
    as_alerts = found.withColumns(
        {
            "window_end": F.col("episode_end"),
            "record_count": F.when(F.col("ends_empty"), 0).otherwise(1).cast("bigint"),
        }
    )
    followed = with_next_record(as_alerts, final.select(*SEEN))
    return followed.select(*found.columns, NEXT_RECORD)


def _lasting(
    followed: DataFrame, spec: PipelineWindows, rules: Mapping[str, RuleSql], closed_ms: Column
) -> DataFrame:
    """Adds `until`, `is_open` and the severity at the end; drops `NEXT_RECORD`."""
    so_far = F.greatest("episode_end", ms_to_timestamp(closed_ms))  # of null and a value: the value
    is_silent, back = F.col("ends_empty"), F.col(NEXT_RECORD)
    lasting = followed.withColumns(
        {
            "until": F.when(is_silent, F.coalesce(back, so_far)).otherwise(F.col("episode_end")),
            "is_open": F.when(is_silent, back.isNull()).otherwise(_may_continue(spec, closed_ms)),
        }
    ).drop(NEXT_RECORD)
    return _with_severity(lasting, rules)


def _with_severity(lasting: DataFrame, rules: Mapping[str, RuleSql]) -> DataFrame:
    """Computes the severity of silences again, from how long they lasted."""
    if not any(rule.reads_episode for rule in rules.values()):
        return lasting
    # A result may be named like a column of episodes.
    apart = lasting.select(
        F.struct(*lasting.columns).alias("_episode"),
        *("rule", "key", "episode_start"),
        F.col("until").alias("_until"),
        "last.*",
    )
    judged = with_severity_until(apart, rules, "_until", "_severity_at_end")
    judged = judged.select("_episode.*", "_severity_at_end")
    at_end, so_far = F.col("_severity_at_end"), F.col("severity")
    is_worse = F.col("ends_empty") & at_end.isNotNull() & (so_far.isNull() | (at_end > so_far))
    return judged.withColumns(
        {
            "severity": F.when(is_worse, at_end).otherwise(so_far),
            "worst": F.when(is_worse, F.col("last")).otherwise(F.col("worst")),
        }
    ).drop("_severity_at_end")
