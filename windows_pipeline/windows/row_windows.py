"""FLIP-11's row windows: a result for each input row (rule F2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from windows_pipeline.windows.arguments import require_positive
from windows_pipeline.windows.durations import Duration, duration_ms, duration_text
from windows_pipeline.windows.row_bounds import Bound, FrameUnit, RowBound, row_bound
from windows_pipeline.windows.row_count import RowCount


@dataclass(frozen=True, slots=True, kw_only=True)
class _OnTime:
    """What all row windows have: a time and a name.

    Attributes:
        time_column: The column of the time, the event's or that of its ingest; None for the
            order of arrival alone.
        name: The window's alias.
    """

    time_column: str | None = None
    name: str | None = None

    def on(self, column: str) -> Self:
        """The same over a column of time: a timestamp, or a bigint of milliseconds.

        The event's time or, for windows by processing time, that of its ingest.

        Raises:
            ValueError: No name.
        """
        return replace(self, time_column=_named("on", column))

    def alias(self, name: str) -> Self:
        """The same under a name, which its results are asked for by.

        Raises:
            ValueError: No name.
        """
        return replace(self, name=_named("alias", name))

    @property
    def label(self) -> str:
        """How errors call it."""
        kind = type(self).__name__
        return kind if self.name is None else f"{kind} {self.name!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlideRows(_OnTime):
    """The rows around each row: SQL's OVER with ROWS or RANGE.

    `SlideRows.preceding("10 minutes").on("ts")` ends with the row and its peers;
    `.following(...)` sets another end. Both bounds belong to the frame. A negative bound lies
    on the other side of the row, so that the frame leaves the row out and may be empty. A frame
    that starts after the row therefore needs `.following(...)` before it is used.

    Attributes:
        unit: What the bounds are measured in.
        back: How far before the row the frame starts, in milliseconds or rows; None for no
            bound.
        ahead: How far after the row it ends, the same.
    """

    unit: FrameUnit
    back: int | None
    ahead: int | None = 0

    def __post_init__(self) -> None:
        """Checks the bounds, and that the frame starts no later than it ends."""
        for distance in (self.back, self.ahead):
            RowBound(self.unit, distance)
        # An end at the row may still be moved by `following`; `require_rows` checks it on use.
        if self.ahead != 0:
            self._require_start_before_end()

    @classmethod
    def preceding(cls, bound: Bound) -> SlideRows:
        """Makes frames that start so far before each row and end with it (and its peers).

        Args:
            bound: A duration, `rows(5)`, `UNBOUNDED_ROW`, `UNBOUNDED_RANGE`, `CURRENT_ROW` or
                `CURRENT_RANGE`. A negative one starts after the row: set an end after that
                with `following`.

        Raises:
            ValueError: No bound.
        """
        start = row_bound(bound, "preceding")
        return cls(unit=start.unit, back=start.distance)

    def following(self, bound: Bound) -> SlideRows:
        """The same frames with another end: so far after each row.

        Raises:
            ValueError: No bound, one of the other unit, or one before the start.
        """
        end = row_bound(bound, "following")
        if end.unit is not self.unit:
            start = RowBound(self.unit, self.back)
            raise ValueError(
                f"following: {_bound_text(end)} does not go with preceding: "
                f"{_bound_text(start)}; give both as times or both as rows"
            )
        frame = replace(self, ahead=end.distance)
        frame._require_start_before_end()  # noqa: SLF001  of the same class
        return frame

    def require_rows(self) -> None:
        """Refuses a frame that starts after the row and ends with the row, for want of an end.

        Raises:
            ValueError: The frame can hold no row.
        """
        if self.back is not None and self.back < 0 and self.ahead == 0:
            raise ValueError(
                f"preceding: {self._text(self.back)} starts the frame after the row, where the "
                "frame ends unless 'following' says otherwise, so it holds nothing; set an end "
                f"after the start, such as .following({self._text(-self.back)})"
            )

    @property
    def by_arrival(self) -> bool:
        """Whether rows stand in the order of arrival alone."""
        return self.time_column is None

    def _require_start_before_end(self) -> None:
        if self.back is not None and self.ahead is not None and -self.back > self.ahead:
            raise ValueError(
                f"following: the frame starts {self._text(-self.back)} after the row and ends "
                f"{self._text(self.ahead)} after it, so it holds nothing; let it start before "
                "its end"
            )

    def _text(self, distance: int) -> str:
        return _bound_text(RowBound(self.unit, distance))


@dataclass(frozen=True, slots=True, kw_only=True)
class TumbleRows(_OnTime):
    """The rows of each row's tumbling window up to and with it.

    `TumbleRows.over("10 minutes").on("ts")`: windows [start, start + size) that start at each
    multiple of the size, their rows in the order of time and arrival. `TumbleRows.over(rows(5))`:
    blocks of so many rows of a key in the order of arrival; with `on` only `first`, `last`
    and the like go by time.

    Attributes:
        unit: What the size is measured in.
        size: In milliseconds or rows.
    """

    unit: FrameUnit
    size: int

    def __post_init__(self) -> None:
        """Checks the size."""
        if self.unit is FrameUnit.RANGE:
            require_positive("size", self.size)
        elif RowCount(self.size).count <= 0:
            raise ValueError(f"size: rows({self.size}) must be above zero")

    @classmethod
    def over(cls, size: Duration | RowCount) -> TumbleRows:
        """Makes windows of a size.

        Raises:
            ValueError: A size not above zero, or with a part smaller than a millisecond.
        """
        if isinstance(size, RowCount):
            return cls(unit=FrameUnit.ROWS, size=size.count)
        return cls(unit=FrameUnit.RANGE, size=duration_ms(size, "size"))

    @property
    def by_arrival(self) -> bool:
        """Whether rows stand in the order of arrival alone."""
        return self.unit is FrameUnit.ROWS


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRows(_OnTime):
    """The rows of each row's session up to and with it, in the order of time and arrival.

    A session is a run of rows of a key, each at most a gap after the one before (rule D1).

    Attributes:
        gap_ms: The longest silence within a session.
    """

    gap_ms: int

    def __post_init__(self) -> None:
        """Checks the gap."""
        require_positive("gap", self.gap_ms)

    @classmethod
    def with_gap(cls, gap: Duration) -> SessionRows:
        """Makes sessions of a gap.

        Raises:
            ValueError: A gap not above zero, of rows, or with a part smaller than a millisecond.
        """
        if isinstance(gap, RowCount):
            raise ValueError(
                f"gap: rows({gap.count}) counts rows, but a session ends after a time of "
                "silence; give a duration such as '10 minutes'"
            )
        return cls(gap_ms=duration_ms(gap, "gap"))

    @property
    def by_arrival(self) -> bool:
        """Whether rows stand in the order of arrival alone: never."""
        return False


RowWindow = SlideRows | TumbleRows | SessionRows


def _named(argument: str, name: str) -> str:
    if not isinstance(name, str) or not name:
        raise ValueError(f"{argument}: {name!r} is no name; pass some text")
    return name


def _bound_text(bound: RowBound) -> str:
    if bound.distance is None:
        return "UNBOUNDED_RANGE" if bound.unit is FrameUnit.RANGE else "UNBOUNDED_ROW"
    if bound.unit is FrameUnit.ROWS:
        return f"rows({bound.distance})"
    return repr(duration_text(bound.distance))
