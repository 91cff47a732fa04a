"""Which ingested days wait for results: one answer for runs, `status` and Dagster's automation."""

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
    there, missing = set(ingested), start
    while missing in there:
        missing += timedelta(days=1)
    lacking = {
        name: sorted(day for day in there - set(done) if day < missing)
        for name, done in computed.items()
    }
    return WaitingDays(
        {name: found for name, found in lacking.items() if found},
        sorted(day for day in there if day > missing),
        missing,
    )
