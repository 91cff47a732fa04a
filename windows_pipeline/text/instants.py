"""Instants: counted in milliseconds since 1970, and as texts for commands, pages and checks."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_DAY = EPOCH.date()
_MS = timedelta(milliseconds=1)


def day_number(day: date) -> int:
    """The number of a day: days since 1970-01-01."""
    return (day - EPOCH_DAY).days


def epoch_ms(instant: datetime) -> int:
    """Converts an instant with a zone to milliseconds since 1970 in UTC, rounded down."""
    return (instant - EPOCH) // _MS


def instant_of(ms: int) -> datetime:
    """Converts milliseconds since 1970 to an instant in UTC.

    Raises:
        OverflowError: It lies outside of the years 1 to 9999.
    """
    return EPOCH + ms * _MS


def time_text(at: datetime | int, zone: tzinfo = UTC) -> str:
    """An instant in UTC, with milliseconds or microseconds only if they are not zero.

    Args:
        at: Milliseconds since 1970, or an instant; one without a zone, as Spark collects it, is a
            time of this machine's zone.
        zone: Another zone to show the instant in; the text does not name it.
    """
    try:
        instant = (instant_of(at) if isinstance(at, int) else at).astimezone(zone)
    except OverflowError:
        return f"{at} ms" if isinstance(at, int) else str(at)
    if instant.microsecond % 1_000:
        precision = "microseconds"
    else:
        precision = "milliseconds" if instant.microsecond else "seconds"
    return instant.replace(tzinfo=None).isoformat(" ", precision)
