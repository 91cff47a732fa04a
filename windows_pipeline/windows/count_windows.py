"""Count windows: so many records of a key, in the order in which they came."""

from __future__ import annotations

from dataclasses import dataclass

from windows_pipeline.windows.arguments import require_flag, require_positive_count


@dataclass(frozen=True, slots=True)
class CountWindows:
    """Windows of `size` records, a new one every `advance` records of a key (rule F1).

    What does not fill a window at the end makes none. An advance above the size leaves out
    the records between.

    Attributes:
        size: How many records a window holds.
        advance: From one window's first record to the next one's.
        short_first: False: windows begin at record 0, `advance`, 2 `advance`, ... of a key and
            are always full, as Flink's Table API has it. True: they end with the key's record
            `advance`, 2 `advance`, ..., counted from 1, and hold the last `size` records, or
            all where there are fewer yet, as DataStream's `countWindow(size, advance)`.
    """

    size: int
    advance: int
    short_first: bool = False

    def __post_init__(self) -> None:
        """Checks the arguments (rule F3)."""
        require_positive_count("size", self.size)
        require_positive_count("advance", self.advance)
        require_flag("short_first", self.short_first)
