"""Numbers since 1970: the column types that read them, and which type a number looks like."""

from __future__ import annotations

from typing import NamedTuple


class Epoch(NamedTuple):
    """What a number since 1970 counts.

    Attributes:
        unit: The unit, in the plural.
        digits: How many digits before the point a number of the years 2001 to 2286 has.
        per_second: How many units a second has.
    """

    unit: str
    digits: int
    per_second: int


EPOCHS = {
    "timestamp_s": Epoch("seconds", 10, 1),
    "timestamp_ms": Epoch("milliseconds", 13, 1_000),
    "timestamp_us": Epoch("microseconds", 16, 1_000_000),
    "timestamp_ns": Epoch("nanoseconds", 19, 1_000_000_000),
}
"""The column types of numbers since 1970."""

WHOLE_DIGITS = r"^\s*(\d+)(?:\.\d*)?\s*$"
"""The text of a number that may count units since 1970; the group holds the digits to count."""


def advice(kind: str) -> str:
    """Says what a number in a column of times looks like, and which type to declare."""
    return f"looks like epoch {EPOCHS[kind].unit}: declare {kind}"
