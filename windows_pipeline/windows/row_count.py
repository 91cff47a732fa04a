"""A number of rows, where a window may also take a duration: `rows(100)`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RowCount:
    """So many rows; made by `rows`.

    Attributes:
        count: How many; below zero where that means the other side.
    """

    count: int

    def __post_init__(self) -> None:
        """Checks that it is a whole number."""
        if type(self.count) is not int:
            raise ValueError(f"rows: {self.count!r} is no whole number of rows; use an int")


def rows(count: int) -> RowCount:
    """So many rows, in the place of a duration (FLIP-11's `100.rows`).

    Args:
        count: How many.

    Raises:
        ValueError: No whole number.
    """
    return RowCount(count)
