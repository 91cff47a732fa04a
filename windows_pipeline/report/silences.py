"""How long a key was silent: until its next record, which no sliding window shows (rule B8)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pyarrow.compute as pc

from windows_pipeline.config import Windows
from windows_pipeline.query.tables.arrow_values import microseconds, python_values
from windows_pipeline.query.tables.readable import ReadableTable
from windows_pipeline.query.tables.wanted_files import Span, Wanted
from windows_pipeline.report.episodes import Episode, Episodes
from windows_pipeline.windows import SlidingWindows


def follow_silences(
    episodes: Episodes, final: ReadableTable, windows: Windows, closed_ms: int | None, most: int
) -> Episodes:
    """Sets the end of the episodes that end with a silence: the key's next record.

    Where none came so far, the episode is open, and lasts until the close time. Returns the
    episodes in the order that follows.

    Args:
        episodes: The episodes, the worst first.
        final: The table final_windows.
        windows: The definition.
        closed_ms: The close time of the newest day; None if it is not known.
        most: Only so many of the worst silences are followed; of the others it is not known
            whether they are open.

    Raises:
        TableDamagedError: A file of the table is damaged.
    """
    if not isinstance(windows.spec, SlidingWindows):
        return episodes
    silent = [episode for episode in episodes.found if episode.ends_empty]
    for number, episode in enumerate(silent):
        episode.is_open = None
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
