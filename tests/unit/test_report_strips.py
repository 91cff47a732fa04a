"""Strips of plots: which windows a line joins, and until when a last silence lasts."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.pipeline_texts import FLIGHTS, load_text
from tests.support.written_tables import write_rows
from windows_pipeline.query.episodes import Episode
from windows_pipeline.query.tables.local import LocalTable
from windows_pipeline.report.measures import Measure
from windows_pipeline.report.strips import strip_around, strip_of_day
from windows_pipeline.storage.catalog import specs_of

BEGAN = datetime(2013, 1, 1, 8, tzinfo=UTC)
HOUR = timedelta(hours=1)
MS = timedelta(milliseconds=1)
DAY = date(2013, 1, 2)
RECORDS = Measure("record_count", None, keeps_smallest=False)


@pytest.fixture
def final(tmp_path: Path) -> LocalTable:
    """Windows of an hour: a record at 8:00, none until 11:30, then one, and none again."""
    ends = [
        (BEGAN, 1),
        (BEGAN + HOUR + MS, 0),
        (BEGAN + 3.5 * HOUR, 1),
        (BEGAN + 4.5 * HOUR + MS, 0),
    ]
    table = specs_of(load_text(tmp_path, FLIGHTS), f"{tmp_path}/w").of("hourly").final_windows
    write_rows(
        table,
        [
            {
                "key": "EWR",
                "window_start": end - HOUR,
                "window_end": end,
                "record_count": count,
                "arrival_unit": DAY,
            }
            for end, count in ends
        ],
    )
    return LocalTable(table)


@pytest.fixture
def alerts(tmp_path: Path) -> LocalTable:
    """The first silence raised an alert of each of two rules, one of which was retracted."""
    table = specs_of(load_text(tmp_path, FLIGHTS), f"{tmp_path}/w").of("hourly").alerts
    end = BEGAN + HOUR + MS
    bounds = {"key": "EWR", "window_start": end - HOUR, "window_end": end, "arrival_unit": DAY}
    second = {"window_start": BEGAN + 2.5 * HOUR, "window_end": BEGAN + 3.5 * HOUR}
    retracted = {**bounds, **second, "rule": "quiet", "retracted_by": 1}
    other = {**bounds, **second, "rule": "busy"}
    write_rows(table, [{**bounds, "rule": "quiet"}, retracted, other])
    return LocalTable(table)


def quiet(first: datetime, last: datetime) -> Episode:
    return Episode(
        *(DAY, "quiet", "EWR", first, last),
        open_until=None,
        has_alert=True,
        alerts=1,
        severity=None,
        urgency=0,
        stored_in=(pa.table({}), 0),
    )


def ms(instant: datetime) -> int:
    return round(instant.timestamp() * 1_000)


def test_a_days_strip_joins_windows_that_touch_and_ends_at_the_close_time(
    final: LocalTable, alerts: LocalTable
) -> None:
    """The window that ends at 11:30 begins at 10:30, long after the silent window's end."""
    closed = BEGAN + 9 * HOUR
    episode = quiet(BEGAN + MS, BEGAN + HOUR + MS)
    strip = strip_of_day(final, alerts, episode, RECORDS, DAY, ms(closed))
    assert [(one.value, one.joins, one.is_silence, one.is_alert) for one in strip.points] == [
        (1.0, False, False, False),
        (0.0, True, True, True),
        (1.0, False, False, False),
        (0.0, True, True, False),
    ]
    assert strip.in_order[-1].end_ms == ms(closed)
    assert strip.in_order[:-1] == list(strip.points)


@pytest.mark.parametrize(("closed", "until"), [(7, 7), (90, 21.5)])
def test_a_strip_around_an_episode_ends_with_what_was_read(
    final: LocalTable, alerts: LocalTable, closed: float, until: float
) -> None:
    """The episode lasts from 8:30 to 19:00, so that windows are read until 5:30 of the next day."""
    episode = quiet(BEGAN + 0.5 * HOUR, BEGAN + 11 * HOUR)
    strip = strip_around(final, alerts, episode, RECORDS, 3_600_000, ms(BEGAN + closed * HOUR))
    assert strip.in_order[-1].end_ms == ms(BEGAN + until * HOUR)
