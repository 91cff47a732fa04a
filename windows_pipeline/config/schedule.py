"""When Dagster runs a pipeline by itself."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, StrictBool

from windows_pipeline.config.fields import PositiveDurationMs, Zone, looks
from windows_pipeline.config.strict import Strict
from windows_pipeline.text.limits import require_short

_RANGES = {
    "minute": (0, 59),
    "hour": (0, 23),
    "day of the month": (1, 31),
    "month": (1, 12),
    "day of the week": (0, 6),
}
_PART = re.compile(r"(?:\*|(?P<first>\d{1,2})(?:-(?P<last>\d{1,2}))?)(?:/(?P<step>[1-9]\d?))?")
_FIX = "write minute, hour, day of the month, month and day of the week, as in '30 0 * * *'"


def _cron(value: str) -> str:
    require_short(value)
    fields = value.split()
    if len(fields) != len(_RANGES):
        raise ValueError(f"must have five fields, not {len(fields)}; {_FIX}")
    for text, (name, (least, most)) in zip(fields, _RANGES.items(), strict=True):
        if not all(_is_part(part, least, most) for part in text.split(",")):
            raise ValueError(
                f"has {text!r} as {name}, which must be '*', numbers from {least} to {most} or "
                f"ranges of them; {_FIX}"
            )
    return " ".join(fields)


def _is_part(text: str, least: int, most: int) -> bool:
    found = _PART.fullmatch(text)
    if found is None:
        return False
    first = int(found["first"] or least)
    last = int(found["last"] or first)
    return least <= first <= last <= most


Cron = Annotated[str, AfterValidator(_cron), looks("cron", "30 0 * * *", type="string")]
"""Five fields that say in which minutes something happens."""


class OnLanding(Strict):
    """When a landed day is complete, so that Dagster runs it without waiting for a time of day.

    Attributes:
        quiet: How long a day's folder must be unchanged until the day is complete, ms; None for
            days that only a file `_SUCCESS` completes. Such a file completes a day at once.
        enabled: Whether the sensor runs as soon as it is loaded; otherwise it must be started in
            the UI.
    """

    quiet: PositiveDurationMs | None = None
    enabled: StrictBool = False


class Automation(Strict):
    """Whether Dagster computes what ingested days lack, by the automation conditions of the tables.

    Attributes:
        enabled: Whether the sensor runs as soon as it is loaded; otherwise it must be started in
            the UI.
    """

    enabled: StrictBool = False


class Schedule(Strict):
    """When Dagster runs a pipeline by itself.

    Attributes:
        cron: Minute, hour, day of the month, month and day of the week; None for each night, or
            every ten minutes for a stream.
        zone: The time zone in which `cron` is meant.
        enabled: Whether the schedule runs as soon as it is loaded; otherwise it must be started in
            the UI.
        on_landing: When the sensor runs a landed day; a stream has no such field.
        automation: Whether Dagster's automation conditions request the windows of days that are
            ingested and not computed; a stream has no such field.
    """

    cron: Cron | None = None
    zone: Zone = "UTC"
    enabled: StrictBool = False
    on_landing: OnLanding = OnLanding()
    automation: Automation = Automation()
