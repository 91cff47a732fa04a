"""Silences of a report: how long each lasted, the longest first."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from tests.support.pipeline_texts import FLIGHTS, load_text
from tests.support.written_tables import write_rows
from windows_pipeline.query.tables.local import LocalTable
from windows_pipeline.report.episodes import Episode, Episodes
from windows_pipeline.report.silences import follow_silences
from windows_pipeline.storage.catalog import window_tables

BEGAN = datetime(2013, 1, 1, 8, tzinfo=UTC)
HOUR = timedelta(hours=1)


def silence(key: str, began: datetime) -> Episode:
    """An episode of one empty window, with the severity that all of them have."""
    return Episode("quiet", key, began, began + HOUR, alerts=1, severity=0.0, ends_empty=True)


def test_the_longest_of_silences_that_are_as_bad_comes_first(tmp_path: Path) -> None:
    """EWR was back after two hours, JFK after a day and a half; LGA is silent still."""
    pipeline = load_text(tmp_path, FLIGHTS)
    final = window_tables(pipeline, "hourly", f"{tmp_path}/warehouse").final_windows
    back = {"EWR": BEGAN + 2 * HOUR, "JFK": BEGAN + 36 * HOUR}
    write_rows(
        final,
        [
            {
                "key": key,
                "window_start": end - HOUR,
                "window_end": end,
                "record_count": 1,
                "arrival_unit": date(2013, 1, 2),
            }
            for key, end in back.items()
        ],
    )
    found = Episodes((silence("EWR", BEGAN), silence("JFK", BEGAN), silence("LGA", BEGAN)), 3, None)
    closed = BEGAN + 40 * HOUR
    followed = follow_silences(
        found, LocalTable(final), pipeline.windows["hourly"], int(closed.timestamp() * 1000), 9
    )
    assert [(one.key, one.last - one.first, one.is_open) for one in followed.found] == [
        ("LGA", 40 * HOUR, True),
        ("JFK", 36 * HOUR, False),
        ("EWR", 2 * HOUR, False),
    ]
