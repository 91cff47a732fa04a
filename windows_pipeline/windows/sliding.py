"""Sliding windows, as in the accepted KIP-450."""

from __future__ import annotations

from dataclasses import dataclass

from windows_pipeline.windows.arguments import (
    require_flag,
    require_instant,
    require_instant_or_none,
    require_not_negative,
    require_positive,
)
from windows_pipeline.windows.durations import Duration, duration_ms
from windows_pipeline.windows.forward import ForwardSlidingWindows
from windows_pipeline.windows.graced import FixedLength
from windows_pipeline.windows.time_window import TimeWindow


@dataclass(frozen=True, slots=True)
class SlidingWindows(FixedLength):
    """One window for each distinct set of records at most a time difference apart.

    Make one with `of_time_difference_and_grace`. Records a@3 b@7 c@12 d@19 with a
    difference of 10 ms make these windows (the worked example of KIP-450):

    | window   | records | made by         |
    |----------|---------|-----------------|
    | [-7, 3]  | a       | a, to its left  |
    | [-3, 7]  | a b     | b, to its left  |
    | [2, 12]  | a b c   | c, to its left  |
    | [4, 14]  | b c     | a, to its right |
    | [8, 18]  | c       | b, to its right |
    | [9, 19]  | c d     | d, to its left  |
    | [13, 23] | d       | c, to its right |

    Attributes:
        time_difference_ms: The largest difference between two records of one window (rule B2).
        grace_ms: How long after its end a window still takes records (rule A3).
        first_window_start_ms: The earliest start of a window (rule B6); None for no bound.
        emit_empty: Whether a time without records gives a window of count 0 (rule B8).
    """

    time_difference_ms: int
    grace_ms: int
    first_window_start_ms: int | None = None
    emit_empty: bool = False

    def __post_init__(self) -> None:
        """Checks the arguments (rule B1)."""
        require_positive("time_difference", self.time_difference_ms)
        require_not_negative("grace", self.grace_ms)
        require_instant_or_none("first_window_start_ms", self.first_window_start_ms)
        require_flag("emit_empty", self.emit_empty)

    @property
    def length_ms(self) -> int:
        """The time from a window's start to its end."""
        return self.time_difference_ms

    @property
    def has_silences(self) -> bool:
        """Whether silences are windows (rule B8)."""
        return self.emit_empty

    @property
    def look_back_ms(self) -> int:
        """Two differences, with the instant after each.

        A window that ends at the close time reaches back by one time difference. One more
        difference shows which earlier windows counted a partly late record (rule A5).
        """
        return 2 * self.shard_look_back_ms

    @property
    def shard_look_back_ms(self) -> int:
        """A difference and one instant more: a right window begins just after its record."""
        return self.time_difference_ms + 1

    flink_problem = (
        "trigger: following_flink cannot apply to SlidingWindows, which Flink does not have; leave "
        "following_flink out"
    )

    @classmethod
    def of_time_difference_and_grace(
        cls,
        time_difference: Duration,
        grace: Duration,
        *,
        first_window_start_ms: int | None = None,
        emit_empty: bool = False,
    ) -> SlidingWindows:
        """Makes the windows of a time difference and a grace; both are required (rule B1).

        Raises:
            ValueError: The difference is not above zero, the grace is negative, or either has a
                part smaller than a millisecond; the message has the argument and the value.
        """
        return cls(
            duration_ms(time_difference, "time_difference"),
            duration_ms(grace, "grace"),
            first_window_start_ms,
            emit_empty,
        )

    @classmethod
    def of_time_difference_with_no_grace(
        cls,
        time_difference: Duration,
        *,
        first_window_start_ms: int | None = None,
        emit_empty: bool = False,
    ) -> SlidingWindows:
        """Makes windows that close at their end; see `of_time_difference_and_grace`."""
        return cls.of_time_difference_and_grace(
            time_difference,
            "0 ms",
            first_window_start_ms=first_window_start_ms,
            emit_empty=emit_empty,
        )

    @classmethod
    def of(cls, size: Duration) -> ForwardSlidingWindows:
        """Makes forward windows, as in the first draft of KIP-450 (rule B7).

        Raises:
            ValueError: See `ForwardSlidingWindows.of`.
        """
        return ForwardSlidingWindows.of(size)

    def windows_for(self, timestamp_ms: int) -> tuple[TimeWindow, TimeWindow]:
        """Returns the left and the right window of a record at this time (rule B3).

        Raises:
            ValueError: The time is not an int of milliseconds, is out of range, or is before
                `first_window_start_ms`, where no window contains it.
        """
        require_instant("timestamp_ms", timestamp_ms)
        first = self.first_window_start_ms
        left = timestamp_ms - self.time_difference_ms
        if first is not None:
            if timestamp_ms < first:
                raise ValueError(
                    f"timestamp_ms: {timestamp_ms} is before first_window_start_ms, {first}, so no "
                    "window contains it; pass a later time"
                )
            left = max(left, first)
        right = timestamp_ms + 1
        return (
            TimeWindow(left, left + self.time_difference_ms),
            TimeWindow(right, right + self.time_difference_ms),
        )
