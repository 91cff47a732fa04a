"""The base of window specifications that have a grace."""

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
    def close_delay_ms(self) -> int:
        """How far the close time is behind stream time (rule A3)."""
        return self.grace_ms
