"""A frame of a pipeline's file: how far it reaches before and after each row (rule F2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import BeforeValidator, field_serializer

from windows_pipeline.config.fields import looks, parsed_ms
from windows_pipeline.config.strict import Strict
from windows_pipeline.text.limits import require_short
from windows_pipeline.text.problems import Problem
from windows_pipeline.windows import SlideRows
from windows_pipeline.windows.durations import duration_text
from windows_pipeline.windows.frames.bounds import FrameUnit, RowBound
from windows_pipeline.windows.frames.texts import ROWS, UNBOUNDED, bound_of, frame_of

MOST_ROWS = 1_000_000_000
_LOOKS_PRECEDING = r"[0-9]|^\s*[uU][nN][bB][oO][uU][nN][dD][eE][dD](\s+[rR][oO][wW][sS])?\s*$"
_FORMS = "write a duration such as '10 minutes', or '5 rows'"


def distance(value: object) -> str:
    """Returns the canonical text of a distance: equal distances give equal texts."""
    if not isinstance(value, str):
        raise ValueError(f"has no unit; {_FORMS}")
    require_short(value)
    text = value.strip()
    counted = ROWS.fullmatch(text)
    if counted:
        number = int(counted[1])
        if abs(number) > MOST_ROWS:
            raise ValueError(f"is too many rows; write at most {MOST_ROWS} rows")
        return rows_text(number)
    return duration_text(parsed_ms(text, "; or '5 rows'"))


def rows_text(number: int) -> str:
    """Returns the canonical text of a number of rows."""
    return f"{number} row" if abs(number) == 1 else f"{number} rows"


def _unbounded(value: object) -> str | None:
    """Returns the canonical text of an open bound; None for any other value."""
    require_short(value)
    text = " ".join(value.lower().split()) if isinstance(value, str) else ""
    return text if text in UNBOUNDED else None


def _preceding(value: object) -> str:
    return _unbounded(value) or distance(value)


def _following(value: object) -> str:
    if _unbounded(value):
        raise ValueError(
            "must be bounded in a pipeline: with later records to come, no row would ever "
            "be final; write a duration or a number of rows"
        )
    return distance(value)


Preceding = Annotated[
    str,
    BeforeValidator(_preceding),
    looks("distance before the row", "5 rows", type="string", pattern=_LOOKS_PRECEDING),
]
Following = Annotated[
    str,
    BeforeValidator(_following),
    looks("distance after the row", "5 rows", type="string", pattern="[0-9]"),
]


class Frame(Strict):
    """A frame: the rows around each row (rule F2).

    Attributes:
        preceding: How far before the row the frame starts: a duration, 'N rows', 'unbounded'
            or 'unbounded rows'; a negative start is after the row and needs `following`. None for
            a start at the row (and its peers, where `following` is a duration).
        following: How far after the row the frame ends, in the same unit; None for an end at
            the row. One of both must be there.
    """

    preceding: Preceding | None = None
    following: Following | None = None

    @field_serializer("preceding", "following")
    def _bound_text(self, written: str | None) -> str:
        """The same text whether the file writes the default or leaves it out."""
        return self.at_row if written is None else written

    @property
    def at_row(self) -> str:
        """The bound at the row, in the unit of the other bound."""
        written = bound_of(self.preceding or self.following or "", "bound")
        return rows_text(0) if written.unit is FrameUnit.ROWS else duration_text(0)

    @property
    def window(self) -> SlideRows:
        """The row window."""
        return frame_of(self.preceding, self.following)

    @property
    def _start(self) -> RowBound:
        return bound_of(self.preceding or self.at_row, "preceding")

    @property
    def _end(self) -> RowBound:
        return bound_of(self.following or self.at_row, "following")

    def conflicts(self) -> Iterator[Problem]:
        """Yields what is wrong between the bounds."""
        if self.preceding is None and self.following is None:
            text = (
                "is missing, and so is following; write 'preceding: ...', how far before the row "
                "the frame starts, or 'following: ...', how far after it the frame ends, or both"
            )
            yield Problem(("preceding",), None, text)
            return
        if self._end.unit is not self._start.unit:
            text = (
                f"must have the unit of preceding: {self.preceding!r}; write both as durations or "
                "both as rows"
            )
            yield Problem(("following",), self.following, text)
            return
        try:
            SlideRows.preceding(self._start).following(self._end)
        except ValueError:
            field = "preceding" if self.following is None else "following"
            text = (
                "leaves the frame empty: it ends before it starts, and a bound that is left out is "
                "at the row; move the end after the start"
            )
            yield Problem((field,), getattr(self, field), text)
