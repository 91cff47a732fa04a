"""Formats instants for commands, pages and checks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_SECOND = 1_000


def time_text(ms: int) -> str:
    """An instant in UTC, with milliseconds only if they are not zero."""
    try:
        instant = _EPOCH + ms * _MS
    except OverflowError:
        return f"{ms} ms"
    precision = "milliseconds" if ms % _SECOND else "seconds"
    return instant.isoformat(" ", precision).removesuffix("+00:00")
