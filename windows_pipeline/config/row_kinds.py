"""The models of kinds of window with one result for each row: row and count windows (rule F5)."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BeforeValidator, StrictBool, field_serializer

from windows_pipeline.config.fields import PositiveDurationMs, looks
from windows_pipeline.config.source import Source
from windows_pipeline.config.window_kinds import Windows
from windows_pipeline.text.limits import require_short
from windows_pipeline.text.problems import Problem, without_value
from windows_pipeline.windows import (
    ROW_KEY,
    UNBOUNDED_RANGE,
    UNBOUNDED_ROW,
    CountWindows,
    GracedRows,
    SessionRows,
    SlideRows,
    TumbleRows,
    rows,
)
from windows_pipeline.windows.durations import duration_ms, duration_text
from windows_pipeline.windows.frames.bounds import FrameUnit, RowBound, row_bound

_ROWS = re.compile(r"([+-]?[0-9]+)\s*rows?", re.IGNORECASE)
_ROW_COUNT = re.compile(r"([+-]?[0-9]+)(\s*rows?)?", re.IGNORECASE)
_MOST_ROWS = 1_000_000_000
_UNBOUNDED = {"unbounded": UNBOUNDED_RANGE, "unbounded rows": UNBOUNDED_ROW}
_COUNTED = {"type": "string", "pattern": "^\\s*\\+?[0-9]"}
_FORMS = "write a duration such as '10 minutes', or '5 rows'"


def _distance(value: object) -> str:
    """Returns the canonical text of a distance: equal distances give equal texts."""
    if not isinstance(value, str):
        raise ValueError(f"has no unit; {_FORMS}")
    require_short(value)
    text = value.strip()
    counted = _ROWS.fullmatch(text)
    if counted:
        number = int(counted[1])
        if abs(number) > _MOST_ROWS:
            raise ValueError(f"is too many rows; write at most {_MOST_ROWS} rows")
        return _rows_text(number)
    try:
        return duration_text(duration_ms(text, ""))
    except ValueError as error:
        raise ValueError(f"{without_value(str(error), '', text)}; or '5 rows'") from None


def _rows_text(number: int) -> str:
    return f"{number} row" if abs(number) == 1 else f"{number} rows"


def _positive(bound: str | None) -> str:
    """A negative distance without its sign."""
    return (bound or "").removeprefix("-")


def _unbounded(value: object) -> str | None:
    """Returns the canonical text of an open bound; None for any other value."""
    require_short(value)
    text = " ".join(value.lower().split()) if isinstance(value, str) else ""
    return text if text in _UNBOUNDED else None


def _preceding(value: object) -> str:
    return _unbounded(value) or _distance(value)


def _following(value: object) -> str:
    if _unbounded(value):
        raise ValueError(
            "must be bounded in a pipeline: with later records to come, no row would ever "
            "be final; write a duration or a number of rows"
        )
    return _distance(value)


def _size(value: object) -> str:
    number = _row_count(value)
    text = _distance(value if number is None else _rows_text(number))
    if _bound(text).distance in (None, 0) or text.startswith("-"):
        raise ValueError("must be above zero; write at least '1 ms' or '1 row'")
    return text


def _gap(value: object) -> object:
    require_short(value)
    if isinstance(value, str) and _ROWS.fullmatch(value.strip()):
        raise ValueError(
            "counts rows, but a session ends when no record comes for some time; write a duration"
        )
    return value


def _row_count(value: object) -> int | None:
    """Returns the number of rows in '3', '3 rows' or 3; None for any other value."""
    if type(value) is int:
        return value
    require_short(value)
    found = _ROW_COUNT.fullmatch(value.strip()) if isinstance(value, str) else None
    return None if found is None else int(found[1])


def _records(value: object) -> int:
    number = _row_count(value)
    if number is not None and 0 < number <= _MOST_ROWS:
        return number
    raise ValueError(
        f"is not a number of records; write a whole number from 1 to {_MOST_ROWS}, as 5 or '5 rows'"
    )


def _bound(text: str) -> RowBound:
    """Reads a canonical text of `_distance` or `_preceding`."""
    if text in _UNBOUNDED:
        return _UNBOUNDED[text]
    counted = _ROWS.fullmatch(text)
    return row_bound(rows(int(counted[1])) if counted else text, "bound")


_Records = Annotated[
    int,
    BeforeValidator(_records),
    looks("number of records", 5, anyOf=[_COUNTED, {"type": "integer", "minimum": 1}]),
]
_Preceding = Annotated[
    str, BeforeValidator(_preceding), looks("distance before the row", "5 rows", type="string")
]
_Following = Annotated[
    str, BeforeValidator(_following), looks("distance after the row", "5 rows", type="string")
]
_Size = Annotated[
    str,
    BeforeValidator(_size),
    looks("duration or number of rows", "5 rows", type=["string", "integer"]),
]


class RowKind(Windows):
    """Windows that have one result for each row; tables hold final results only (rule F5)."""

    partial_results: StrictBool = False

    @property
    def row_key(self) -> tuple[str, ...]:
        """The columns that identify a row."""
        return ROW_KEY

    def problems(self, source: Source) -> Iterator[Problem]:
        """Yields what is wrong between the fields of this kind, or with its source."""
        if self.partial_results:
            text = (
                "must be false or left out for windows of rows: every record would add a version "
                "of each row near it; tables hold a row once, when it is final"
            )
            yield Problem(("partial_results",), "true", text)
        if self.trigger is not None:
            text = (
                "windows have one result for each row, the final one, and cannot fire earlier; "
                "leave trigger out, or use kind: hopping or tumbling"
            )
            yield Problem(("trigger",), self.kind, text)
        for name in self.aggregates:
            if name in ROW_KEY:
                text = (
                    f"is the name of a column that identifies a row ({', '.join(ROW_KEY)}); "
                    "rename it"
                )
                yield Problem(("aggregates", name), name, text)
        conflicts = list(self._conflicts())
        yield from conflicts
        if not conflicts and self.spec.by_arrival and source.has_several_partitions:
            text = (
                "needs one order of arrival, which several source partitions do not have; leave "
                "source_partition out, or use rows by time"
            )
            yield Problem(("kind",), self.kind, text)

    @property
    @abstractmethod
    def spec(self) -> GracedRows:
        """The window specification."""

    def _conflicts(self) -> Iterator[Problem]:
        """Yields what is wrong between the fields of this kind."""
        yield from ()


class SlideRowsKind(RowKind):
    """The rows around each row (rule F2).

    Attributes:
        preceding: How far before the row the frame starts: a duration, 'N rows', 'unbounded'
            or 'unbounded rows'; a negative start is after the row and needs `following`. None for
            a start at the row (and its peers, where `following` is a duration).
        following: How far after the row the frame ends, in the same unit; None for an end at
            the row. One of both must be there.
    """

    kind: Literal["slide_rows"]
    preceding: _Preceding | None = None
    following: _Following | None = None

    @property
    def spec(self) -> GracedRows:
        """The window specification."""
        return GracedRows(self._frames, self.grace)

    @field_serializer("preceding", "following")
    def _bound_text(self, written: str | None) -> str:
        """The same text whether the file writes the default or leaves it out."""
        return self._at_row if written is None else written

    @property
    def _at_row(self) -> str:
        """The bound at the row, in the unit of the other bound."""
        written = _bound(self.preceding or self.following or "")
        return _rows_text(0) if written.unit is FrameUnit.ROWS else duration_text(0)

    @property
    def _frames(self) -> SlideRows:
        from_start = SlideRows.preceding(self._start)
        return from_start if self.following is None else from_start.following(self._end)

    @property
    def _start(self) -> RowBound:
        return _bound(self.preceding or self._at_row)

    @property
    def _end(self) -> RowBound:
        return _bound(self.following or self._at_row)

    def _conflicts(self) -> Iterator[Problem]:
        if self.preceding is None and self.following is None:
            text = (
                "is missing, and so is following; write 'preceding: ...', how far before the row "
                "the frame starts, or 'following: ...', how far after it the frame ends, or both"
            )
            yield Problem(("preceding",), None, text)
            return
        if self.preceding is None:
            if self._end.distance is not None and self._end.distance < 0:
                text = (
                    "ends the frame before the row, but without 'preceding' the frame starts at "
                    f"the row, so it is empty; add 'preceding: {_positive(self.following)}' or "
                    "more, or leave the sign out"
                )
                yield Problem(("following",), self.following, text)
            return
        if self.following is None:
            start = self._start
            if start.distance is not None and start.distance < 0:
                text = (
                    "starts the frame after the row, but without 'following' the frame ends at "
                    "the row, so it is empty; add 'following: "
                    f"{_positive(self.preceding)}' or more, or leave the sign out"
                )
                yield Problem(("preceding",), self.preceding, text)
            return
        if self._end.unit is not self._start.unit:
            text = (
                f"must have the unit of preceding: {self.preceding!r}; write both as durations or "
                "both as rows"
            )
            yield Problem(("following",), self.following, text)
            return
        try:
            _ = self._frames
        except ValueError:
            text = (
                f"ends the frame before it starts (preceding: {self.preceding!r}), so it is "
                "empty; move the end after the start"
            )
            yield Problem(("following",), self.following, text)


class TumbleRowsKind(RowKind):
    """The rows of each row's tumbling window, or block of N rows, up to the row (rule F2).

    Attributes:
        size: A duration, 'N rows' or N.
    """

    kind: Literal["tumble_rows"]
    size: _Size

    @property
    def spec(self) -> GracedRows:
        """The window specification."""
        size = _bound(self.size)
        assert size.distance is not None  # noqa: S101  `_size` refuses 'unbounded'
        return GracedRows(TumbleRows(unit=size.unit, size=size.distance), self.grace)


class SessionRowsKind(RowKind):
    """The rows of each row's session up to the row (rule F2).

    Attributes:
        gap: The longest time between two consecutive rows of a session, ms.
    """

    kind: Literal["session_rows"]
    gap: Annotated[PositiveDurationMs, BeforeValidator(_gap)]

    @property
    def spec(self) -> GracedRows:
        """The window specification."""
        return GracedRows(SessionRows(gap_ms=self.gap), self.grace)


class CountKind(RowKind):
    """Windows of N records of a key, in the order of arrival (rule F1).

    Attributes:
        size: How many records a window holds: N or 'N rows'.
        advance: How many records after a window the next one starts; None for the size.
        short_first: Whether a window ends at every `advance`-th record, so that the first
            windows may hold fewer than `size` records; otherwise every window is full.
    """

    kind: Literal["count"]
    size: _Records
    advance: _Records | None = None
    short_first: StrictBool = False

    @property
    def spec(self) -> GracedRows:
        """The window specification."""
        windows = CountWindows(self.size, self.advance or self.size, self.short_first)
        return GracedRows(windows, self.grace)

    @field_serializer("advance")
    def _advance_between(self, written: int | None) -> int:
        """The same number whether the file writes the default or leaves it out."""
        return written or self.size

    def _conflicts(self) -> Iterator[Problem]:
        if self.advance is not None and self.advance > self.size:
            text = (
                f"must be at most the size, {self.size}: records between two windows would be in "
                "no window and in no table; write the size, or less"
            )
            yield Problem(("advance",), str(self.advance), text)


ROW_KINDS: dict[str, type[RowKind]] = {
    "slide_rows": SlideRowsKind,
    "tumble_rows": TumbleRowsKind,
    "session_rows": SessionRowsKind,
    "count": CountKind,
}
