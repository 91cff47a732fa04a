"""How long a silence lasts: until the key's next record, which its window does not show (B8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType

import pyarrow.compute as pc

from windows_pipeline.alerts.rule_sql import EPISODE_MS
from windows_pipeline.config import Windows
from windows_pipeline.query.tables.arrow_values import microseconds, python_values
from windows_pipeline.query.tables.readable import ReadableTable
from windows_pipeline.query.tables.wanted import Span, Wanted
from windows_pipeline.report.episodes import Episode, Episodes
from windows_pipeline.windows import SlidingWindows, has_silences

SilenceSeverities = Mapping[tuple[str, str, datetime], float | None]
"""The severity of each silence at its end, by rule, key (as commands take it) and start."""


def length_decides(windows: Windows) -> bool:
    """Whether a severity depends on how long a silence lasted; alerts then do not have it."""
    return has_silences(windows.spec) and any(
        EPISODE_MS in rule.reads for rule in windows.alerts.values()
    )


def follow_silences(
    episodes: Episodes,
    final: ReadableTable,
    windows: Windows,
    closed_ms: int | None,
    most: int,
    severities: SilenceSeverities = MappingProxyType({}),
) -> Episodes:
    """Ends each episode that ends with a silence at the key's next record.

    If the key has no later record, the episode is open and lasts until the close time.

    Returns:
        The episodes, sorted again, the worst first.

    Args:
        episodes: The episodes, the worst first.
        final: The table final_windows.
        windows: The definition.
        closed_ms: The close time of the newest day; None if it is not known.
        most: How many of the worst silences to follow. Whether the others are open is then
            unknown.
        severities: The severities of silences, where `length_decides`.

    Raises:
        TableDamagedError: A file of the table is damaged.
    """
    if not isinstance(windows.spec, SlidingWindows):
        return episodes
    silent = [episode for episode in episodes.found if episode.ends_empty]
    for number, episode in enumerate(silent):
        episode.is_open = None
        at = (episode.rule, episode.key_text, episode.first)
        episode.severity = severities.get(at, episode.severity)
        if number >= most:
            continue
        back = _next_record(final, episode)
        if back is not None:
            episode.last, episode.is_open = back, False
            continue
        episode.is_open = True
        if closed_ms is not None:
            closed = datetime.fromtimestamp(closed_ms / 1_000, UTC)
            episode.last = max(episode.last, closed)
    in_order = sorted(episodes.found, key=lambda episode: episode.badness)
    return replace(episodes, found=tuple(in_order))


def _next_record(final: ReadableTable, episode: Episode) -> datetime | None:
    """The end of the first window of a key after a silence, which is the time of its record."""
    later = Span(microseconds(episode.last) + 1)
    wanted = Wanted(final.key.one(episode.key, "key"), {"window_end": later})
    rows = final.read(wanted, columns=["window_end", "record_count"])
    held = rows.filter(pc.greater(rows["record_count"], 0))["window_end"]
    return min(python_values(held), default=None)
