"""Positions of values on a drawing, and the values that its axes label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import floor, log10

from windows_pipeline.text.instants import epoch_ms, instant_of, time_text

_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
_STEPS_MS = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(_SECOND, 2 * _SECOND, 5 * _SECOND, 15 * _SECOND, 30 * _SECOND),
    *(_MINUTE, 2 * _MINUTE, 5 * _MINUTE, 15 * _MINUTE, 30 * _MINUTE),
    *(_HOUR, 2 * _HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR),
    *(_DAY, 2 * _DAY, 7 * _DAY, 14 * _DAY),
)
_MONTHS = (1, 2, 3, 6, *(12 * 10**power * digit for power in range(4) for digit in (1, 2, 5)))
"""The months between the instants that the axis of a long time labels."""
_MONTH = 30 * _DAY


@dataclass(frozen=True)
class Scale:
    """Maps values to positions on a drawing.

    Attributes:
        first: The value at `start`.
        last: The value at `end`.
        start: A position, in the drawing's units.
        end: Another position.
    """

    first: float
    last: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The position of a value; the middle if all values are equal."""
        if self.last == self.first:
            return (self.start + self.end) / 2
        share = (value - self.first) / (self.last - self.first)
        return self.start + share * (self.end - self.start)


def time_ticks(first_ms: int, last_ms: int, most: int = 6) -> list[tuple[int, str]]:
    """Round instants between two, with the texts that name them in UTC.

    Args:
        first_ms: The first instant, in milliseconds since 1970.
        last_ms: The last instant.
        most: The greatest number of instants, at least 2.
    """
    span = max(last_ms - first_ms, 1)
    step = next((each for each in _STEPS_MS if span / each < most), None)
    if step is None:
        return _months(first_ms, last_ms, most) or [(first_ms, time_text(first_ms)[:10])]
    begin = -(-first_ms // step) * step
    ticks = range(begin, last_ms + 1, step)
    return [(tick, _tick_text(tick, step)) for tick in ticks] or [(first_ms, time_text(first_ms))]


def number_top(largest: float) -> float:
    """A round number at or above the largest value of an axis; 1 at least."""
    if largest <= 1:
        return 1
    power: float = 10 ** floor(log10(largest))
    return next(power * each for each in (1, 1.5, 2, 3, 5, 8, 10) if power * each >= largest)


def edges_around(values: Sequence[int], steps: Sequence[int]) -> list[int]:
    """The steps around values: from the last step below all values to the first above all."""
    if not values:
        return list(steps[:2])
    low = max((at for at, step in enumerate(steps) if step <= min(values)), default=0)
    above = (at for at, step in enumerate(steps) if step > max(values))
    high = next(above, len(steps) - 1)
    return list(steps[low : max(high, low + 1) + 1])


def _months(first_ms: int, last_ms: int, most: int) -> list[tuple[int, str]]:
    """The first days of months, up to the last year that a date can have."""
    step = next((each for each in _MONTHS if (last_ms - first_ms) / (each * _MONTH) < most), None)
    try:
        first, last = map(instant_of, (first_ms, last_ms))
    except OverflowError:
        return []
    if step is None:
        return []
    found = []
    number = (first.year * 12 + first.month - 1) // step * step
    while (year := number // 12) <= last.year:
        at = datetime(max(year, 1), number % 12 + 1, 1, tzinfo=UTC)
        if first <= at <= last:
            found.append((epoch_ms(at), f"{at:%Y-%m-%d}"))
        number += step
    return found


def _tick_text(ms: int, step: int) -> str:
    text = time_text(ms)
    if step % _DAY == 0:
        return text[:10]
    day = ms % _DAY == 0
    if step % _MINUTE == 0:
        return text[5:10] if day else text[11:16]
    return text[11:19] if step % _SECOND == 0 else text[11:]
