"""Hopping and tumbling windows, by Kafka Streams' name: time windows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from windows_pipeline.windows.arguments import (
    require_flag,
    require_instant,
    require_instant_or_none,
    require_not_negative,
    require_positive,
)
from windows_pipeline.windows.durations import Duration, duration_ms
from windows_pipeline.windows.graced import FixedLength
from windows_pipeline.windows.time_window import TimeWindow


@dataclass(frozen=True, slots=True)
class TimeWindows(FixedLength):
    """Windows [start, start + size) that start at each multiple of an advance (rule C1).

    `of_size_and_grace` and `of_size_with_no_grace` make tumbling windows, which advance by
    their size; `advance_by` makes hopping windows. An advance above the size leaves gaps
    (FLIP-11's Slide): a record in a gap is in no window.

    Attributes:
        size_ms: The length of a window.
        advance_ms: The time from one window's start to the next one's.
        grace_ms: How long after its end a window still takes records (rule A3).
        first_window_start_ms: The earliest start of a window; None for no bound. Kafka has 0.
        emit_empty: Whether windows without records, between a key's first record and the
            close time, are results of count 0.
    """

    size_ms: int
    advance_ms: int
    grace_ms: int
    first_window_start_ms: int | None = None
    emit_empty: bool = False

    def __post_init__(self) -> None:
        """Checks the arguments (rule B1)."""
        require_positive("size", self.size_ms)
        require_positive("advance", self.advance_ms)
        require_not_negative("grace", self.grace_ms)
        require_instant_or_none("first_window_start_ms", self.first_window_start_ms)
        require_flag("emit_empty", self.emit_empty)

    @property
    def length_ms(self) -> int:
        """The time from a window's start to its end."""
        return self.size_ms

    @property
    def step_ms(self) -> int:
        """The advance."""
        return self.advance_ms

    excludes_end = True

    @property
    def shard_look_back_ms(self) -> int | None:
        """The size; None for empty windows, which begin at a key's first record in any shard."""
        return None if self.emit_empty else self.size_ms

    @property
    def trigger_problem(self) -> str | None:
        """No record fires an empty window."""
        if not self.emit_empty:
            return None
        return (
            "windows: emit_empty adds windows without records, which no trigger fires before they "
            "close; use Trigger.until_window_closes(), or leave emit_empty out"
        )

    @classmethod
    def of_size_and_grace(
        cls,
        size: Duration,
        grace: Duration,
        *,
        first_window_start_ms: int | None = None,
        emit_empty: bool = False,
    ) -> TimeWindows:
        """Makes tumbling windows.

        Raises:
            ValueError: The size is not above zero, the grace is negative, or either has a part
                smaller than a millisecond; the message has the argument and the value.
        """
        size_ms = duration_ms(size, "size")
        return cls(size_ms, size_ms, duration_ms(grace, "grace"), first_window_start_ms, emit_empty)

    @classmethod
    def of_size_with_no_grace(
        cls,
        size: Duration,
        *,
        first_window_start_ms: int | None = None,
        emit_empty: bool = False,
    ) -> TimeWindows:
        """Makes tumbling windows that close at their end; see `of_size_and_grace`."""
        return cls.of_size_and_grace(
            size, "0 ms", first_window_start_ms=first_window_start_ms, emit_empty=emit_empty
        )

    def advance_by(self, advance: Duration) -> TimeWindows:
        """Returns these windows with another advance, as hopping windows.

        Raises:
            ValueError: The advance is not above zero, or has a part smaller than a millisecond.
        """
        return replace(self, advance_ms=duration_ms(advance, "advance"))

    def windows_for(self, timestamp_ms: int) -> tuple[TimeWindow, ...]:
        """Returns the windows that contain this time, by start; none for a time in a gap.

        Raises:
            ValueError: The time is not an int of milliseconds, or is out of range.
        """
        require_instant("timestamp_ms", timestamp_ms)
        # A window that starts a size or more before the time does not contain it.
        before = self.last_start(timestamp_ms - self.size_ms)
        starts = range(before + self.advance_ms, timestamp_ms + 1, self.advance_ms)
        first = self.first_window_start_ms
        return tuple(
            TimeWindow(start, start + self.size_ms)
            for start in starts
            if first is None or start >= first
        )
