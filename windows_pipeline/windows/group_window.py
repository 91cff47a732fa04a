"""FLIP-11's group windows: `Tumble.over("10 minutes").on("ts").alias("w")`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Self

from windows_pipeline.windows.arguments import require_positive, require_positive_count
from windows_pipeline.windows.count_windows import CountWindows
from windows_pipeline.windows.durations import Duration, duration_ms
from windows_pipeline.windows.frames.row_count import RowCount
from windows_pipeline.windows.session import SessionWindows
from windows_pipeline.windows.time_windows import TimeWindows

_ALIAS = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True, slots=True)
class GroupWindow:
    """Windows to group by, made by `Tumble`, `Slide` or `Session` (rule F1).

    Attributes:
        windows: The windows' specification.
        column: The column that assigns rows to windows: for windows by time, that of event time
            or of ingest time; for windows by rows, the one that orders arrival. None before `on`.
        name: The name of the windows in `group_by` and `select`. None before `alias`.
    """

    windows: TimeWindows | SessionWindows | CountWindows
    column: str | None = None
    name: str | None = None

    @property
    def by_rows(self) -> bool:
        """Whether rows, not time, make windows: then a column orders them by arrival."""
        return self.windows.by_arrival

    def on(self, column: str) -> Self:
        """Returns these windows over a column.

        Args:
            column: For windows by time, the column of event time, or of ingest time for windows
                in processing time: a timestamp, or a bigint of milliseconds. For windows by
                rows, a column of any sortable type that orders rows by arrival and has each
                value once per key.

        Raises:
            ValueError: The column's name is empty, or not text.
        """
        if not isinstance(column, str) or not column:
            raise ValueError(f"on: {column!r} is not a column; pass a column's name")
        return replace(self, column=column)

    def alias(self, name: str) -> Self:
        """Returns these windows with a name for `group_by` and `select`.

        Raises:
            ValueError: The name has other characters than letters, digits and '_'.
        """
        if not isinstance(name, str) or _ALIAS.fullmatch(name) is None:
            raise ValueError(
                f"alias: {name!r} is not a name; use letters, digits and '_', as in alias('w')"
            )
        return replace(self, name=name)

    def with_short_first(self) -> Self:
        """Returns these windows counted from their last row, so that the first may be short.

        Like DataStream's `countWindow(size, advance)`: a window ends every `advance` rows and
        holds the last `size` rows, or all rows so far; see `CountWindows.short_first`.

        Raises:
            ValueError: The windows are by time.
        """
        if not isinstance(self.windows, CountWindows):  # not `by_rows`, for the type below
            raise ValueError(
                "with_short_first: windows must be by rows, not by time; make them with rows(...)"
            )
        return replace(self, windows=replace(self.windows, short_first=True))


@dataclass(frozen=True, slots=True)
class SlideOver:
    """Sliding windows that have a size and still need an advance; made by `Slide.over`.

    Attributes:
        size: The length of a window, or how many rows it holds.
    """

    size: Duration | RowCount

    def every(self, advance: Duration | RowCount) -> GroupWindow:
        """Makes windows that start at each multiple of an advance.

        Args:
            advance: The distance from one window to the next: a duration if the size is a
                duration, otherwise rows. With an advance below the size windows overlap; with
                one above it, rows between two windows are in none.

        Raises:
            ValueError: The advance is not above zero, has a part smaller than a millisecond, or
                is a duration and the size rows, or the other way round.
        """
        size = self.size
        if isinstance(size, RowCount) and isinstance(advance, RowCount):
            require_positive_count("every", advance.count)
            return GroupWindow(CountWindows(size.count, advance.count))
        if isinstance(size, RowCount) or isinstance(advance, RowCount):
            raise ValueError(
                f"every: {advance!r} must have the unit of over({size!r}); pass both as durations "
                "or both as rows(...)"
            )
        advance_ms = duration_ms(advance, "every")
        require_positive("every", advance_ms)
        return GroupWindow(TimeWindows(duration_ms(size, "over"), advance_ms, 0))


class Tumble:
    """Tumbling windows, one after the other: each row is in one of them."""

    @staticmethod
    def over(size: Duration | RowCount) -> GroupWindow:
        """Makes windows of a length, or of a number of rows.

        Args:
            size: A duration such as '10 minutes', or `rows(100)`. Windows by time start at
                multiples of the size, counted from 1970 (rule C1).

        Raises:
            ValueError: The size is not above zero, or has a part smaller than a millisecond.
        """
        return SlideOver(_checked(size)).every(size)


class Slide:
    """Sliding windows, which overlap or have gaps between them."""

    @staticmethod
    def over(size: Duration | RowCount) -> SlideOver:
        """Starts windows of a length, or of a number of rows; `.every(...)` sets the advance.

        Raises:
            ValueError: The size is not above zero, or has a part smaller than a millisecond.
        """
        return SlideOver(_checked(size))


class Session:
    """Session windows, which end when a key has no row for some time."""

    @staticmethod
    def with_gap(gap: Duration) -> GroupWindow:
        """Makes sessions: runs of a key's rows, each at most a gap after the row before (rule D1).

        Args:
            gap: The longest time between two consecutive rows of a session. A window ends a gap
                after its last row.

        Raises:
            ValueError: The gap is rows, not above zero, or has a part smaller than a millisecond.
        """
        if isinstance(gap, RowCount):
            raise ValueError(
                f"with_gap: must be a duration, not {gap!r}: a session ends when no row comes for "
                "some time; pass a duration, or use Tumble.over(rows(...))"
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
