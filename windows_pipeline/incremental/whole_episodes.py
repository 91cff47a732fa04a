"""How long episodes last: a silence until its key has a record again (rules B8, E5, E6)."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.incremental.alerts import RuleSql, with_severity_until
from windows_pipeline.incremental.silences import NEXT_RECORD, SEEN, has_silences, with_next_record
from windows_pipeline.storage.instants import ms_to_timestamp, timestamp_to_ms
from windows_pipeline.windows import PipelineWindows


def whole_episodes(
    found: DataFrame,
    final: DataFrame,
    spec: PipelineWindows,
    rules: Mapping[str, RuleSql],
    closed_ms: Column,
) -> DataFrame:
    """Adds until when each episode lasts, and whether it is open.

    Args:
        found: Rows of `episodes`.
        final: The final windows up to the moment of which the answer is.
        spec: The windows.
        rules: The rules by name.
        closed_ms: The close time at that moment, of columns of `found`; null if it is not known.

    Returns:
        The columns of `found`, `until` and `is_open`. `until` is the end of the episode's last
        window; of a silence the time of its key's next record or, while the key is silent, the
        close time. `is_open` says whether a later window may continue the episode, of a silence
        whether its key is still silent; null if that is not known. A severity of a silence that
        reads how long the episode has lasted is that of the whole silence, and `worst` is then
        the silence where no window before is as bad.
    """
    possible = timestamp_to_ms("episode_end") + F.lit(getattr(spec, "length_ms", 0))
    is_open = possible >= closed_ms
    if not has_silences(spec):
        return found.withColumns({"until": F.col("episode_end"), "is_open": is_open})
    # Read twice below: episodes with records, and silences.
    found = found.localCheckpoint()
    as_alerts = found.withColumns(
        {
            "window_end": F.col("episode_end"),
            "record_count": F.when(F.col("ends_empty"), 0).otherwise(1).cast("bigint"),
        }
    )
    followed = with_next_record(as_alerts, final.select(*SEEN))
    so_far = F.greatest("episode_end", ms_to_timestamp(closed_ms))  # of null and a value: the value
    is_silent, back = F.col("ends_empty"), F.col(NEXT_RECORD)
    lasting = followed.withColumns(
        {
            "until": F.when(is_silent, F.coalesce(back, so_far)).otherwise(F.col("episode_end")),
            "is_open": F.when(is_silent, back.isNull()).otherwise(is_open),
        }
    ).select(*found.columns, "until", "is_open")
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
