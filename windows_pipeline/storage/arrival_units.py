"""Arrival days, and conditions on those of a table's rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from pyspark.sql import Column
from pyspark.sql import functions as F


def in_units(days: Sequence[date]) -> Column:
    """The condition that a row is of one of these units."""
    return F.expr(units_sql(days))


def units_sql(days: Sequence[date]) -> str:
    """The same condition as SQL."""
    first, last = min(days), max(days)
    if len(set(days)) == (last - first) // timedelta(days=1) + 1:
        return f"arrival_unit >= DATE'{first}' AND arrival_unit <= DATE'{last}'"
    listed = ", ".join(f"DATE'{day}'" for day in sorted(set(days)))
    return f"arrival_unit IN ({listed})"


def days_from(first: date, last: date) -> list[date]:
    """The days from one to another, both of them, in order."""
    return [first + timedelta(days=number) for number in range((last - first).days + 1)]


def days_text(days: Sequence[date]) -> str:
    """How many days these are, in order, and which, in a few words."""
    if len(days) == 1:
        return f"1 day, {days[0]}"
    whole = (days[-1] - days[0]).days + 1 == len(days)
    return f"{len(days)} days{',' if whole else ' of'} {days[0]} to {days[-1]}"
