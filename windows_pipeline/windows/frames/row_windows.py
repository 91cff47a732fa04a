"""FLIP-11's row windows: one result for each input row (rule F2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from windows_pipeline.windows.arguments import require_positive
from windows_pipeline.windows.durations import Duration, duration_ms, duration_text
from windows_pipeline.windows.frames.bounds import Bound, FrameUnit, RowBound, row_bound
from windows_pipeline.windows.frames.row_count import ResultRows, RowCount
from windows_pipeline.windows.look_around import LookAround


@dataclass(frozen=True, slots=True, kw_only=True)
class _OnTime:
    """The base of row windows: a time column and an alias.

    Attributes:
        time_column: The column of event time or ingest time; None to order rows by arrival
            alone.
        name: The window's alias.
    """

    time_column: str | None = None
    name: str | None = None

    def on(self, column: str) -> Self:
        """Returns this window over a column of time: a timestamp, or a bigint of milliseconds.

        The column has the event time or, for windows in processing time, the ingest time.

        Raises:
            ValueError: The column's name is empty, or not text.
        """
        return replace(self, time_column=_required_name("on", column))

    def alias(self, name: str) -> Self:
        """Returns this window with a name, by which a query refers to its results.

        Raises:
            ValueError: The name is empty, or not text.
        """
        return replace(self, name=_required_name("alias", name))

    @property
    def label(self) -> str:
        """The window's name in errors."""
        kind = type(self).__name__
        return kind if self.name is None else f"{kind} {self.name!r}"

    @property
    def by_arrival(self) -> bool:
        """Whether the order of arrival alone orders the rows."""
        return False

    @property
    def by_time(self) -> bool:
        """Whether windows are bounded by time, so that they need a column of time."""
        return True

    @property
    def why_arrival(self) -> str | None:
        """Why the order of arrival decides a window's rows; None where it doesn't."""
        return "this window orders rows of one time by arrival"

    def require_rows(self) -> None:
        """Checks that a window can have rows."""

    frames = ()
    """The frames of a row by name, where it has several."""
    result_rows = ResultRows()
    """Which rows have a result: each one."""

    def outer_on(self, column: str) -> tuple[Self]:
        """The row windows that together are a row's window, over a column of time."""
        return (replace(self, time_column=column),)

    @property
    def timeout_ms(self) -> int | None:
        """How long no row may come before a window ends; None where silence ends no window."""
        return None

    @property
    def look_back_ms(self) -> int | None:
        """How far before a window's last instant its rows can lie; None for no bound in time."""
        return None

    @property
    def shard_look_back_ms(self) -> int | None:
        """How far before a window's end rows matter to it; None where time can't be cut."""
        return self.look_back_ms

    @property
    def look_around(self) -> LookAround | None:
        """What a window needs of the rows around its own row; None if there is no bound."""
        return None

    @property
    def followers(self) -> int:
        """How many rows must follow a row for its result."""
        return 0

    @property
    def bounds(self) -> tuple[str, ...]:
        """The bounds of a row's window that are found with its rows: start and end, or less."""
        return ()

    @property
    def bounds_ms(self) -> tuple[int | None, int] | None:
        """How far before and after the row its window begins and ends.

        No first number: it begins with its first row. None: it ends with its last row, too.
        """
        return None

    @property
    def distances_ms(self) -> dict[str, int]:
        """How far from each row its window's start and end lie, if always as far."""
        return {}

    @property
    def never_ends(self) -> bool:
        """Whether a row's window contains all later rows."""
        return False

    def as_bounded(self) -> Self:
        """The part of a window from the first row on that a shard needs as single rows."""
        return self


class _Following:
    """The verb `following` of frames, and of the class for frames that start at each row."""

    def __get__(
        self, frames: SlideRows | None, owner: type[SlideRows]
    ) -> Callable[[Bound], SlideRows]:
        """Returns the verb."""

        def following(bound: Bound) -> SlideRows:
            """Returns frames with this end, at a distance after each row.

            Args:
                bound: The distance of the end, as that of `preceding`.

            Raises:
                ValueError: The bound is not a bound, has the other unit, or is before the start.
            """
            end = row_bound(bound, "following")
            return (frames or owner(unit=end.unit, back=0)).ending(end)

        return following


