"""The windows of a key as a strip of a plot: the value that a rule watches, and the alerts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date, timedelta
from math import isfinite

from windows_pipeline.plots.windows import Point, Strip
from windows_pipeline.query.tables.arrow_values import microseconds
from windows_pipeline.query.tables.readable import ReadableTable
from windows_pipeline.query.tables.wanted_files import Span, Wanted
from windows_pipeline.report.episodes import Bounds, Episode
from windows_pipeline.report.measures import Measure

_LEAST_AROUND = timedelta(minutes=1)


def strip_around(final: ReadableTable, episode: Episode, measure: Measure, length_ms: int) -> Strip:
    """The windows of an episode, and as many before and after it.

    Args:
        final: The table final_windows.
        episode: The episode.
        measure: What to draw.
        length_ms: The length of a window; 0 if windows have none.
    """
    length = timedelta(milliseconds=length_ms)
    around = max(episode.last - episode.first, 3 * length, _LEAST_AROUND)
    first = microseconds(episode.first) - around // timedelta(microseconds=1)
    last = microseconds(episode.last) + around // timedelta(microseconds=1)
    wanted = Wanted(final.key.one(episode.key, "key"), {"window_end": Span(first, last)})
    title = f"{episode.key_text or 'all records'} · {measure.column}"
    return _strip(final, wanted, measure, episode.windows, title)


def strip_of_day(
    final: ReadableTable, episodes: Sequence[Episode], measure: Measure, day: date
) -> Strip:
    """The windows of a key that a day closed, with the alerts of one of its rules.

    Args:
        final: The table final_windows.
        episodes: The key's episodes of the rule, at least one.
        measure: What to draw.
        day: The arrival day.
    """
    first = episodes[0]
    wanted = Wanted(final.key.one(first.key, "key"), days=frozenset((day,)))
    broken: set[Bounds] = set().union(*(episode.windows for episode in episodes))
    title = f"{first.key_text or 'all records'} · {measure.column} · {first.rule}"
    return _strip(final, wanted, measure, broken, title)


def _strip(
    final: ReadableTable,
    wanted: Wanted,
    measure: Measure,
    broken: Collection[Bounds],
    title: str,
) -> Strip:
    names = list(dict.fromkeys(("window_start", "window_end", measure.column)))
    rows = final.read(wanted, columns=names)
    alerts = {(microseconds(start), microseconds(end)) for start, end in broken}
    starts, ends = (rows[name].cast("int64").to_pylist() for name in names[:2])
    points = [
        Point(end // 1_000, float(value), (start, end) in alerts)
        for start, end, value in zip(starts, ends, rows[measure.column].to_pylist(), strict=True)
        if value is not None and isfinite(value)
    ]
    return Strip(title, points, measure.threshold, measure.keeps_smallest)
