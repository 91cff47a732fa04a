"""Checks of the arguments of window specifications."""

from __future__ import annotations

from windows_pipeline.windows.durations import MAX_DURATION_MS, duration_text

MAX_INSTANT_MS = 2**61
"""The latest event time, so that adding a window's length never overflows 64 bits."""
MAX_ROWS = 2**53
"""The largest size of a window, so that adding it to a row's number never overflows 64 bits."""


def require_positive(name: str, ms: object) -> None:
    """Checks that a duration is an int of milliseconds above zero (rule B1)."""
    length_ms = _length(name, ms)
    if length_ms <= 0:
        raise ValueError(
            f"{name}: {duration_text(length_ms)!r} must be above zero; use '1 ms' or more"
        )


def require_not_negative(name: str, ms: object) -> None:
    """Checks that a duration is an int of milliseconds, zero or more (rule B1)."""
    length_ms = _length(name, ms)
    if length_ms < 0:
        raise ValueError(
            f"{name}: {duration_text(length_ms)!r} must not be negative; use '0 ms' or more"
        )


def require_positive_count(name: str, count: object) -> None:
    """Checks that a number of rows is an int above zero (rule F3)."""
    if type(count) is not int:
        raise ValueError(f"{name}: {count!r} is not a whole number of rows; use an int")
    if count <= 0:
        raise ValueError(f"{name}: {count} rows must be above zero; use 1 or more")
    if count > MAX_ROWS:
        raise ValueError(f"{name}: {count} rows are too many; use at most {MAX_ROWS}")


def require_instant_or_none(name: str, ms: object) -> None:
    """Checks that a value is None, or an instant."""
    if ms is not None:
        require_instant(name, ms)


def require_instant(name: str, ms: object) -> None:
    """Checks that an instant is an int of milliseconds within `MAX_INSTANT_MS` of 1970."""
    if abs(_whole(name, ms)) > MAX_INSTANT_MS:
        raise ValueError(
            f"{name}: {ms!r} ms is out of range; use at most {MAX_INSTANT_MS} ms before or after "
            "1970"
        )


def require_flag(name: str, value: object) -> None:
    """Checks that a value is True or False."""
    if type(value) is not bool:
        raise ValueError(f"{name}: must be True or False, not {value!r}")


def _length(name: str, ms: object) -> int:
    length_ms = _whole(name, ms)
    if length_ms > MAX_DURATION_MS:
        raise ValueError(f"{name}: {length_ms!r} ms is too long; use at most {MAX_DURATION_MS} ms")
    return length_ms


def _whole(name: str, ms: object) -> int:
    if type(ms) is not int:
        raise ValueError(f"{name}: {ms!r} is not a whole number of milliseconds; use an int")
    return ms
