"""Checks of a specification's arguments, all alike in what they say."""

from __future__ import annotations

from windows_pipeline.windows.durations import MAX_DURATION_MS, duration_text

MAX_INSTANT_MS = 2**61
"""Beyond it an event time and a window's length could overflow 64 bits."""
MAX_ROWS = 2**53
"""Beyond it a row's number and a window's size could overflow 64 bits."""


def require_positive(name: str, ms: object) -> None:
    """Refuses what is no whole number of milliseconds above zero (rule B1)."""
    length_ms = _length(name, ms)
    if length_ms <= 0:
        raise ValueError(
            f"{name}: {duration_text(length_ms)!r} must be above zero; take '1 ms' or more"
        )


def require_not_negative(name: str, ms: object) -> None:
    """Refuses what is no whole number of milliseconds from zero on (rule B1)."""
    length_ms = _length(name, ms)
    if length_ms < 0:
        raise ValueError(
            f"{name}: {duration_text(length_ms)!r} must not be negative; take '0 ms' or more"
        )


def require_positive_count(name: str, count: object) -> None:
    """Refuses what is no whole number of rows above zero (rule F3)."""
    if type(count) is not int:
        raise ValueError(f"{name}: {count!r} is no whole number of rows; use an int")
    if count <= 0:
        raise ValueError(f"{name}: {count} rows must be above zero")
    if count > MAX_ROWS:
        raise ValueError(f"{name}: {count} rows are too many; at most {MAX_ROWS}")


def require_instant_or_none(name: str, ms: object) -> None:
    """Refuses what is neither None nor a whole number of milliseconds that can be a time."""
    if ms is not None:
        require_instant(name, ms)


def require_instant(name: str, ms: object) -> None:
    """Refuses what is no whole number of milliseconds that can be a time."""
    if abs(_whole(name, ms)) > MAX_INSTANT_MS:
        raise ValueError(f"{name}: {ms!r} ms is out of range; at most {MAX_INSTANT_MS} ms")


def require_flag(name: str, value: object) -> None:
    """Refuses what is neither True nor False."""
    if type(value) is not bool:
        raise ValueError(f"{name}: {value!r} is neither True nor False")


def _length(name: str, ms: object) -> int:
    length_ms = _whole(name, ms)
    if length_ms > MAX_DURATION_MS:
        raise ValueError(f"{name}: {length_ms!r} ms is too long; at most {MAX_DURATION_MS} ms")
    return length_ms


def _whole(name: str, ms: object) -> int:
    if type(ms) is not int:
        raise ValueError(f"{name}: {ms!r} is no whole number of milliseconds; use an int")
    return ms
