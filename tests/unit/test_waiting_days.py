"""Which days to ingest and to compute (rule A2: a missing day blocks the days after it)."""

from __future__ import annotations

from datetime import date

from windows_pipeline.storage.waiting_days import days_to_ingest, waiting_days

FIRST, SECOND, THIRD, FOURTH = (
    date(2026, 2, 27),
    date(2026, 2, 28),
    date(2026, 3, 1),
    date(2026, 3, 2),
)


def test_days_before_the_missing_one_lack_what_is_not_computed() -> None:
    done = {"hourly": [FIRST], "daily": [FIRST, SECOND]}
    found = waiting_days(FIRST, [FOURTH, SECOND, FIRST], done)
    assert found.lacking == {"hourly": [SECOND]}
    assert found.missing == THIRD
    assert found.blocked == [FOURTH]


def test_a_blocked_day_does_not_lack_results_and_a_day_before_the_first_does() -> None:
    found = waiting_days(SECOND, [FIRST, THIRD], {"hourly": []})
    assert found.lacking == {"hourly": [FIRST]}
    assert found.missing == SECOND
    assert found.blocked == [THIRD]


def test_nothing_waits_once_all_days_are_computed() -> None:
    found = waiting_days(FIRST, [FIRST, SECOND, THIRD], {"hourly": [THIRD, SECOND, FIRST]})
    assert found.lacking == {}
    assert found.blocked == []
    assert found.missing == FOURTH


def test_new_days_are_ingested_up_to_a_gap_or_past_it() -> None:
    """A command ingests both, as the files are there; Dagster's automation waits for the gap."""
    landed = [FOURTH, SECOND, FIRST]
    assert days_to_ingest(FIRST, landed, [FIRST], past_a_gap=True) == ([SECOND, FOURTH], THIRD)
    assert days_to_ingest(FIRST, landed, [FIRST], past_a_gap=False) == ([SECOND], THIRD)
    # The folder of an ingested day may be gone; a day is no gap then.
    assert days_to_ingest(FIRST, landed, [FIRST, THIRD], past_a_gap=False)[0] == [SECOND, FOURTH]
