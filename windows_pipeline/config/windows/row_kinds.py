"""The models of kinds of window with one result for each row: row and count windows (rule F5)."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, StrictBool, field_serializer

from windows_pipeline.config.fields import Identifier, PositiveDurationMs, looks
from windows_pipeline.config.source import Source
from windows_pipeline.config.windows.row_frames import (
    MOST_ROWS,
    Following,
    Frame,
    Preceding,
    distance,
    rows_text,
)
from windows_pipeline.config.windows.window_kinds import Windows
from windows_pipeline.text.limits import require_short
from windows_pipeline.text.problems import Problem
from windows_pipeline.windows import (
    ROW_KEY,
    CountWindows,
    GracedRows,
    SessionRows,
    SeveralRows,
    TumbleRows,
)
from windows_pipeline.windows.frames.texts import ROWS, bound_of, distance_of

_ROW_COUNT = re.compile(r"([+-]?[0-9]+)(\s*rows?)?", re.IGNORECASE)
_COUNTED = {"type": "string", "pattern": "^\\s*\\+?[0-9]"}


def _size(value: object) -> str:
    number = _row_count(value)
    text = distance(value if number is None else rows_text(number))
    if bound_of(text, "size").distance in (None, 0) or text.startswith("-"):
        raise ValueError("must be above zero; write at least '1 ms' or '1 row'")
    return text


def _gap(value: object) -> object:
    require_short(value)
    if isinstance(value, str) and ROWS.fullmatch(value.strip()):
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
    if number is not None and 0 < number <= MOST_ROWS:
        return number
    raise ValueError(
        f"is not a number of records; write a whole number from 1 to {MOST_ROWS}, as 5 or '5 rows'"
    )


_Records = Annotated[
    int,
    BeforeValidator(_records),
    looks("number of records", 5, anyOf=[_COUNTED, {"type": "integer", "minimum": 1}]),
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
        """Yields conflicts between the fields of this kind, or with the source."""
        if self.partial_results:
            text = (
                "must be false or left out for windows of rows: every record would add a version "
                "of each row near it; tables hold a row once, when it is final"
            )
            yield Problem(("partial_results",), "true", text)
        if self.trigger is not None and not self.trigger.final_only:
            text = (
                "windows have one result for each row, the final one, and cannot fire earlier; "
                "write 'trigger: {final: true}', or use kind: hopping or tumbling"
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
                "needs one order of arrival, which several source partitions do not have; "
                f"{source.one_order}, or use rows by time"
            )
            yield Problem(("kind",), self.kind, text)

    @property
    @abstractmethod
    def spec(self) -> GracedRows:
        """The window specification."""

    def _conflicts(self) -> Iterator[Problem]:
        """Yields conflicts between the fields of this kind."""
        yield from ()


class SlideRowsKind(RowKind):
    """The rows around each row (rule F2).

    Attributes:
        preceding: How far before the row the frame starts: a duration, 'N rows', 'unbounded'
            or 'unbounded rows'; a negative start is after the row and needs `following`. None for
            a start at the row (and its peers, where `following` is a duration).
        following: How far after the row the frame ends, in the same unit; None for an end at
            the row. One of both must be there.
        frames: Several frames by name, instead of `preceding` and `following`; each aggregate
            names its frame, as in ``avg(amount) over hour``. None for a single frame.
    """

    kind: Literal["slide_rows"]
    preceding: Preceding | None = None
    following: Following | None = None
    frames: dict[Identifier, Frame] | None = None

    @property
    def spec(self) -> GracedRows:
        """The window specification."""
        if self.frames is None:
            return GracedRows(self._frame.window, self.grace)
        named = tuple((name, frame.window) for name, frame in self.frames.items())
        return GracedRows(SeveralRows(named), self.grace)

    @property
    def frame_names(self) -> tuple[str, ...]:
        """The names of the frames that aggregates choose from."""
        return tuple(self.frames or ())

    @field_serializer("preceding", "following")
    def _bound_text(self, written: str | None) -> str | None:
        """The same text whether the file writes the default or leaves it out."""
        return self._frame.at_row if written is None and self.frames is None else written

    @property
    def _frame(self) -> Frame:
        return Frame.model_construct(preceding=self.preceding, following=self.following)

    def _conflicts(self) -> Iterator[Problem]:
        if self.frames is None:
            yield from self._frame.conflicts()
            return
        if not self.frames:
            text = "names no frame; write one, as in 'frames: {hour: {preceding: 1 hour}}'"
            yield Problem(("frames",), None, text)
        for field, written in (("preceding", self.preceding), ("following", self.following)):
            if written is not None:
                text = "is of a single frame, and 'frames' names several; move it into one of them"
                yield Problem((field,), written, text)
        for name, frame in self.frames.items():
            for problem in frame.conflicts():
                yield Problem(("frames", name, *problem.path), problem.value, problem.text)


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
        return GracedRows(TumbleRows.over(distance_of(self.size, "size")), self.grace)


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

    examples: ClassVar[Mapping[str, str]] = {"size": "5 rows"}

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
