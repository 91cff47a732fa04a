"""The years that dates and times may have, so that every reader of tables can read them."""

from __future__ import annotations

from datetime import date

from pyspark.sql import Column
from pyspark.sql import functions as F

YEARS = (1, 9999)
"""The years of dates and times: other calendars, such as Python's, have no more."""
EVENT_YEARS = (1000, 9999)
"""The years of event times, so that windows around one begin in years that such calendars have."""
_DAY_MS = 86_400_000


def in_years(value: Column) -> Column:
    """A date or timestamp; null outside `YEARS`."""
    return F.when(F.year(value).between(*YEARS), value)


def years_ms(first: int, last: int) -> tuple[int, int]:
    """The first ms of a year and the last ms of another year, in UTC."""
    since_1970 = (date(first, 1, 1).toordinal(), date(last, 12, 31).toordinal() + 1)
    begin, beyond = ((day - date(1970, 1, 1).toordinal()) * _DAY_MS for day in since_1970)
    return begin, beyond - 1
