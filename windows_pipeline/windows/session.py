"""Session windows: records without a longer gap between them."""

from __future__ import annotations

from dataclasses import dataclass

from windows_pipeline.windows.arguments import (
    require_instant,
    require_not_negative,
    require_positive,
)
from windows_pipeline.windows.durations import Duration, duration_ms
from windows_pipeline.windows.graced import Graced
from windows_pipeline.windows.time_window import TimeWindow


@dataclass(frozen=True, slots=True)
class SessionWindows(Graced):
    """Runs of records of a key, each at most a gap after the one before (rules D1, D2).

    A difference of just the gap joins. A session's bounds are its first and last record;
    Flink's end is the last record and the gap (`session_timeout` in results).

    Attributes:
        gap_ms: The longest silence within a session.
        grace_ms: How long after its end and the gap a session still takes records (rule A3).
    """

    gap_ms: int
    grace_ms: int

    def __post_init__(self) -> None:
        """Checks the arguments (rule B1)."""
        require_positive("gap", self.gap_ms)
        require_not_negative("grace", self.grace_ms)

    @classmethod
    def of_inactivity_gap_and_grace(cls, gap: Duration, grace: Duration) -> SessionWindows:
        """Makes the windows of a gap and a grace.

        Raises:
            ValueError: A gap not above zero, a negative grace, or a part smaller than a
                millisecond; the message names the argument and the value.
        """
        return cls(duration_ms(gap, "gap"), duration_ms(grace, "grace"))

    @classmethod
    def of_inactivity_gap_with_no_grace(cls, gap: Duration) -> SessionWindows:
        """Makes the windows of a gap alone; see `of_inactivity_gap_and_grace`."""
        return cls.of_inactivity_gap_and_grace(gap, "0 ms")

    @property
    def close_delay_ms(self) -> int:
        """How far the close time lies behind stream time (rule A3)."""
        return self.grace_ms + self.gap_ms

    def windows_for(self, timestamp_ms: int) -> tuple[TimeWindow]:
        """The session of a record alone, before it joins others.

        Raises:
            ValueError: No time in whole milliseconds.
        """
        require_instant("timestamp_ms", timestamp_ms)
        return (TimeWindow(timestamp_ms, timestamp_ms),)
