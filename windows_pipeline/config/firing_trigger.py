"""When a pipeline's windows fire before they close, as its file says it (rule E2)."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, StrictBool
from pydantic_core import PydanticCustomError

from windows_pipeline.config.fields import DurationMs
from windows_pipeline.config.strict import Strict
from windows_pipeline.text.limits import require_short
from windows_pipeline.text.problems import without_value
from windows_pipeline.windows.durations import duration_ms, duration_text
from windows_pipeline.windows.triggers import Trigger

_RECORDS = re.compile(r"([0-9]+) records?")
_MOST_RECORDS = 2**53
_UPDATE = "update"
EMPTY = "empty"
"""The kind of the error of what is there and says nothing."""
_FORMS = "write a duration such as '15 minutes', or '10 records', or 'update' for every record"


def _early_every(value: object) -> str:
    """One text for each interval, however it is written."""
    if value is None:
        raise PydanticCustomError(EMPTY, f"is empty; {_FORMS}; or leave it out")
    if not isinstance(value, str):
        raise ValueError(f"has no unit; {_FORMS}")
    require_short(value)
    text = " ".join(value.lower().split())
    records = _RECORDS.fullmatch(text)
    if records:
        number = int(records[1])
        if number == 0:
            raise ValueError("must be above zero; write at least '1 record'")
        if number > _MOST_RECORDS:
            raise ValueError(f"is more than a window can hold; write at most {_MOST_RECORDS}")
        return _UPDATE if number == 1 else f"{number} records"
    if text == _UPDATE:
        return text
    try:
        ms = duration_ms(text, "early_every")
    except ValueError as error:
        reason = without_value(str(error), "early_every", text)
        raise ValueError(f"{reason}; or '10 records', or 'update' for every record") from None
    if ms <= 0:
        raise ValueError("must be above zero; write at least '1 ms'")
    return duration_text(ms)


def not_empty(value: object) -> object:
    """Refuses a trigger whose lines are missing: to leave it out says something else."""
    if value is None:
        told = "is empty; write {} to have windows fire on time and late, or leave it out"
        raise PydanticCustomError(EMPTY, told)
    return value


class FiringTrigger(Strict):
    """When windows fire; without one they do when they close, and no firings are kept.

    Attributes:
        early_every: Before its end a window fires each time that stream time passes a multiple
            of this duration, at every so many of its records, or at each ('update'); None for
            no early firings.
        late: Whether each record that comes after the end, within grace, fires its window.
        panes: Whether a firing shows all records so far or those since the firing before.
        out_of_orderness: How far behind stream time the clock runs that ends are judged by, ms.
    """

    early_every: Annotated[str | None, BeforeValidator(_early_every)] = None
    late: StrictBool = True
    panes: Literal["accumulating", "discarding"] = "accumulating"
    out_of_orderness: DurationMs = 0

    @property
    def spec(self) -> Trigger:
        """The trigger."""
        early = self.early_every
        records = _RECORDS.fullmatch("1 record" if early == _UPDATE else early or "")
        return Trigger(
            early_every_records=int(records[1]) if records else None,
            early_every_ms=None if early is None or records else duration_ms(early, "early_every"),
            late=self.late,
            discards=self.panes == "discarding",
            out_of_orderness_ms=self.out_of_orderness,
        )
