"""Count windows: N records of a key, in the order of arrival."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from windows_pipeline.windows.arguments import require_flag, require_positive_count


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


@dataclass(frozen=True, slots=True)
class CountWindows:
    """Windows of `size` records, a new one every `advance` records of a key (rule F1).

    The last records of a key that do not fill a window are in none. With an advance above the
    size, records between two windows are in none either.

    Attributes:
        size: How many records a window holds.
        advance: How many records after a window's first record the next window starts.
        short_first: False: windows start at record 0, `advance`, 2 `advance`, ... of a key and
            are always full, as in Flink's Table API. True: windows end at the key's record
            `advance`, 2 `advance`, ..., counted from 1, and hold the last `size` records, or
            all records so far if they are fewer, as DataStream's `countWindow(size, advance)`.
    """

    size: int
    advance: int
    short_first: bool = False

    def __post_init__(self) -> None:
        """Checks the arguments (rule F3)."""
        require_positive_count("size", self.size)
        require_positive_count("advance", self.advance)
        require_flag("short_first", self.short_first)

    @property
    def result_rows(self) -> ResultRows:
        """The last rows of the windows."""
        return ResultRows(self.advance if self.short_first else self.size, self.advance, self.size)
