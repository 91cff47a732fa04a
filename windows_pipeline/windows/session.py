"""Session windows: runs of records without a gap above a limit."""

from __future__ import annotations

from dataclasses import dataclass

from windows_pipeline.windows.arguments import (
    require_instant,
    require_not_negative,
    require_positive,
)
from windows_pipeline.windows.durations import Duration, duration_ms
from windows_pipeline.windows.graced import Graced
from windows_pipeline.windows.look_around import LookAround
from windows_pipeline.windows.time_window import TimeWindow


@dataclass(frozen=True, slots=True)
class SessionWindows(Graced):
    """Runs of a key's records, each at most a gap after the record before (rules D1, D2).

    Records exactly a gap apart are in one session. A session starts at its first record and ends
    at its last; Flink's end is a gap after the last record (`session_timeout` in results).

    Attributes:
        gap_ms: The longest time between two consecutive records of a session.
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
            ValueError: The gap is not above zero, the grace is negative, or either has a part
                smaller than a millisecond; the message has the argument and the value.
        """
        return cls(duration_ms(gap, "gap"), duration_ms(grace, "grace"))

    @classmethod
    def of_inactivity_gap_with_no_grace(cls, gap: Duration) -> SessionWindows:
        """Makes the windows of a gap alone; see `of_inactivity_gap_and_grace`."""
        return cls.of_inactivity_gap_and_grace(gap, "0 ms")

    @property
    def timeout_ms(self) -> int:
        """The gap."""
        return self.gap_ms

    keeps_bounds = False

    @property
    def look_around(self) -> LookAround:
        """Sessions are cut where no record comes for longer than the gap."""
        return LookAround(gap_ms=self.gap_ms)

    @property
    def close_delay_ms(self) -> int:
        """How far the close time is behind stream time (rule A3)."""
        return self.grace_ms + self.gap_ms

    def windows_for(self, timestamp_ms: int) -> tuple[TimeWindow]:
        """Returns the session of a single record, before it joins others.

        Raises:
            ValueError: The time is not an int of milliseconds, or is out of range.
        """
        require_instant("timestamp_ms", timestamp_ms)
        return (TimeWindow(timestamp_ms, timestamp_ms),)
