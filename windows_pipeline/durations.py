"""Durations, in whole milliseconds: the unit of every event time in the engine."""

from __future__ import annotations

import re
from datetime import timedelta

_MS_PER_UNIT = {
    "millisecond": 1,
    "ms": 1,
    "second": 1_000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
}
_PART = re.compile(r"([0-9]{1,18})\s*([a-z]+)\s*", re.IGNORECASE | re.ASCII)
MAX_DURATION_MS = 2**53
"""Above this a duration plus any real event time could overflow; 285,000 years."""

Duration = timedelta | str


def duration_ms(value: Duration, name: str) -> int:
    """Reads a duration as whole milliseconds.

    Args:
        value: A timedelta, or text such as ``'10 minutes'`` or ``'1 hour 30 minutes'``
            (milliseconds/ms, seconds, minutes, hours, days, weeks); a sign in front goes
            for the whole of it.
        name: The argument's name, for the error.

    Raises:
        ValueError: The text is no duration, or has a part smaller than a millisecond
            (rule B1); the message names the argument and the value.
    """
    ms = _timedelta_ms(value, name) if isinstance(value, timedelta) else _text_ms(value, name)
    if abs(ms) > MAX_DURATION_MS:
        raise ValueError(f"{name}: {value!r} is too long; at most {MAX_DURATION_MS} ms")
    return ms


def _timedelta_ms(value: timedelta, name: str) -> int:
    microseconds = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
    ms, rest = divmod(microseconds, 1_000)
    if rest:
        raise ValueError(f"{name}: {value!r} has a part smaller than a millisecond; use whole ones")
    return ms


def _text_ms(value: object, name: str) -> int:
    text = value.strip() if isinstance(value, str) else ""
    sign = -1 if text.startswith("-") else 1
    text = text.removeprefix("-" if sign < 0 else "+").lstrip()
    if not text or _PART.sub("", text):
        cure = "write a number and a unit, such as '10 minutes' or '1 hour 30 minutes'"
        raise ValueError(f"{name}: {value!r} is no duration; {cure}")
    parts = _PART.findall(text)
    return sign * sum(int(number) * _unit_ms(unit, value, name) for number, unit in parts)


def _unit_ms(unit: str, value: object, name: str) -> int:
    singular = unit.lower().removesuffix("s") if len(unit) > 3 else unit.lower()
    if singular not in _MS_PER_UNIT:
        units = "milliseconds, seconds, minutes, hours, days, weeks"
        raise ValueError(f"{name}: {value!r} has an unknown unit {unit!r}; use {units}")
    return _MS_PER_UNIT[singular]


def duration_text(ms: int) -> str:
    """Writes milliseconds as `duration_ms` reads them: ``'1 hour 30 minutes'``."""
    if ms == 0:
        return "0 seconds"
    parts, rest = [], abs(ms)
    for unit in ("day", "hour", "minute", "second", "millisecond"):
        number, rest = divmod(rest, _MS_PER_UNIT[unit])
        if number:
            parts.append(f"{number} {unit}{'s' if number > 1 else ''}")
    text = " ".join(parts)
    return f"-{text}" if ms < 0 else text
