"""`trace` leads from a window to its records, without Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.command_line import Command, call_alone
from tests.support.pipeline_texts import FLIGHTS, changed, load_text
from tests.support.written_tables import Row, write_rows
from windows_pipeline.config import Pipeline
from windows_pipeline.storage.catalog import specs_of

NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)


class Flights(NamedTuple):
    """A project of the flights, whose folder is the working directory."""

    folder: Path
    pipeline: Pipeline
    command: Command

    def trace(self, *args: str) -> tuple[int, str]:
        return self.command("trace", "flights", *args)


def window(minute: float, count: int = 2) -> Row:
    start = NOON + timedelta(minutes=minute)
    return {
        "arrival_unit": date(2013, 1, 2),
        "key": "JFK",
        "window_start": start,
        "window_end": start + timedelta(hours=1),
        "record_count": count,
    }


@pytest.fixture
def flights(empty_project: Path, command: Command) -> Flights:
    """Two records of a window; one that is after it; and a day that closes it."""
    pipeline = load_text(empty_project / "pipelines", FLIGHTS)
    warehouse = str(empty_project / "warehouse")
    source = specs_of(pipeline, warehouse)
    times = [(1, 0, 0), (1, 1, 30), (1, 2, 15), (1, 3, 300), (2, 0, 1_440)]
    raw, latest = [], NOON
    for day, offset, minute in times:
        event_time = NOON + timedelta(minutes=minute)
        latest = max(latest, event_time)
        raw.append(
            {
                "arrival_unit": date(2013, 1, day),
                "source_partition": "0",
                "offset": offset,
                "key": "JFK" if minute != 15 else "LGA",
                "event_time": event_time,
                "running_max": latest,
                "dep_delay": float(minute),
            }
        )
    write_rows(source.raw_events, raw)
    write_rows(
        source.arrival_log,
        [
            {
                "arrival_unit": date(2013, 1, day),
                "source_partition": "0",
                "rows": 1,
                "arrival_unit_rejected": 0,
                "max_event_time": NOON + timedelta(minutes=minute),
            }
            for day, minute in ((1, 300), (2, 1_440))
        ],
    )
    tables = specs_of(pipeline, warehouse).of("hourly")
    write_rows(tables.final_windows, [window(-30), window(0), window(30, 1), window(300, 1)])
    result = {"record_count": 3, "failed": []}
    correction = {**window(0), "correction": 1, "change": "changed", "old": result, "new": result}
    write_rows(tables.corrections, [{**correction, "cause": "[red]a file"}])
    return Flights(empty_project, pipeline, command)


@pytest.mark.parametrize(
    "time",
    [
        "2013-01-01 13:00:00.000",
        "2013-01-01 13:00",
        "2013-01-01T14:00:00+01:00",
        "2013-01-01 12:00",
    ],
)
def test_a_window_is_found_by_its_end_or_start_and_shown_with_its_records(
    flights: Flights, time: str
) -> None:
    """Rule E5: its records, why it is final, its neighbours, its correction."""
    status, said = flights.trace("JFK", time, "--json")
    assert status == 0, said
    found = json.loads(said)
    assert found["window"]["window_start"] == "2013-01-01T12:00:00.000Z"
    assert [(each["offset"], each["dep_delay"]) for each in found["records"]] == [(0, 0), (1, 30)]
    assert [each["behind_ms"] for each in found["records"]] == [0, 0]
    assert found["corrections"] == [{"number": 1, "change": "changed", "cause": "[red]a file"}]
    assert found["before"].startswith("2013-01-01 11:30:00 to ")
    assert found["after"].startswith("2013-01-01 12:30:00 to ")
    status, said = flights.trace("JFK", time)
    assert status == 0
    close = "2013-01-02 06:00:00"
    assert (
        f"final: arrival day 2013-01-02 moved the close time to {close}, past the window's end"
        in said
    )
    assert "correction 1: changed, as '[red]a file'" in said
    assert "the window before: 2013-01-01 11:30:00 to 2013-01-01 12:30:00, 2 rec" in said


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("JFK", "soon"), "TIME: 'soon' is no time; write it as '2013-03-08 21:15:00'"),
        (("JFK", "1999-01-01"), "no window of key 'JFK' ends or starts at 1999-01-01; take key"),
        (("JFK", "2013-01-01"), "TIME: must name one window, and 4 end or start at 2013-01-01"),
        (("EWR", "2013-01-01 13:00"), "no window of key 'EWR' ends or starts"),
    ],
)
def test_a_time_that_names_no_window_is_refused(
    flights: Flights, args: Sequence[str], said: str
) -> None:
    status, printed = flights.trace(*args)
    assert (status, said in printed.replace(" │ │ ", " ")) == (2, True), printed


def test_records_beyond_the_limit_are_named(flights: Flights) -> None:
    status, said = flights.trace("JFK", "2013-01-01 13:00", "--limit", "1")
    assert (status, "there are 2 records; raise --limit 1 to see them" in said) == (0, True)


def test_a_window_without_records_is_shown_with_those_around_it(flights: Flights) -> None:
    """Rule B8: of the key alone; the last before and the first after that closed windows count."""
    tables = specs_of(flights.pipeline, str(flights.folder / "warehouse")).of("hourly")
    write_rows(tables.final_windows, [window(31, 0), window(301, 0)])
    status, said = flights.trace("JFK", "2013-01-01 12:31", "--json")
    found = json.loads(said)
    assert (status, found["records"]) == (0, [])
    assert [each["dep_delay"] for each in found["around"]] == [30, 300]
    status, said = flights.trace("JFK", "2013-01-01 12:31")
    assert "records: no rows the key's last record before the window and the first after it" in said
    status, said = flights.trace("JFK", "2013-01-01 17:01")
    assert "last record before the window; no closed window counts a later one" in said
    status, said = flights.trace("JFK", "2013-01-01 13:00", "--json")
    assert json.loads(said)["around"] == []


def test_trace_needs_no_spark(flights: Flights) -> None:
    printed = call_alone(flights.folder, "trace", "flights", "JFK", "2013-01-01 13:00")
    assert "the window after" in printed


def test_a_window_is_shown_with_its_firings(flights: Flights) -> None:
    """Rule E2: each with reason, cause, stream time and aggregates."""
    text = changed("    emit_empty: true", "    trigger:\n      early_every: 10 minutes\n    #")
    pipeline = load_text(flights.folder / "pipelines", text)
    fired = specs_of(pipeline, str(flights.folder / "warehouse")).of("hourly")
    assert fired is not None
    firing = {**window(0, 1), "cause": "STREAM_TIME", "stream_time": NOON, "avg_dep_delay": 1 / 3}
    listed = [
        {**firing, "firing_id": number, "reason": reason, "is_final": number == 1}
        for number, reason in enumerate(("EARLY", "ON_TIME"))
    ]
    write_rows(fired.firings, [*listed, {**window(30), "firing_id": 0}])
    status, said = flights.trace("JFK", "2013-01-01 13:00")
    assert status == 0, said
    assert (
        "firing 0: EARLY, by STREAM_TIME, at stream time 2013-01-01 12:00:00: 1 record, "
        "avg_dep_delay 0.333333," in said
    )
    assert "firing 1: ON_TIME, by" in said
    status, said = flights.trace("JFK", "2013-01-01 13:00", "--limit", "1")
    assert (status, "it fired 2 times; raise --limit 1 to see all firings" in said) == (0, True)
    status, said = flights.trace("JFK", "2013-01-01 13:00", "--json")
    firings = json.loads(said)["firings"]
    assert [(each["firing_id"], each["reason"], each["is_final"]) for each in firings] == [
        (0, "EARLY", False),
        (1, "ON_TIME", True),
    ]
    assert firings[0]["stream_time"] == "2013-01-01T12:00:00.000Z"
    assert (firings[0]["record_count"], firings[0]["avg_dep_delay"]) == (1, 1 / 3)
