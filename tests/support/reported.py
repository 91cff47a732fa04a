"""The flights' tables with few rows whose report is known by hand, written without Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.support.command_line import call
from tests.support.pipeline_texts import FLIGHTS, load_text
from tests.support.written_tables import write_rows
from windows_pipeline.config import Pipeline
from windows_pipeline.storage.catalog import specs_of

DAYS = (date(2013, 1, 1), date(2013, 1, 2))
NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
HOSTILE = "-<script>alert(1)</script>\"'&\u202e\x01</style></svg>![x](javascript:alert(1))"
"""A key; as a page shows it, two characters are escaped."""
SHOWN = HOSTILE.replace("\u202e", r"\u202e").replace("\x01", r"\x01")
WINDOWS = [
    (HOUR * 0, 12, 70.0, True),
    (HOUR / 2, 11, 95.5, True),
    (HOUR * 3, 14, 61.0, True),
    (HOUR * 4, 3, 5.0, False),
]
"""Windows of the hostile key: start after noon, records, average delay, whether it alerts."""


def episode(
    day: date, start: datetime, until: datetime, alerts: int, severity: float, worst: datetime
) -> dict[str, Any]:
    """A row of the table episodes, which a window of an hour may continue."""
    return {
        "arrival_unit": day,
        "rule": "disruption",
        "key": HOSTILE,
        "episode_start": start,
        "until": until,
        "open_until": until + HOUR,
        "has_alert": True,
        "alerts": alerts,
        "severity": severity,
        "window_start": worst,
        "window_end": worst + HOUR,
        "worst": {"record_count": 11, "avg_dep_delay": severity, "failed": []},
    }


EPISODES = [
    episode(DAYS[1], NOON, NOON + 1.5 * HOUR, 2, 95.5, NOON + HOUR / 2),
    episode(DAYS[1], NOON + 3 * HOUR, NOON + 4 * HOUR, 1, 61.0, NOON + 3 * HOUR),
]
"""The episodes of the windows that alert."""


def reported_project(folder: Path, text: str = FLIGHTS, key: object = HOSTILE) -> Pipeline:
    """A project of two ingested days; its hourly windows have two episodes of one key.

    Of 100 records 98 came in order, one an hour and one three hours late.

    Args:
        folder: The project's folder.
        text: The pipeline's file.
        key: The key of all rows.
    """
    settings = {"warehouse": "warehouse", "pipelines": "pipelines", "landing": ".", "spark": {}}
    (folder / "settings.yaml").write_text(yaml.safe_dump(settings))
    (folder / "pipelines").mkdir()
    pipeline = load_text(folder / "pipelines", text)
    warehouse = str(folder / "warehouse")
    source = specs_of(pipeline, warehouse)
    tables = specs_of(pipeline, warehouse).of("hourly")
    write_rows(source.arrival_log, [_logged(day) for day in DAYS])
    late = [timedelta(0)] * 98 + [HOUR, 3 * HOUR]
    records = [_record(number, each) for number, each in enumerate(late)]
    write_rows(source.raw_events, [row | {"key": key} for row in records])
    write_rows(tables.final_windows, [_window(*each[:3]) | {"key": key} for each in WINDOWS])
    raised = [_alert(*each[:3]) for each in WINDOWS if each[3]]
    retracted = _alert(HOUR * 6, 20, 300.0) | {"retracted_by": 1}
    write_rows(tables.alerts, [row | {"key": key} for row in (*raised, retracted)])
    write_rows(tables.episodes, [row | {"key": key} for row in EPISODES])
    noted = specs_of(pipeline, warehouse).of("hourly").computed_days
    write_rows(noted, [{"arrival_unit": day} for day in DAYS])
    return pipeline


class Called(NamedTuple):
    """A project, and a call of a command in it that must not start Spark."""

    folder: Path
    pipeline: Pipeline
    call: Callable[..., tuple[int, str]]


def called_project(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Called:
    """`reported_project` in a folder that becomes the current one."""
    monkeypatch.chdir(folder)
    monkeypatch.delenv("WINDOWS_PIPELINE_SETTINGS", raising=False)

    def called(*args: str) -> tuple[int, str]:
        no_spark = lambda *_: pytest.fail("Spark must not start")  # noqa: E731
        return call(capfd, monkeypatch, *args, start=no_spark)

    return Called(folder, reported_project(folder), called)


def many_episodes(keys: int, each: int) -> Sequence[dict[str, Any]]:
    """Episodes of one alert on the first day: of as many keys, each with as many."""
    starts = [NOON + timedelta(hours=3 * number) for number in range(each)]
    return [
        episode(DAYS[0], start, start + HOUR, 1, 61.0 + key, start) | {"key": f"K{key}"}
        for key in range(keys)
        for start in starts
    ]


def _logged(day: date) -> dict[str, Any]:
    return {
        "arrival_unit": day,
        "source_partition": "0",
        "rows": 100 if day == DAYS[0] else 0,
        "max_event_time": NOON,
        "arrival_unit_rejected": int(day == DAYS[1]),
        "watermark": NOON,
    }


def _record(number: int, late: timedelta) -> dict[str, Any]:
    return {
        "arrival_unit": DAYS[0],
        "source_partition": "0",
        "offset": number,
        "key": HOSTILE,
        "event_time": NOON - late,
        "running_max": NOON,
    }


def _window(after: timedelta, records: int, delay: float) -> dict[str, Any]:
    return {
        "arrival_unit": DAYS[1],
        "key": HOSTILE,
        "window_start": NOON + after,
        "window_end": NOON + after + HOUR,
        "record_count": records,
        "avg_dep_delay": delay,
    }


def _alert(after: timedelta, records: int, delay: float) -> dict[str, Any]:
    start = NOON if after < 2 * HOUR else NOON + after
    of_rule = {"rule": "disruption", "severity": delay, "episode_start": start}
    return _window(after, records, delay) | of_rule
