"""Reads local times, texts without a zone, in the zone that their column declares."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

_WITHOUT_ZONE = (
    r"^\s*[+-]?\d{4,6}-\d{1,2}-\d{1,2}([ T](\d{1,2}(:\d{1,2}(:\d{1,2}(\.\d*)?)?)?)?)?\s*$"
)
_LAST_YEAR = 9_999
"""Beyond it, Spark's conversion between zones may overflow, which ends a run."""


def local_instant(text: Column, zone: str, full_date: str) -> Column:
    """The instant of a text; null if the text is no time, or no local time of the zone.

    A text that names an offset or a zone keeps it. Where clocks are put back, a local time occurs
    twice: the text means the first. Where they are put forward, some local times do not occur:
    such a text means no instant.

    Args:
        text: The text; the session must be in time zone UTC.
        zone: The zone of texts that name none.
        full_date: The regular expression that a text with a full date matches.
    """
    as_utc = F.when(text.rlike(full_date), text.try_cast("timestamp"))
    instant = F.to_utc_timestamp(as_utc, zone)
    occurs = F.from_utc_timestamp(instant, zone) == as_utc
    in_zone = F.when(F.year(as_utc).between(1, _LAST_YEAR), F.when(occurs, instant))
    return F.when(text.rlike(_WITHOUT_ZONE), in_zone).otherwise(as_utc)
