"""Counts and averages of a sample's windows: approximate, to propose a threshold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class SampleWindows:
    """The windows of a sample.

    Attributes:
        ends_ms: Their ends, ms since 1970.
        counts: How many records each holds.
        averages: The average of their values; NaN where there is none.
    """

    ends_ms: np.ndarray
    counts: np.ndarray
    averages: np.ndarray

    @property
    def count(self) -> int:
        """How many windows there are."""
        return len(self.ends_ms)

    def closed_at(self, close_time_ms: int) -> SampleWindows:
        """Returns the windows that end before a time."""
        is_closed = self.ends_ms < close_time_ms
        return SampleWindows(
            self.ends_ms[is_closed], self.counts[is_closed], self.averages[is_closed]
        )


def sample_windows(
    key: np.ndarray,
    event_ms: np.ndarray,
    values: np.ndarray | None,
    kind: str,
    size_ms: int,
    advance_ms: int,
) -> SampleWindows:
    """Finds the windows of records that are sorted by key and event time.

    Args:
        key: The number of each record's key.
        event_ms: The event times.
        values: The values to average; NaN for none.
        kind: `sliding` (each record's left window), `tumbling`, `hopping` or `session`.
        size_ms: The length of a window, or a session's gap.
        advance_ms: The advance of hopping windows.
    """
    if not len(key):
        return SampleWindows(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    if kind == "sliding":
        first, last = _left_windows(key, event_ms, size_ms)
        ends = event_ms
    elif kind == "session":
        is_new = np.append(True, (key[1:] != key[:-1]) | (np.diff(event_ms) > size_ms))
        first, last = _runs(is_new)
        ends = event_ms[last - 1]
    else:
        first, last, ends = _aligned(
            key, event_ms, size_ms, advance_ms if kind == "hopping" else size_ms
        )
    return SampleWindows(ends, last - first, _averages(values, first, last))


def _left_windows(
    key: np.ndarray, event_ms: np.ndarray, size_ms: int
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the records of each record's left window (rule B3), as positions from and to."""
    # One number sorts by key and time: keys are further apart than a window is long.
    least = int(event_ms.min())
    stride = int(event_ms.max()) - least + size_ms + 1
    largest = float(key.max()) * stride
    if largest > 2.0**62:
        starts = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
        return _left_by_key(event_ms, size_ms, starts)
    combined = key.astype(np.int64) * stride + (event_ms - least)
    return (
        np.searchsorted(combined, combined - size_ms, "left"),
        np.searchsorted(combined, combined, "right"),
    )


def _left_by_key(
    event_ms: np.ndarray, size_ms: int, starts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    first, last = np.zeros(len(event_ms), np.int64), np.zeros(len(event_ms), np.int64)
    for start, stop in zip(starts, np.append(starts[1:], len(event_ms)), strict=True):
        times = event_ms[start:stop]
        first[start:stop] = start + np.searchsorted(times, times - size_ms, "left")
        last[start:stop] = start + np.searchsorted(times, times, "right")
    return first, last


def _aligned(
    key: np.ndarray, event_ms: np.ndarray, size_ms: int, advance_ms: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the windows that start at each multiple of the advance, as records from and to."""
    found = []
    for shift in range(0, size_ms, advance_ms):
        number = (event_ms - shift) // size_ms
        is_new = np.append(True, (key[1:] != key[:-1]) | (np.diff(number) != 0))
        first, last = _runs(is_new)
        found.append((first, last, (number[first] + 1) * size_ms + shift))
    first, last, ends = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return first, last, ends


def _runs(is_new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first = np.flatnonzero(is_new)
    return first, np.append(first[1:], len(is_new))


def _averages(values: np.ndarray | None, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    if values is None:
        return np.full(len(first), np.nan)
    is_number = ~np.isnan(values)
    counts = np.append(0, np.cumsum(is_number))
    count = counts[last] - counts[first]
    with np.errstate(over="ignore", invalid="ignore"):  # too large a sum has no average
        sums = np.append(0.0, np.cumsum(np.where(is_number, values, 0.0)))
        total = sums[last] - sums[first]
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
