"""Arrival units (days): conditions on a table's rows, ranges, and their text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from pyspark.sql import Column
from pyspark.sql import functions as F


def in_arrival_units(days: Sequence[date]) -> Column:
    """The condition that a row belongs to one of these arrival units."""
    return F.expr(arrival_units_sql(days))


def arrival_units_sql(days: Sequence[date]) -> str:
    """The SQL condition that a row belongs to one of these arrival units."""
    first, last = min(days), max(days)
    if len(set(days)) == (last - first) // timedelta(days=1) + 1:
        return f"arrival_unit >= DATE'{first}' AND arrival_unit <= DATE'{last}'"
    listed = ", ".join(f"DATE'{day}'" for day in sorted(set(days)))
    return f"arrival_unit IN ({listed})"


def days_from(first: date, last: date) -> list[date]:
    """The days from `first` to `last`, both included, in order."""
    return [first + timedelta(days=number) for number in range((last - first).days + 1)]


def days_text(days: Sequence[date]) -> str:
    """Names sorted days in a few words, such as `3 days, 2026-11-01 to 2026-11-03`."""
    if len(days) == 1:
        return f"1 day, {days[0]}"
    whole = (days[-1] - days[0]).days + 1 == len(days)
    return f"{len(days)} days{',' if whole else ' of'} {days[0]} to {days[-1]}"
