"""The oracle's answer for one batch in arrival order, in the form of the golden cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tests.support.oracle.arrival import Key, close_times_met
from tests.support.oracle.definitions import Definition, SlidingDefinition, is_closed
from tests.support.oracle.windows import Record, lateness, windows_after


class BatchRecord(NamedTuple):
    """A record of the batch; its offset names it, so no two have the same."""

    source_partition: int
    offset: int
    key: Key
    event_time: int


class BatchWindow(NamedTuple):
    """A window with the offsets of its records, sorted."""

    key: Key
    start: int
    end: int
    offsets: tuple[int, ...]


class BatchAnswer(NamedTuple):
    """What stands once the batch has ended; windows by key, start and end, offsets sorted.

    Attributes:
        final: The closed windows (rule A4).
        open: The others.
        dropped: Wholly late records (rule A5).
        outside_windows: Records in a gap, or below the first window start.
        partially_late: Sliding only: the left window was closed, a later one open (rule B5).
    """

    final: list[BatchWindow]
    open: list[BatchWindow]
    dropped: list[int]
    outside_windows: list[int]
    partially_late: list[int]


def answer_batch(batch: Sequence[BatchRecord], definition: Definition) -> BatchAnswer:
    """What the records make, each source partition's in the order of its offsets."""
    records = [Record(0, *each, values={}) for each in batch]
    reasons = lateness(records, definition)
    by_closed: dict[bool, list[BatchWindow]] = {True: [], False: []}
    for window in windows_after(records, 0, definition):
        offsets = tuple(sorted(record.offset for record in window.records))
        by_closed[window.closed].append(BatchWindow(window.key, window.start, window.end, offsets))
    return BatchAnswer(
        final=sorted(by_closed[True], key=_null_key_first),
        open=sorted(by_closed[False], key=_null_key_first),
        dropped=sorted(name.offset for name, reason in reasons.items() if reason == "late"),
        outside_windows=sorted(
            name.offset for name, reason in reasons.items() if reason == "outside_windows"
        ),
        partially_late=sorted(
            record.offset
            for record in _left_window_closed(records, definition)
            if record.id not in reasons
        ),
    )


def _left_window_closed(records: Sequence[Record], definition: Definition) -> list[Record]:
    if not isinstance(definition, SlidingDefinition):
        return []
    met = close_times_met(records, definition)
    return [
        record
        for record in records
        for left in definition.windows_made(record.event_time)[:1]
        if is_closed(left.end, met[record.id], definition)
    ]


def _null_key_first(window: BatchWindow) -> tuple[bool, str, int, int]:
    return (window.key is not None, window.key or "", window.start, window.end)
