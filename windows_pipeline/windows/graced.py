"""The bases of window specifications that have a grace: what others ask of every kind."""

from __future__ import annotations

from enum import Enum, auto
from math import gcd
from typing import Any, TypeVar

from windows_pipeline.windows.look_around import LookAround

Ms = TypeVar("Ms", bound=Any)
"""Milliseconds, or what follows from them: an int, an array of NumPy or a column of Spark."""


class EpisodeEnd(Enum):
    """When it is known that no later window continues an episode (rule E5)."""

    AT_ONCE = auto()
    """With the first window: windows that grow join those that they overlap."""
    AFTER_A_LENGTH = auto()
    """Once the close time is a window's length past the end of the last window."""
    NEVER = auto()
    """Windows have no bound on their length, so a later one may always overlap."""


class Graced:
    """Windows that take records for some time after their end (rule A3).

    A kind overrides an answer where its windows differ from most kinds.
    """

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

    @property
    def length_ms(self) -> int | None:
        """The time from a window's start to its end; None where it has no bound."""
        return None

    @property
    def step_ms(self) -> int | None:
        """The time from each window's start to the next; None where records make windows."""
        return None

    @property
    def timeout_ms(self) -> int | None:
        """How long no record may come before a window ends; None where silence ends no window."""
        return None

    @property
    def first_window_start_ms(self) -> int | None:
        """The earliest start of a window (rule B6); None for no bound."""
        return None

    @property
    def excludes_end(self) -> bool:
        """Whether a window's end is no instant of it, as of hopping windows (rule C1)."""
        return False

    @property
    def emit_empty(self) -> bool:
        """Whether windows without records are results."""
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
    def by_arrival(self) -> bool:
        """Whether the order of arrival alone orders a window's records."""
        return False

    @property
    def row_order(self) -> tuple[str, ...]:
        """The columns that order a key's rows, where each record has one; else none."""
        return ()

    def last_instant(self, end_ms: Ms) -> Ms:
        """The last millisecond of a window, which is closed once the close time is later (A4)."""
        last_ms: Ms = end_ms - int(self.excludes_end)
        return last_ms

    def last_start(self, time_ms: Ms) -> Ms:
        """The start of the last window that contains a record; in a gap, of the window before."""
        step_ms = self.step_ms
        if step_ms is None:
            return time_ms
        # A remainder of Spark's has the sign of the time, one of Python's is never below 0 (C1).
        start_ms: Ms = time_ms - (time_ms % step_ms + step_ms) % step_ms
        return start_ms

    def is_late(self, last_start_ms: Ms, close_ms: Ms) -> Ms:
        """Whether the last window of a record was closed when the record arrived (A5, F5).

        Where other records decide which record is late, it may still join a window (rule D2).
        """
        is_late: Ms = last_start_ms + (self.late_after_ms or 0) < close_ms
        return is_late

    def is_outside(self, last_start_ms: Ms, time_ms: Ms) -> Ms:
        """Whether a record lies before the first window, or in a gap (rules A5, B6, C1)."""
        is_outside: Ms = last_start_ms + (self.late_after_ms or 0) < time_ms
        if self.first_window_start_ms is not None:
            is_outside |= last_start_ms < self.first_window_start_ms
        return is_outside

    @property
    def late_after_ms(self) -> int | None:
        """How far the close time may be past the start of a record's last window (rule A5).

        Beyond this the record is late. None where other records decide which record is late.
        """
        return None

    @property
    def look_back_ms(self) -> int | None:
        """How far before a close time a record can matter to a window that is still open.

        None for no bound; where there is a timeout, records decide (see `lookback_from_ms`).
        """
        return None

    @property
    def shard_look_back_ms(self) -> int | None:
        """How far a window's end can lie after a record that it contains or has just lost.

        None where there is no bound, so that a key's time cannot be cut into time shards.
        """
        return None

    @property
    def look_around(self) -> LookAround | None:
        """What a window needs of the records around its own record, to be cut by their number.

        None where there is no bound, and for windows that time shards cut.
        """
        return None

    @property
    def closing_grid_ms(self) -> int:
        """The common divisor of all instants at which windows close."""
        return 1 if self.step_ms is None else gcd(self.length_ms or 0, self.step_ms, self.grace_ms)

    @property
    def episode_end(self) -> EpisodeEnd:
        """When it is known that no later window continues an episode."""
        if self.length_ms is not None:
            return EpisodeEnd.AFTER_A_LENGTH
        return EpisodeEnd.NEVER if self.keeps_bounds else EpisodeEnd.AT_ONCE

    @property
    def trigger_problem(self) -> str | None:
        """Why no trigger fires windows before they close, with the fix; None if triggers do."""
        return None

    @property
    def flink_problem(self) -> str | None:
        """Why no trigger can follow Flink, with the fix; None if one can."""
        return None


class FixedLength(Graced):
    """Windows of one length."""

    __slots__ = ()

    @property
    def length_ms(self) -> int:
        """The time from a window's start to its end."""
        raise NotImplementedError

    @property
    def late_after_ms(self) -> int:
        """The time from a window's start to its last instant; see `Graced.late_after_ms`."""
        return self.length_ms - self.excludes_end

    @property
    def look_back_ms(self) -> int:
        """A length: a window that is open at the close time began less than that before."""
        return self.length_ms

    @property
    def shard_look_back_ms(self) -> int | None:
        """A length; see `Graced.shard_look_back_ms`."""
        return self.length_ms
