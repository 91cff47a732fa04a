"""Parses and writes durations, in whole milliseconds like every event time in the engine."""

from __future__ import annotations

import re
from datetime import timedelta

from windows_pipeline.text.limits import require_short

_UNITS_MS = {
    "ms msec millisecond milliseconds": 1,
    "s sec secs second seconds": 1_000,
    "min mins minute minutes": 60_000,
    "h hr hrs hour hours": 3_600_000,
    "d day days": 86_400_000,
    "w week weeks": 604_800_000,
}
_SHORT = {"day": "d", "hour": "h", "minute": "min", "second": "s", "millisecond": "ms"}
_UNIT = re.compile(r"([a-z]+?)s?\b")
_MS_PER_UNIT = {name: ms for names, ms in _UNITS_MS.items() for name in names.split()}
_UNITS = "ms, s, min, h, d, w, or milliseconds, seconds, minutes, hours, days, weeks"
_FINER = re.compile(r"us|[µμ]s|usec|microseconds?|ns|nsec|nanoseconds?")
_NUMBER = re.compile(r"[0-9]+([.,][0-9]+)?|[.,][0-9]+")
_FRACTION = re.compile(r"[.,][0-9]")
_PART = re.compile(r"([0-9]+)\s*([a-zµμ]+)\s*", re.IGNORECASE | re.ASCII)
_MOST_DIGITS = 18
MAX_DURATION_MS = 2**53
"""The longest duration, 285,000 years: adding it to an event time never overflows 64 bits."""

Duration = timedelta | str


def duration_ms(value: Duration, name: str) -> int:
    """Converts a duration to whole milliseconds.

    Args:
        value: A timedelta, or text: whole numbers, each with a unit, such as '10 minutes',
            '10min' or '1 hour 30 minutes', each unit once. A sign in front applies to the whole
            duration. Units, in upper or lower case: ms (msec, millisecond), s (sec, second), min
            (minute), h (hr, hour), d (day), w (week), and their plurals.
        name: The argument's name, for the error.

    Raises:
        ValueError: The text is not a duration, is longer than 2,000 characters or has a unit
            twice (rather a mistake than a sum), or the duration is above 2**53 ms or has a part
            smaller than a millisecond (rule B1); the message has the argument, the value and
            the fix.
    """
    ms = _timedelta_ms(value, name) if isinstance(value, timedelta) else _text_ms(value, name)
    if abs(ms) > MAX_DURATION_MS:
        raise _too_long(value, name)
    return ms


def _timedelta_ms(value: timedelta, name: str) -> int:
    ms, rest = divmod(value, timedelta(milliseconds=1))
    if rest:
        raise ValueError(
            f"{name}: {value!r} has a part smaller than a millisecond; use whole milliseconds"
        )
    return ms


def _text_ms(value: object, name: str) -> int:
    require_short(value, name)
    text = value.strip() if isinstance(value, str) else ""
    sign = -1 if text.startswith("-") else 1
    text = text.removeprefix("-" if sign < 0 else "+").lstrip()
    parts = _parts(text)
    if not parts:
        raise ValueError(f"{name}: {value!r} {_problem(value)}")
    ms = sign * sum(_part_ms(number, unit, value, name) for number, unit in parts)
    seen: set[int] = set()
    for _, unit in parts:
        if _MS_PER_UNIT[unit.lower()] in seen:
            fix = f"write each unit once, such as {duration_text(ms)!r} if you mean the sum"
            raise ValueError(f"{name}: {value!r} has the unit of {unit!r} twice; {fix}")
        seen.add(_MS_PER_UNIT[unit.lower()])
    return ms


def _parts(text: str) -> list[tuple[str, str]]:
    """Returns each number with its unit; nothing if the text contains anything else."""
    parts, position = [], 0
    while position < len(text):
        found = _PART.match(text, position)
        if found is None:
            return []
        parts.append((found[1], found[2]))
        position = found.end()
    return parts


def _problem(value: object) -> str:
    """Says what is wrong with a value that cannot be read, and the fix."""
    text = str(value).strip().lstrip("+-")
    if _NUMBER.fullmatch(text):
        return f"has no unit; write a unit, as in '10 ms' or '10 minutes' ({_UNITS})"
    if _FRACTION.search(text):
        return "has a number that is not whole; use a smaller unit, as in '1 second 500 ms'"
    fix = "write a number and a unit, such as '10 minutes' or '1 hour 30 minutes'"
    return f"is not a duration; {fix}"


def _part_ms(number: str, unit: str, value: object, name: str) -> int:
    if _FINER.fullmatch(unit.lower()):
        raise ValueError(
            f"{name}: {value!r} has a unit smaller than a millisecond, {unit!r}; use whole "
            "milliseconds, such as '1 ms'"
        )
    ms = _MS_PER_UNIT.get(unit.lower())
    if ms is None:
        raise ValueError(f"{name}: {value!r} has an unknown unit {unit!r}; use {_UNITS}")
    if len(number) > _MOST_DIGITS:  # Python's int() refuses thousands of digits
        raise _too_long(value, name)
    return int(number) * ms


def _too_long(value: object, name: str) -> ValueError:
    return ValueError(
        f"{name}: {value!r} is too long; use at most {MAX_DURATION_MS} ms, 285,000 years"
    )


def length_text(ms: int) -> str:
    """How long something lasted, as `3 h 49 min`; rounded, as a silence begins 1 ms late."""
    day, hour, minute = (_MS_PER_UNIT[unit] for unit in ("day", "hour", "minute"))
    steps = ((7 * day, hour), (day, minute), (minute, 1_000))
    step = next((step for least, step in steps if abs(ms) >= least), 1)
    text = duration_text((ms + step // 2) // step * step)
    return _UNIT.sub(lambda found: _SHORT[found[1]], text)


def duration_text(ms: int) -> str:
    """Converts milliseconds to text that `duration_ms` reads back: ``'1 hour 30 minutes'``."""
    if ms == 0:
        return "0 seconds"
    parts, rest = [], abs(ms)
    for unit in ("day", "hour", "minute", "second", "millisecond"):
        number, rest = divmod(rest, _MS_PER_UNIT[unit])
        if number:
            parts.append(f"{number} {unit}{'s' if number > 1 else ''}")
    text = " ".join(parts)
    return f"-{text}" if ms < 0 else text
