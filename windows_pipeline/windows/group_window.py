"""FLIP-11's group windows as one writes them: `Tumble.over("10 minutes").on("ts").alias("w")`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Self

from windows_pipeline.windows.arguments import require_positive, require_positive_count
from windows_pipeline.windows.count_windows import CountWindows
from windows_pipeline.windows.durations import Duration, duration_ms
from windows_pipeline.windows.row_count import RowCount
from windows_pipeline.windows.session import SessionWindows
from windows_pipeline.windows.time_windows import TimeWindows

_ALIAS = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True, slots=True)
class GroupWindow:
    """Windows to group by, made by `Tumble`, `Slide` or `Session` (rule F1).

    Attributes:
        windows: What they are.
        column: What they go by: of windows by time the column of event time or of ingest time,
            of windows by rows the column that orders arrival. None before `on`.
        name: What `group_by` and `select` call them. None before `alias`.
    """

    windows: TimeWindows | SessionWindows | CountWindows
    column: str | None = None
    name: str | None = None

    def on(self, column: str) -> Self:
        """The same by a column.

        Args:
            column: Of windows by time its event time, or its ingest time for windows in
                processing time: a timestamp, or a bigint of milliseconds. Of windows by rows
                what orders the rows as they came, of any type that sorts, each value once a
                key.

        Raises:
            ValueError: No name.
        """
        if not isinstance(column, str) or not column:
            raise ValueError(f"on: {column!r} is no column; pass a column's name")
        return replace(self, column=column)

    def alias(self, name: str) -> Self:
        """The same under a name, by which `group_by` and `select` take them.

        Raises:
            ValueError: No plain name.
        """
        if not isinstance(name, str) or _ALIAS.fullmatch(name) is None:
            raise ValueError(
                f"alias: {name!r} is no name; use letters, digits and '_', as in alias('w')"
            )
        return replace(self, name=name)

    def with_short_first(self) -> Self:
        """The same, counting from each window's last row: the first ones may be short.

        As DataStream's `countWindow(size, advance)`: every `advance` rows, with the last `size`
        of them or as many as there are; see `CountWindows.short_first`.

        Raises:
            ValueError: Windows by time: these hold whatever lies in them.
        """
        if not isinstance(self.windows, CountWindows):
            raise ValueError(
                "with_short_first: only windows by rows can be short; make them of rows(...)"
            )
        return replace(self, windows=replace(self.windows, short_first=True))


@dataclass(frozen=True, slots=True)
class SlideOver:
    """Sliding windows of a size that still need their advance; made by `Slide.over`.

    Attributes:
        size: How long a window is, or how many rows it holds.
    """

    size: Duration | RowCount

    def every(self, advance: Duration | RowCount) -> GroupWindow:
        """Windows that start every so often.

        Args:
            advance: From one window to the next: a duration where the size is one, else rows.
                Below the size windows overlap; above it rows between them are in none.

        Raises:
            ValueError: Not above zero, a part smaller than a millisecond, or time with rows.
        """
        size = self.size
        if isinstance(size, RowCount) and isinstance(advance, RowCount):
            require_positive_count("every", advance.count)
            return GroupWindow(CountWindows(size.count, advance.count))
        if isinstance(size, RowCount) or isinstance(advance, RowCount):
            raise ValueError(
                f"every: {advance!r} does not go with over({size!r}): one is a time, the other "
                "rows; give both as durations or both as rows(...)"
            )
        advance_ms = duration_ms(advance, "every")
        require_positive("every", advance_ms)
        return GroupWindow(TimeWindows(duration_ms(size, "over"), advance_ms, 0))


class Tumble:
    """Windows side by side: each row is in one of them."""

    @staticmethod
    def over(size: Duration | RowCount) -> GroupWindow:
        """Windows of a length, or of so many rows.

        Args:
            size: Such as '10 minutes' or `rows(100)`. By time they start at multiples of it,
                counted from 1970 (rule C1).

        Raises:
            ValueError: Not above zero, or with a part smaller than a millisecond.
        """
        return SlideOver(_checked(size)).every(size)


class Slide:
    """Windows that overlap, or with gaps between them."""

    @staticmethod
    def over(size: Duration | RowCount) -> SlideOver:
        """Windows of a length, or of so many rows; `.every(...)` says how often they start.

        Raises:
            ValueError: Not above zero, or with a part smaller than a millisecond.
        """
        return SlideOver(_checked(size))


class Session:
    """Windows that end with a silence."""

    @staticmethod
    def with_gap(gap: Duration) -> GroupWindow:
        """Rows of a key without a longer silence between them; just the gap joins (rule D1).

        Args:
            gap: The longest silence; a window's end is its last row and the gap.

        Raises:
            ValueError: Not above zero, with a part smaller than a millisecond, or rows.
        """
        if isinstance(gap, RowCount):
            raise ValueError(
                f"with_gap: {gap!r}: a session ends with a silence, which rows cannot tell; "
                "give a duration, or use Tumble.over(rows(...))"
            )
        gap_ms = duration_ms(gap, "with_gap")
        require_positive("with_gap", gap_ms)
        return GroupWindow(SessionWindows(gap_ms, 0))


def _checked(size: Duration | RowCount) -> Duration | RowCount:
    if isinstance(size, RowCount):
        require_positive_count("over", size.count)
    else:
        require_positive("over", duration_ms(size, "over"))
    return size
