"""Fields of golden cases: read so that a wrong one is named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windows_pipeline.windows.arguments import MAX_INSTANT_MS


def whole_number(row: Mapping[str, Any], name: str) -> int:
    """An integer.

    Raises:
        KeyError: There is no such field.
        ValueError: It is something else.
    """
    value = row[name]
    if type(value) is not int:
        raise ValueError(f"{name}: {value!r} is no whole number")
    return value


def instant_ms(row: Mapping[str, Any]) -> int:
    """A record's timestamp, which the engine can take.

    Raises:
        KeyError: There is none.
        ValueError: It is no integer, or out of range.
    """
    timestamp = whole_number(row, "timestamp")
    if abs(timestamp) > MAX_INSTANT_MS:
        raise ValueError(f"timestamp: {timestamp} is beyond {MAX_INSTANT_MS} ms around 1970")
    return timestamp
