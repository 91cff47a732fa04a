"""Which rows of a table are wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import NamedTuple

from windows_pipeline.query.tables.keys import KeyRange


class Span(NamedTuple):
    """A span of time, bounds included, in microseconds since 1970; None for an open bound."""

    first_us: int | None = None
    last_us: int | None = None

    def meets(self, smallest_us: int | None, largest_us: int | None) -> bool:
        """Whether values between these bounds may be within the span; true if both are unknown."""
        if smallest_us is not None and self.last_us is not None and smallest_us > self.last_us:
            return False
        return not (
            largest_us is not None and self.first_us is not None and largest_us < self.first_us
        )

    def within(self, other: Span) -> Span:
        """The time that both spans have in common."""
        firsts = [us for us in (self.first_us, other.first_us) if us is not None]
        lasts = [us for us in (self.last_us, other.last_us) if us is not None]
        return Span(max(firsts, default=None), min(lasts, default=None))


@dataclass(frozen=True)
class Wanted:
    """Which rows of a table are wanted.

    Attributes:
        keys: Their keys.
        times: For columns of timestamps, from when to when.
        days: Their arrival days; None for all.
    """

    keys: KeyRange = field(default_factory=KeyRange)
    times: Mapping[str, Span] = field(default_factory=dict)
    days: frozenset[date] | None = None


class Part(NamedTuple):
    """What is known of a part of a table without reading it: of a file, or of an arrival day.

    Attributes:
        day: Its arrival day; None if days share files.
        row_count: How many rows it has; None if not known.
        first_end_us: The earliest end of its windows, in microseconds; None if not known.
        last_end_us: The latest end.
    """

    day: date | None
    row_count: int | None
    first_end_us: int | None = None
    last_end_us: int | None = None
