"""Puts a sample's records into the order of arrival, and measures how late they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windows_pipeline.starter.sample import Sample
from windows_pipeline.starter.types import SampleColumn

_STEPS_MS = (
    *(1_000, 5_000, 10_000, 30_000),
    *(60_000, 300_000, 600_000, 1_800_000),
    *(3_600_000, 3 * 3_600_000, 6 * 3_600_000, 12 * 3_600_000),
    *(86_400_000, 2 * 86_400_000, 7 * 86_400_000, 30 * 86_400_000),
)
"""Durations that people write: one second to thirty days."""
_BOUNDS_MS = (0, 1_000, 10_000, 60_000, 600_000, 3_600_000, 21_600_000, 86_400_000)
_MOST_TIMES = 0.99
"""The share of records for which the proposed grace suffices."""
_DEFAULT_GRACE_MS = 60_000


@dataclass(frozen=True, slots=True)
class ArrivedRecords:
    """The readable records of a sample, in the order of arrival.

    Attributes:
        rows: Their positions in the sample.
        event_ms: Their event times, ms since 1970.
    """

    rows: np.ndarray
    event_ms: np.ndarray

    @property
    def lateness_ms(self) -> np.ndarray:
        """How far each record's event time lies behind the largest one before it (rule A2)."""
        lateness: np.ndarray = np.maximum.accumulate(self.event_ms) - self.event_ms
        return lateness


def ordered_sample(
    sample: Sample, event: SampleColumn, arrival: SampleColumn | None
) -> ArrivedRecords:
    """Orders the records as a pipeline does: by day folder, then by what orders arrival.

    Args:
        sample: The sample.
        event: The column of the event time.
        arrival: The column that orders arrival, which may be the event time; None for lines.
    """
    readable = ~np.isnat(event.known_times)
    if arrival is not None:
        readable &= ~np.isnat(arrival.known_times)
    rows = np.flatnonzero(readable)
    if arrival is not None:
        rows = rows[np.lexsort((arrival.known_times[rows], sample.day[rows]))]
    return ArrivedRecords(rows, event.known_times[rows].astype(np.int64) // 1_000)


def grace_ms(lateness_ms: np.ndarray) -> int:
    """Returns the grace that 99 of 100 records need, rounded up to a duration that people write."""
    if not len(lateness_ms):
        return _DEFAULT_GRACE_MS
    needed = int(np.quantile(lateness_ms, _MOST_TIMES, method="higher"))
    return rounded_up(needed) if needed else _DEFAULT_GRACE_MS


def rounded_up(ms: int) -> int:
    """Rounds a duration up to one that people write."""
    return next((step for step in _STEPS_MS if step >= ms), -(-ms // 86_400_000) * 86_400_000)


def rounded_down(ms: int) -> int:
    """Rounds a duration down to one that people write; at least a second."""
    return max((step for step in _STEPS_MS if step <= ms), default=_STEPS_MS[0])


def histogram(lateness_ms: np.ndarray) -> list[tuple[int, int]]:
    """Counts the records by lateness.

    Returns:
        Pairs: a bound in ms, and the number of records whose lateness is at most this bound and
        above the previous one. The first bound is 0 (in order). Bounds beyond the latest record
        are left out.
    """
    latest = int(lateness_ms.max(initial=0))
    bounds = [bound for bound in _BOUNDS_MS if bound < latest]
    bounds.append(next((bound for bound in _BOUNDS_MS if bound >= latest), rounded_up(latest)))
    counts = np.bincount(np.searchsorted(bounds, lateness_ms), minlength=len(bounds))
    return list(zip(bounds, counts.tolist(), strict=True))
