"""The windows of a key as a strip of a plot: the value that a rule watches, and the alerts."""

from __future__ import annotations

from datetime import date, timedelta
from math import isfinite

from windows_pipeline.plots.windows import Point, Strip
from windows_pipeline.query.episodes import Episode, alert_windows
from windows_pipeline.query.tables.arrow_values import microseconds
from windows_pipeline.query.tables.local import LocalTable
from windows_pipeline.query.tables.wanted import Span, Wanted
from windows_pipeline.report.measures import Measure

_NEXT = 1_000
"""A window whose end is inclusive touches the one that starts a millisecond later."""
_LEAST_AROUND = timedelta(minutes=1)


def strip_around(
    final: LocalTable,
    alerts: LocalTable,
    episode: Episode,
    measure: Measure,
    length_ms: int,
    closed_ms: int | None = None,
) -> Strip:
    """The windows of an episode, and as many before and after it.

    Args:
        final: The table final_windows.
        alerts: The table alerts.
        episode: The episode.
        measure: What to draw.
        length_ms: The length of a window; 0 if windows have none.
        closed_ms: The close time of the newest day; None if it is not known.
    """
    length = timedelta(milliseconds=length_ms)
    around = max(episode.last - episode.first, 3 * length, _LEAST_AROUND)
    first = microseconds(episode.first) - around // timedelta(microseconds=1)
    last = microseconds(episode.last) + around // timedelta(microseconds=1)
    key = final.key.one(episode.key, "key")
    wanted = Wanted(key, {"window_end": Span(first, last)})
    title = f"{episode.key_text or 'all records'} · {measure.column}"
    until_ms = None if closed_ms is None else min(closed_ms, last // 1_000)
    return _strip(final, alerts, episode.rule, wanted, measure, title, until_ms)


def strip_of_day(
    final: LocalTable,
    alerts: LocalTable,
    episode: Episode,
    measure: Measure,
    day: date,
    closed_ms: int | None = None,
) -> Strip:
    """The windows of a key that a day closed, with the alerts of one of its rules.

    Args:
        final: The table final_windows.
        alerts: The table alerts.
        episode: An episode of the key and the rule.
        measure: What to draw.
        day: The arrival day.
        closed_ms: The close time after the day; None if it is not known.
    """
    wanted = Wanted(final.key.one(episode.key, "key"), days=frozenset((day,)))
    title = f"{episode.key_text or 'all records'} · {measure.column} · {episode.rule}"
    return _strip(final, alerts, episode.rule, wanted, measure, title, closed_ms)


def _strip(
    final: LocalTable,
    alerts: LocalTable,
    rule: str,
    wanted: Wanted,
    measure: Measure,
    title: str,
    until_ms: int | None,
) -> Strip:
    names = list(dict.fromkeys(("window_start", "window_end", "record_count", measure.column)))
    rows = final.read(wanted, columns=names)
    broken = alert_windows(alerts, rule, wanted)
    raised = {(microseconds(start), microseconds(end)) for start, end in broken}
    starts, ends = (rows[name].cast("int64").to_pylist() for name in names[:2])
    counts, values = (rows[name].to_pylist() for name in ("record_count", measure.column))
    points: list[Point] = []
    before: int | None = None  # the end of the window before, if it has a value
    in_order = sorted(zip(ends, starts, counts, values, strict=True), key=lambda row: row[:2])
    for end, start, count, value in in_order:
        if value is None or not isfinite(value):
            before = None
            continue
        joins = before is not None and start <= before + _NEXT
        is_alert = (start, end) in raised
        points.append(Point(end // 1_000, float(value), is_alert, joins, is_silence=count == 0))
        before = end
    return Strip(title, points, measure.threshold, measure.keeps_smallest, until_ms)
