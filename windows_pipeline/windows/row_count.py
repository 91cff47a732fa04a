"""Numbers of rows, in place of lengths of time."""

from __future__ import annotations

from dataclasses import dataclass

from windows_pipeline.windows.durations import MAX_DURATION_MS


@dataclass(frozen=True, slots=True)
class RowCount:
    """So many rows; make one with `rows`.

    Attributes:
        count: How many. A size is above zero; a bound of `SlideRows` may be zero or, on the
            other side of the row, negative.
    """

    count: int

    def __post_init__(self) -> None:
        """Checks the number."""
        if type(self.count) is not int:
            raise ValueError(f"rows: {self.count!r} is no whole number; use an int")
        if abs(self.count) > MAX_DURATION_MS:
            raise ValueError(f"rows: {self.count!r} is too many; at most {MAX_DURATION_MS}")


def rows(count: int) -> RowCount:
    """A number of rows, for windows by row count.

    Raises:
        ValueError: No whole number.
    """
    return RowCount(count)
