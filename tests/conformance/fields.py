"""Reads fields of golden cases; an error names the wrong field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windows_pipeline.windows.arguments import MAX_INSTANT_MS


def whole_number(row: Mapping[str, Any], name: str) -> int:
    """Reads a field that must be an integer.

    Raises:
        KeyError: The field is missing.
        ValueError: The value is not an integer.
    """
    value = row[name]
    if type(value) is not int:
        raise ValueError(f"{name}: {value!r} is not a whole number; write an integer")
    return value


def instant_ms(row: Mapping[str, Any]) -> int:
    """Reads a record's timestamp, which must be in the engine's range.

    Raises:
        KeyError: The timestamp is missing.
        ValueError: The timestamp is not an integer, or is out of range.
    """
    timestamp = whole_number(row, "timestamp")
    if abs(timestamp) > MAX_INSTANT_MS:
        raise ValueError(
            f"timestamp: {timestamp} is out of range; use at most {MAX_INSTANT_MS} ms before or "
            "after 1970"
        )
    return timestamp
