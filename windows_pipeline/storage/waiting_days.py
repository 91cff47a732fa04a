"""Which days to ingest and to compute: one answer for runs, `status` and Dagster's automation."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date, timedelta
from typing import NamedTuple

DaysByWindows = dict[str, list[date]]
"""Days by the name of a definition; definitions without days are left out."""


class WaitingDays(NamedTuple):
    """Days that were ingested and are not computed.

    Attributes:
        lacking: The days that can be computed, by definition.
        blocked: The days after the missing day, which wait for it (rule A2).
        missing: The first day that is not ingested.
    """

    lacking: DaysByWindows
    blocked: list[date]
    missing: date


def waiting_days(
    start: date, ingested: Collection[date], computed: Mapping[str, Collection[date]]
) -> WaitingDays:
    """The days that wait.

    Args:
        start: The pipeline's first day.
        ingested: The days of the arrival log.
        computed: The days of which all tables of a definition are computed, by its name.
    """
    there = set(ingested)
    missing = _first_missing(start, there)
    lacking = {
        name: sorted(day for day in there - set(done) if day < missing)
        for name, done in computed.items()
    }
    return WaitingDays(
        {name: found for name, found in lacking.items() if found},
        sorted(day for day in there if day > missing),
        missing,
    )


def days_to_ingest(
    start: date, landed: Collection[date], ingested: Collection[date], *, past_a_gap: bool
) -> tuple[list[date], date]:
    """The landed days that are new, and the first day that is neither landed nor ingested.

    Args:
        start: The pipeline's first day.
        landed: The landed days.
        ingested: The days of the arrival log.
        past_a_gap: Whether new days after the missing day count, too; ingested, they are blocked.
    """
    missing = _first_missing(start, {*landed, *ingested})
    new = set(landed).difference(ingested)
    return sorted(day for day in new if past_a_gap or day < missing), missing


def _first_missing(start: date, there: Collection[date]) -> date:
    day = start
    while day in there:
        day += timedelta(days=1)
    return day
