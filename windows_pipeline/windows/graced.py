"""The base of window specifications that have a grace, and what others ask of every kind."""

from __future__ import annotations


class Graced:
    """Windows that take records for some time after their end (rule A3)."""

    __slots__ = ()

    grace_ms: int

    @property
    def grace_period_ms(self) -> int:
        """The grace, under the name that Kafka uses."""
        return self.grace_ms

    @property
    def length_ms(self) -> int | None:
        """The time from a window's start to its end; None where it has no bound."""
        return None

    @property
    def excludes_end(self) -> bool:
        """Whether a window's end is no instant of it, as of hopping windows (rule C1)."""
        return False

    @property
    def has_silences(self) -> bool:
        """Whether silences are windows (rule B8)."""
        return False

    @property
    def keeps_bounds(self) -> bool:
        """Whether a window keeps its bounds while it is open; a session grows."""
        return True

    @property
    def close_delay_ms(self) -> int:
        """How far the close time is behind stream time (rule A3)."""
        return self.grace_ms
