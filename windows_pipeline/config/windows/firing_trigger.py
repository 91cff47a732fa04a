"""The `trigger` field of a pipeline's windows: when they fire before they close (rule E2)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import BeforeValidator, StrictBool, field_serializer
from pydantic_core import PydanticCustomError

from windows_pipeline.config.fields import DurationMs, looks, parsed_ms
from windows_pipeline.config.strict import Strict
from windows_pipeline.text.limits import require_short
from windows_pipeline.text.problems import Problem
from windows_pipeline.windows.durations import duration_text
from windows_pipeline.windows.firing.triggers import (
    DELAYS_FINAL,
    DISCARDS_FINAL,
    RECORDS,
    UPDATE,
    Trigger,
    trigger_of,
)

_MOST_RECORDS = 2**53
EMPTY = "empty"
"""The type of the error for a field that the file names without a value."""
_FORMS = "write a duration such as '15 minutes', or '10 records', or 'update' for every record"


def _early_every(value: object) -> str:
    """Returns the canonical text of an interval: equal intervals give equal texts."""
    if value is None:
        raise PydanticCustomError(EMPTY, f"is empty; {_FORMS}; or leave it out")
    if not isinstance(value, str):
        raise ValueError(f"has no unit; {_FORMS}")
    require_short(value)
    text = " ".join(value.lower().split())
    records = RECORDS.fullmatch(text)
    if records:
        number = int(records[1])
        if number == 0:
            raise ValueError("must be above zero; write at least '1 record'")
        if number > _MOST_RECORDS:
            raise ValueError(f"is more than a window can hold; write at most {_MOST_RECORDS}")
        return UPDATE if number == 1 else f"{number} records"
    if text == UPDATE:
        return text
    ms = parsed_ms(text, "; or '10 records', or 'update' for every record")
    if ms <= 0:
        raise ValueError("must be above zero; write at least '1 ms'")
    return duration_text(ms)


def not_empty(value: object) -> object:
    """Refuses a `trigger:` without lines under it, which is not the same as no trigger."""
    if value is None:
        text = (
            "is empty; write {} to let windows fire on time and late, {final: true} to let them "
            "fire as they close, or leave it out"
        )
        raise PydanticCustomError(EMPTY, text)
    return value


def _late(value: object) -> object:
    if value is None:
        raise PydanticCustomError(EMPTY, "is empty; write true or false, or leave it out")
    return value


class FiringTrigger(Strict):
    """When windows fire. Windows without a trigger have final results, and no table has firings.

    Attributes:
        early_every: How often a window fires before its end: each time that stream time passes
            a multiple of this duration, after every N of its records, or after each
            record ('update'); None for no early firings.
        late: Whether each record that comes after the window's end, within grace, fires it. None
            for `true`, or with `final` for `false`.
        panes: Whether a firing shows all records so far or those since the previous firing.
        out_of_orderness: How far the watermark that ends windows lags behind stream time, ms.
        final: Whether a window fires as it closes, with its final result: only then if neither
            `early_every` nor `late` is there, otherwise besides its early firings, that on time
            and the late ones.
    """

    early_every: Annotated[
        str | None,
        BeforeValidator(_early_every),
        looks("duration, number of records or update", "15 minutes", type="string"),
    ] = None
    late: Annotated[StrictBool | None, BeforeValidator(_late)] = None
    panes: Literal["accumulating", "discarding"] = "accumulating"
    out_of_orderness: DurationMs = 0
    final: StrictBool = False

    @property
    def final_only(self) -> bool:
        """Whether windows fire only as they close."""
        return self.final and self.early_every is None and self.late is None

    @property
    def spec(self) -> Trigger:
        """The library's trigger with these settings."""
        return trigger_of(
            self.early_every,
            late=self.late,
            panes=self.panes,
            out_of_orderness=timedelta(milliseconds=self.out_of_orderness),
            final=self.final,
        )

    def problems(self) -> Iterator[Problem]:
        """Yields conflicts between the fields."""
        if self.final and self.panes == "discarding":
            yield Problem(("panes",), self.panes, DISCARDS_FINAL)
        if self.final_only and self.out_of_orderness:
            text = duration_text(self.out_of_orderness)
            yield Problem(("out_of_orderness",), text, DELAYS_FINAL)

    @field_serializer("late")
    def _late_text(self, late: bool | None) -> bool | None:  # noqa: FBT001  pydantic passes it so
        """The same text whether the file writes the default or leaves it out."""
        return not self.final if late is None and not self.final_only else late

    @field_serializer("final")
    def _final_text(self, final: bool) -> bool | None:  # noqa: FBT001  pydantic passes it so
        """None for the default, which tables of earlier releases do not have."""
        return final or None
