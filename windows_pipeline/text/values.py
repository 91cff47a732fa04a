"""Values and texts of data: for people, who see a value alike everywhere, and as JSON."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from windows_pipeline.text.instants import time_text

_UNSHOWN = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
    r"\ud800-\udfff\ufffe\uffff"
)
"""Control characters, what reorders the text around it, and what UTF-8 or XML cannot hold."""
_IN_LINES = re.compile(f"[{_UNSHOWN}]")
_IN_A_LINE = re.compile(rf"[\t\n{_UNSHOWN}]")
_MOST_CHARACTERS = 200
_LARGEST = 1e15
"""A double above it is shown with a power of ten."""


def printable(text: str) -> str:
    """A text with control characters escaped as in Python; tabs and line ends stay."""
    return _IN_LINES.sub(_escaped, text)


def one_line(text: str) -> str:
    """A text of data in one line: control characters and line ends are escaped as in Python."""
    return _IN_A_LINE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return repr(found[0])[1:-1]


def cut(text: str, most: int = _MOST_CHARACTERS) -> str:
    """A text of at most some characters; a long one ends with an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def short(value: object) -> str:
    """A value for people as in `value_text`, cut where it is long."""
    return cut(value_text(value))


def value_text(value: object, thousands: str = ",") -> str:
    """A value for people, in one line.

    Of a double it has three decimals at most, or six digits if the double is below 1.

    Args:
        value: The value, as Python, Arrow or Spark have it.
        thousands: What separates thousands; nothing where people copy numbers from.
    """
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case float() if 1 <= abs(value) < _LARGEST:
            return f"{value:{thousands}.3f}".rstrip("0").rstrip(".")
        case float():
            return f"{value:.6g}"
        case int():
            return f"{value:{thousands}}"
        case Decimal():
            return f"{value:{thousands}f}"
        case datetime():
            return time_text(value)
        case list():
            return f"[{', '.join(value_text(of, thousands) for of in value)}]"
        case Mapping() | tuple():
            return one_line(key_text(value))
        case _:
            return one_line(str(value))


def key_text(key: object) -> str:
    """A key as commands take it: of several columns their values with commas, nothing for null.

    Args:
        key: The key; of several columns a mapping, or a tuple.
    """
    if isinstance(key, Mapping):
        return key_text(tuple(key.values()))
    parts = key if isinstance(key, tuple) else (key,)
    return ",".join("" if part is None else _part_text(part) for part in parts)


def _part_text(part: object) -> str:
    return time_text(part) if isinstance(part, datetime) else str(part)


def _named(number: float) -> str:
    """A number that JSON lacks, as JavaScript, Java and Python read it."""
    return "NaN" if math.isnan(number) else ("Infinity" if number > 0 else "-Infinity")


def as_json(value: object, not_finite: Callable[[float], str] = _named) -> Any:
    """A value as JSON has it: instants in UTC, decimals and bytes (in base 64) as texts.

    Args:
        value: The value; an instant without a zone is a time of this machine's zone.
        not_finite: Makes the text of a number that JSON lacks.
    """
    match value:
        case float() if not math.isfinite(value):
            return not_finite(value)
        case Decimal():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case datetime():
            text = value.astimezone(UTC).isoformat(timespec="milliseconds")
            return text.replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case list():
            return [as_json(of, not_finite) for of in value]
        case dict():
            return {name: as_json(of, not_finite) for name, of in value.items()}
        case _:
            return value
