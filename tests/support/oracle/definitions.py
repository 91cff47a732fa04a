"""The kinds of windows in slow, plain Python (rules A4, B, C and D). Times are milliseconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Span(NamedTuple):
    """A window's bounds; whether the end belongs to it, its definition says."""

    start: int
    end: int


@dataclass(frozen=True)
class SlidingDefinition:
    """Sliding windows [s, s + time_difference]; `first_window_start` is v of rule B6."""

    time_difference: int
    grace: int
    first_window_start: int | None = None
    emit_empty: bool = False
    idle_after: int | None = None

    def windows_made(self, time: int) -> list[Span]:
        """The left and the right window (rules B3, B6)."""
        left = time - self.time_difference
        if self.first_window_start is not None:
            left = max(left, self.first_window_start)
        return [Span(start, start + self.time_difference) for start in (left, time + 1)]

    def last_window(self, time: int) -> Span | None:
        """Of all windows that may hold a time the last to close; None where there is none."""
        if self.first_window_start is not None and time < self.first_window_start:
            return None
        return Span(time, time + self.time_difference)


@dataclass(frozen=True)
class ForwardDefinition:
    """Windows [t, t + size], one for each distinct time of a key's records (rule B7)."""

    size: int
    grace: int
    idle_after: int | None = None

    def windows_made(self, time: int) -> list[Span]:
        return [Span(time, time + self.size)]

    def last_window(self, time: int) -> Span | None:
        return Span(time, time + self.size)


@dataclass(frozen=True)
class TimeDefinition:
    """Hopping windows [n * advance, n * advance + size), tumbling if both are equal (rule C1)."""

    size: int
    advance: int
    grace: int
    first_window_start: int | None = None
    emit_empty: bool = False
    idle_after: int | None = None

    def windows_made(self, time: int) -> list[Span]:
        """Every window that holds the time, the last one first; none in a gap."""
        latest = time // self.advance * self.advance  # // floors, also below 0
        first = self.first_window_start
        return [
            Span(start, start + self.size)
            for start in range(latest, time - self.size, -self.advance)
            if first is None or start >= first
        ]

    def last_window(self, time: int) -> Span | None:
        return max(self.windows_made(time), default=None)

    def silent_windows(self, time: int, close_time: float) -> list[Span]:
        """Every closed window that starts after a time, which is a key's first."""
        found = []
        start = time // self.advance * self.advance + self.advance
        while is_closed(start + self.size, close_time, self):
            found.append(Span(start, start + self.size))
            start += self.advance
        return found


@dataclass(frozen=True)
class SessionDefinition:
    """Sessions, ended by more than `gap` without a record; [first, last] record (rule D1)."""

    gap: int
    grace: int
    idle_after: int | None = None


# Whether a record makes its window depends on no other record.
FixedDefinition = SlidingDefinition | ForwardDefinition | TimeDefinition
Definition = FixedDefinition | SessionDefinition


def close_delay(definition: Definition) -> int:
    """How far behind stream time the close time is (rule A3)."""
    if isinstance(definition, SessionDefinition):
        return definition.grace + definition.gap
    return definition.grace


def is_closed(end: int, close_time: float, definition: Definition) -> bool:
    """Rule A4; only hopping and tumbling ends are exclusive."""
    return end <= close_time if isinstance(definition, TimeDefinition) else end < close_time


def holds(window: Span, time: int, definition: FixedDefinition) -> bool:
    """Rules B2, B7 and C1."""
    if isinstance(definition, TimeDefinition):
        return window.start <= time < window.end
    return window.start <= time <= window.end
