"""Forward sliding windows, the first draft of KIP-450: a window starts at each record's time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from windows_pipeline.windows.arguments import (
    require_instant,
    require_not_negative,
    require_positive,
)
from windows_pipeline.windows.durations import Duration, duration_ms
from windows_pipeline.windows.graced import FixedLength
from windows_pipeline.windows.time_window import TimeWindow


@dataclass(frozen=True, slots=True)
class ForwardSlidingWindows(FixedLength):
    """One window [t, t + size] for each distinct record time of a key, both bounds inclusive.

    Make one with ``SlidingWindows.of(size)``, and ``.grace(after)`` for a grace.

    Attributes:
        size_ms: The time from a window's first record to its end.
        grace_ms: How long after its end a window still takes records (rule A3).
    """

    size_ms: int
    grace_ms: int = 0

    def __post_init__(self) -> None:
        """Checks the arguments (rule B1)."""
        require_positive("size", self.size_ms)
        require_not_negative("grace", self.grace_ms)

    @property
    def length_ms(self) -> int:
        """The time from a window's start to its end."""
        return self.size_ms

    trigger_problem = (
        "trigger: ForwardSlidingWindows fire only when they close; use "
        "Trigger.until_window_closes(), in SQL final => TRUE, or "
        "SlidingWindows.of_time_difference_and_grace"
    )

    @classmethod
    def of(cls, size: Duration) -> ForwardSlidingWindows:
        """Makes windows of a size, with no grace (rule B7).

        Raises:
            ValueError: The size is not above zero, or has a part smaller than a millisecond.
        """
        return cls(duration_ms(size, "size"))

    def grace(self, after: Duration) -> ForwardSlidingWindows:
        """Returns these windows with a grace.

        Raises:
            ValueError: The grace is negative, or has a part smaller than a millisecond.
        """
        return replace(self, grace_ms=duration_ms(after, "grace"))

    def windows_for(self, timestamp_ms: int) -> tuple[TimeWindow]:
        """Returns the window that a record at this time makes.

        Raises:
            ValueError: The time is not an int of milliseconds, or is out of range.
        """
        require_instant("timestamp_ms", timestamp_ms)
        return (TimeWindow(timestamp_ms, timestamp_ms + self.size_ms),)