@dataclass(frozen=True, slots=True, kw_only=True)
class SlideRows(_OnTime):
    """The rows around each row: SQL's OVER with ROWS or RANGE.

    `SlideRows.preceding("10 minutes").on("ts")` ends with the row and its peers;
    `.following(...)` sets another end, and `SlideRows.following(...)` starts with the row. Both
    bounds are inclusive. A negative bound is on the
    other side of the row: the frame excludes the row and may be empty. A frame that starts
    after the row therefore needs `.following(...)`.

    Attributes:
        unit: The unit of the bounds.
        back: How far before the row the frame starts, in milliseconds or rows; None for no
            bound.
        ahead: How far after the row the frame ends, in the same unit; None for no bound.
    """

    unit: FrameUnit
    back: int | None
    ahead: int | None = 0

    def __post_init__(self) -> None:
        """Checks the bounds, and that the frame starts no later than it ends."""
        for distance in (self.back, self.ahead):
            RowBound(self.unit, distance)
        # `following` may still move an end at the row; `require_rows` checks it before use.
        if self.ahead != 0:
            self._require_start_before_end()

    @classmethod
    def preceding(cls, bound: Bound) -> SlideRows:
        """Makes frames that start before each row and end with the row (and its peers).

        Args:
            bound: The distance of the start: a duration, `rows(5)`, `UNBOUNDED_ROW`,
                `UNBOUNDED_RANGE`, `CURRENT_ROW` or `CURRENT_RANGE`. A negative distance starts
                the frame after the row: set an end after the start with `following`.

        Raises:
            ValueError: The bound has another form.
        """
        start = row_bound(bound, "preceding")
        return cls(unit=start.unit, back=start.distance)

    following = _Following()

    def ending(self, end: RowBound) -> SlideRows:
        """Returns these frames with another end; see `following`."""
        if end.unit is not self.unit:
            start = RowBound(self.unit, self.back)
            raise ValueError(
                f"following: {_bound_text(end)} must have the unit of preceding: "
                f"{_bound_text(start)}; pass both as durations or both as rows"
            )
        frame = replace(self, ahead=end.distance)
        frame._require_start_before_end()  # noqa: SLF001  of the same class
        return frame

    def require_rows(self) -> None:
        """Checks that a frame that starts after the row has an end after the row, too.

        Raises:
            ValueError: The frame is always empty.
        """
        if self.back is not None and self.back < 0 and self.ahead == 0:
            raise ValueError(
                f"preceding: {self._text(self.back)} starts the frame after the row, but without "
                "'following' the frame ends at the row, so it is empty; set an end after the "
                f"start, such as .following({self._text(-self.back)})"
            )

    @property
    def by_arrival(self) -> bool:
        """Whether no column of time orders the rows."""
        return self.time_column is None

    @property
    def by_time(self) -> bool:
        """Whether the bounds are times."""
        return self.unit is FrameUnit.RANGE

    @property
    def why_arrival(self) -> str | None:
        """None for a frame by time, which has all rows of a time or none."""
        return None if self.by_time else super(SlideRows, self).why_arrival

    @property
    def look_back_ms(self) -> int | None:
        """The length of a frame by time that contains its row; None without both bounds."""
        back_ms, ahead_ms = self.bounds_ms or (None, 0)
        return None if back_ms is None else back_ms + ahead_ms

    @property
    def shard_look_back_ms(self) -> int | None:
        """The length of a frame by time, both bounds included; None without both bounds."""
        return None if self.look_back_ms is None else self.look_back_ms + 1

    @property
    def look_around(self) -> LookAround | None:
        """How far the frame extends; None without both bounds."""
        if self.back is None or self.ahead is None:
            return None
        back, ahead = max(self.back, 0), max(self.ahead, 0)
        if self.unit is FrameUnit.ROWS:
            return LookAround(back, ahead)
        return LookAround(back_ms=back, ahead_ms=ahead)

    @property
    def followers(self) -> int:
        """How many rows a frame by rows has after its row."""
        return max(self.ahead or 0, 0) if self.unit is FrameUnit.ROWS else 0

    @property
    def bounds_ms(self) -> tuple[int | None, int] | None:
        """The bounds of a frame by time that has an end."""
        if self.unit is FrameUnit.ROWS or self.ahead is None:
            return None
        return None if self.back is None else max(self.back, 0), max(self.ahead, 0)

    @property
    def distances_ms(self) -> dict[str, int]:
        """The bounds of a frame by time, without those that are unbounded."""
        if self.unit is FrameUnit.ROWS:
            return {}
        start = {} if self.back is None else {"start": -self.back}
        return start if self.ahead is None else {**start, "end": self.ahead}

    @property
    def never_ends(self) -> bool:
        """Whether the frame has no end."""
        return self.ahead is None

    def as_bounded(self) -> Self:
        """The rows between the end of a frame without a start and its row."""
        return self if self.back is not None else replace(self, back=max(0, -(self.ahead or 0)))

    def _require_start_before_end(self) -> None:
        if self.back is not None and self.ahead is not None and -self.back > self.ahead:
            raise ValueError(
                f"following: the frame starts {self._text(-self.back)} after the row and ends "
                f"{self._text(self.ahead)} after it, so it is empty; move the end after the start"
            )

    def _text(self, distance: int) -> str:
        return _bound_text(RowBound(self.unit, distance))


