"""Numbers of rows, as sizes and bounds of windows by rows, and of those that have results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from windows_pipeline.windows.durations import MAX_DURATION_MS


@dataclass(frozen=True, slots=True)
class RowCount:
    """A number of rows; make one with `rows`.

    Attributes:
        count: The number. A size is above zero; a bound of `SlideRows` may be zero, or negative
            for a bound on the other side of the row.
    """

    count: int

    def __post_init__(self) -> None:
        """Checks the number."""
        if type(self.count) is not int:
            raise ValueError(f"rows: {self.count!r} is not a whole number; use an int")
        if abs(self.count) > MAX_DURATION_MS:
            raise ValueError(f"rows: {self.count!r} is too many; use at most {MAX_DURATION_MS}")


def rows(count: int) -> RowCount:
    """Makes a number of rows, the size or a bound of windows by rows.

    Raises:
        ValueError: The count is not an int, or is too large.
    """
    return RowCount(count)


class ResultRows(NamedTuple):
    """Which rows of a key, numbered from 1 in the order of arrival, have a result.

    Attributes:
        first: The first such row.
        every: From each such row to the next.
        size: A row counts in the results of this many rows, from itself on, if they have one.
    """

    first: int = 1
    every: int = 1
    size: int = 1
