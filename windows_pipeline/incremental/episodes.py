"""Episodes as they stood at the close of each day that lists them (rules B8, E5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from windows_pipeline.incremental.alerts import EPISODE, RuleSql, with_severity_until
from windows_pipeline.incremental.closed_days import ClosedDays
from windows_pipeline.incremental.silences import MOST_SILENCES_MS, NEXT_RECORD
from windows_pipeline.storage.instants import ms_to_timestamp, timestamp_to_ms
from windows_pipeline.windows import PipelineWindows

_NEXT, _LISTED, _UNTIL, _OPEN_UNTIL = "_next", "_listed", "_until", "_open_until"
_ALERTS, _WORST, _SEVERITY, _AT_END = "_alerts", "_worst", "_severity", "_severity_at_end"


def episode_rows(
    alerts: DataFrame,
    spec: PipelineWindows,
    rules: Mapping[str, RuleSql],
    window: Sequence[str],
    result: Sequence[str],
    is_new: Column,
    closed_days: ClosedDays,
) -> DataFrame:
    """Returns a row for each episode and arrival unit that lists it.

    An arrival unit lists the episodes of its alerts, the silences that it ends and, for
    `MOST_SILENCES_MS` of a silence, those that go on. So its rows follow from what came up to it,
    and no later arrival unit changes them.

    Args:
        alerts: All alerts so far of the episodes of some arrival units: the columns of the table
            alerts and, where silences are windows, those of `with_next_record`, also of silences
            that these arrival units end. Other alerts may be among them.
        spec: The windows.
        rules: The rules by name.
        window: The columns that identify a window of a key.
        result: The columns of a window's result.
        is_new: Whether an alert is of these arrival units.
        closed_days: The close times of these arrival units; without those that are blocked.

    Returns:
        The columns of the table episodes.
    """
    in_order = Window.partitionBy(*EPISODE).orderBy("window_end", "window_start", *window)
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    shown = F.struct(*window, *result)
    # Structs compare field by field: severity first (null is the smallest), then earlier ends.
    rank = F.struct("severity", -timestamp_to_ms("window_end"))
    summed = alerts.withColumns(
        {
            _NEXT: F.lead("arrival_unit").over(in_order),
            _ALERTS: F.count("*").over(so_far),
            _WORST: F.max_by(shown, rank).over(so_far),
            _SEVERITY: F.max("severity").over(so_far),
        }
    )
    # Windows close in the order of their ends, so the alerts of an arrival unit are neighbours.
    is_last = F.col(_NEXT).isNull() | (F.col(_NEXT) > F.col("arrival_unit"))
    of_alerts = F.array(F.when(is_new & is_last, F.col("arrival_unit")))
    silent = spec.has_silences and bool(closed_days.after_ms)
    days = F.array_union(of_alerts, _days_of_silence(closed_days)) if silent else of_alerts
    listed = summed.withColumn(_LISTED, F.explode(F.array_compact(days)))
    listed = listed.withColumns({_UNTIL: F.col("window_end"), _OPEN_UNTIL: _open_until(spec)})
    if silent:
        closed_ms = F.element_at(F.map_from_arrays(*_literals(closed_days)), F.col(_LISTED))
        listed = _with_silences(listed, rules, shown, closed_ms.cast("bigint"))
    return listed.select(
        F.col(_LISTED).alias("arrival_unit"),
        *EPISODE,
        F.col(_UNTIL).alias("until"),
        F.col(_OPEN_UNTIL).alias("open_until"),
        (F.col(_LISTED) == F.col("arrival_unit")).alias("has_alert"),
        F.col(_ALERTS).alias("alerts"),
        F.col(_SEVERITY).alias("severity"),
        *(F.col(f"{_WORST}.{name}").alias(name) for name in window),
        F.struct(*(F.col(f"{_WORST}.{name}").alias(name) for name in result)).alias("worst"),
    )


def _days_of_silence(closed_days: ClosedDays) -> Column:
    """The arrival units that list an alert's silence: while it goes on, and as it ends."""
    back_ms, following = timestamp_to_ms(NEXT_RECORD), F.col(_NEXT)
    followed_ms = timestamp_to_ms("window_start") + F.lit(MOST_SILENCES_MS)
    days, closes = _literals(closed_days)

    def goes_on(day: Column, number: Column) -> Column:
        close_ms = F.element_at(closes, number + 1)
        is_silent = back_ms.isNull() | (back_ms >= close_ms)
        is_next = (day > F.col("arrival_unit")) & (following.isNull() | (day < following))
        return is_next & is_silent & (close_ms <= followed_ms)

    ended = closed_days.ended_in(back_ms)
    is_over = following.isNull() | (following > ended)
    listed = F.concat(F.filter(days, goes_on), F.array(F.when(is_over, ended)))
    return F.when(F.col("record_count") == 0, listed).otherwise(F.array(F.lit(None).cast("date")))


def _literals(closed_days: ClosedDays) -> tuple[Column, Column]:
    """The days and the close times as arrays."""
    days, closes_ms = list(closed_days.after_ms), list(closed_days.after_ms.values())
    return F.lit(days), F.lit(closes_ms).cast("array<bigint>")


def _open_until(spec: PipelineWindows) -> Column:
    """The last close time at which a window that is not closed may continue an episode."""
    length_ms = F.lit(spec.length_ms or 0)
    return ms_to_timestamp(timestamp_to_ms("window_end") + length_ms)


def _with_silences(
    listed: DataFrame, rules: Mapping[str, RuleSql], shown: Column, closed_ms: Column
) -> DataFrame:
    """Lets each silence last until its key's next record, or until the close of the day.

    A severity that reads how long the episode has lasted is that of the whole silence, and the
    silence is then the worst window where no window before is as bad.
    """
    is_silence = F.col("record_count") == 0
    back = F.when(timestamp_to_ms(NEXT_RECORD) < closed_ms, F.col(NEXT_RECORD))
    still = F.greatest("window_end", ms_to_timestamp(closed_ms))
    lasting = listed.withColumns(
        {
            _UNTIL: F.when(is_silence, F.coalesce(back, still)).otherwise(F.col(_UNTIL)),
            _OPEN_UNTIL: F.when(is_silence, back).otherwise(F.col(_OPEN_UNTIL)),
        }
    )
    judged = with_severity_until(lasting, rules, _UNTIL, _AT_END)
    at_end, severity = F.col(_AT_END), F.col(_SEVERITY)
    is_worse = is_silence & at_end.isNotNull() & (severity.isNull() | (at_end > severity))
    return judged.withColumns(
        {
            _SEVERITY: F.when(is_worse, at_end).otherwise(severity),
            _WORST: F.when(is_worse, shown).otherwise(F.col(_WORST)),
        }
    )