@dataclass(frozen=True, slots=True, kw_only=True)
class TumbleRows(_OnTime):
    """The rows of each row's tumbling window, up to the row.

    `TumbleRows.over("10 minutes").on("ts")`: windows [start, start + size) that start at each
    multiple of the size, with rows in the order of time and arrival. `TumbleRows.over(rows(5))`:
    blocks of 5 rows of a key in the order of arrival; `on` then sets the time by which `first`,
    `last` and other ordered functions sort, not the blocks.

    Attributes:
        unit: The unit of the size.
        size: The size of a window, in milliseconds or rows.
    """

    unit: FrameUnit
    size: int

    def __post_init__(self) -> None:
        """Checks the size."""
        if self.unit is FrameUnit.RANGE:
            require_positive("size", self.size)
        elif RowCount(self.size).count <= 0:
            raise ValueError(f"size: rows({self.size}) must be above zero; use rows(1) or more")

    @classmethod
    def over(cls, size: Duration | RowCount) -> TumbleRows:
        """Makes windows of a size.

        Raises:
            ValueError: The size is not above zero, or has a part smaller than a millisecond.
        """
        if isinstance(size, RowCount):
            return cls(unit=FrameUnit.ROWS, size=size.count)
        return cls(unit=FrameUnit.RANGE, size=duration_ms(size, "size"))

    @property
    def by_arrival(self) -> bool:
        """Whether windows are blocks of rows."""
        return self.unit is FrameUnit.ROWS

    @property
    def by_time(self) -> bool:
        """Whether windows have a size in time."""
        return self.unit is FrameUnit.RANGE

    @property
    def why_arrival(self) -> str | None:
        """Blocks of rows count them as they arrive."""
        if self.by_arrival:
            return "this window counts rows in the order of arrival"
        return super(TumbleRows, self).why_arrival

    def outer_on(self, column: str) -> tuple[Self]:
        """The same over the column; blocks of rows as they are."""
        return (self,) if self.by_arrival else super(TumbleRows, self).outer_on(column)

    @property
    def look_back_ms(self) -> int | None:
        """The size; None for blocks of rows."""
        return None if self.by_arrival else self.size

    @property
    def look_around(self) -> LookAround:
        """The size."""
        return LookAround(back=self.size - 1) if self.by_arrival else LookAround(back_ms=self.size)

    @property
    def bounds(self) -> tuple[str, ...]:
        """Both bounds; none for blocks of rows."""
        return () if self.by_arrival else ("start", "end")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRows(_OnTime):
    """The rows of each row's session up to the row, in the order of time and arrival.

    A session is a run of a key's rows, each at most a gap after the row before (rule D1).

    Attributes:
        gap_ms: The longest time between two consecutive rows of a session.
    """

    gap_ms: int

    def __post_init__(self) -> None:
        """Checks the gap."""
        require_positive("gap", self.gap_ms)

    @classmethod
    def with_gap(cls, gap: Duration) -> SessionRows:
        """Makes sessions of a gap.

        Raises:
            ValueError: The gap is rows, not above zero, or has a part smaller than a millisecond.
        """
        if isinstance(gap, RowCount):
            raise ValueError(
                f"gap: rows({gap.count}) counts rows, but a session ends when no row comes for "
                "some time; pass a duration such as '10 minutes'"
            )
        return cls(gap_ms=duration_ms(gap, "gap"))

    @property
    def timeout_ms(self) -> int:
        """The gap."""
        return self.gap_ms

    @property
    def look_around(self) -> LookAround:
        """Sessions are cut where no row comes for longer than the gap."""
        return LookAround(gap_ms=self.gap_ms)

    bounds = ("start",)


RowWindow = SlideRows | TumbleRows | SessionRows


def _required_name(argument: str, name: str) -> str:
    if not isinstance(name, str) or not name:
        raise ValueError(f"{argument}: {name!r} is not a name; pass text that is not empty")
    return name


def _bound_text(bound: RowBound) -> str:
    if bound.distance is None:
        return "UNBOUNDED_RANGE" if bound.unit is FrameUnit.RANGE else "UNBOUNDED_ROW"
    if bound.unit is FrameUnit.ROWS:
        return f"rows({bound.distance})"
    return repr(duration_text(bound.distance))
