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
from windows_pipeline.windows.graced import Graced
from windows_pipeline.windows.time_window import TimeWindow


@dataclass(frozen=True, slots=True)
class TimeWindows(Graced):
    """Windows [start, start + size) that start at each multiple of an advance (rule C1).

    Make them with `of_size_and_grace` or `of_size_with_no_grace`: tumbling windows, which
    advance by their size. `advance_by` makes them hopping. An advance above the size leaves
    gaps (FLIP-11's Slide): a record there is in no window.

    Attributes:
        size_ms: How long a window is.
        advance_ms: From one window's start to the next one's.
        grace_ms: How long after its end a window still takes records (rule A3).
        first_window_start_ms: No window starts before it; None for no bound. Kafka's rule is 0.
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
        """From a window's start to its end."""
        return self.size_ms

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
            ValueError: A size not above zero, a negative grace, or a part smaller than a
                millisecond; the message names the argument and the value.
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
        """The same windows at another advance: hopping ones.

        Raises:
            ValueError: An advance not above zero, or with a part smaller than a millisecond.
        """
        return replace(self, advance_ms=duration_ms(advance, "advance"))

    def windows_for(self, timestamp_ms: int) -> tuple[TimeWindow, ...]:
        """The windows that hold a record at this time, by start; none for one in a gap.

        Raises:
            ValueError: No time in whole milliseconds.
        """
        require_instant("timestamp_ms", timestamp_ms)
        last_start = timestamp_ms // self.advance_ms * self.advance_ms
        # The last start that lies a size or more before the record is just out.
        first_start = (timestamp_ms - self.size_ms) // self.advance_ms * self.advance_ms
        starts = range(first_start + self.advance_ms, last_start + 1, self.advance_ms)
        first = self.first_window_start_ms
        return tuple(
            TimeWindow(start, start + self.size_ms)
            for start in starts
            if first is None or start >= first
        )
