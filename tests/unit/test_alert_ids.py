"""An alert has an id, by which `trace` finds its window without Spark (rule E5)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from pyspark.sql import Row

from tests.support.alert_ids import digest
from tests.support.command_line import call_alone
from tests.support.reported import HOSTILE, NOON, Called, called_project
from tests.support.written_tables import write_rows
from windows_pipeline.query import WindowStore
from windows_pipeline.query.alert_ids import alert_id
from windows_pipeline.storage.catalog import specs_of
from windows_pipeline.windows import ROW_KEY

NOON_TEXT, ONE = "2013-01-01T12:00:00.000Z", "2013-01-01T13:00:00.000Z"
AT_NOON = digest(["flights", "hourly", "disruption", [HOSTILE], NOON_TEXT, ONE, None])
RETRACTED = digest(
    [
        *("flights", "hourly", "disruption", [HOSTILE]),
        *("2013-01-01T18:00:00.000Z", "2013-01-01T19:00:00.000Z", None),
    ]
)


@pytest.fixture
def project(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Called:
    """Three alerts of a key, and one that a correction retracted together with its window."""
    return called_project(tmp_path, capfd, monkeypatch)


@pytest.mark.parametrize(
    ("key", "parts"),
    [
        ("JFK", ["JFK"]),
        (None, [None]),
        (7, [7]),
        (date(2013, 3, 8), ["2013-03-08"]),
        (datetime(2013, 3, 8, 1, 2, 3, 4_000, UTC), ["2013-03-08T01:02:03.004Z"]),
        ({"carrier": "UA", "origin": None}, ["UA", None]),
        (Row(carrier="UA", origin=None), ["UA", None]),
    ],
)
def test_an_id_is_a_digest_of_what_the_alert_is_about(key: object, parts: list[object]) -> None:
    """The same of a row that Spark read as of one that Arrow read."""
    hour = NOON.replace(hour=13)
    row = {"rule": "r", "key": key, "window_start": NOON, "window_end": hour, "correction": 3}
    of_row = {
        "event_time": NOON,
        "record_arrival_unit": date(2013, 1, 2),
        "source_partition": "0",
        "offset": 5,
    }
    listed = ["p", "w", "r", parts, NOON_TEXT, ONE]
    assert alert_id("p", "w", (), row) == digest([*listed, 3])
    named = [NOON_TEXT, "2013-01-02", "0", 5]
    assert alert_id("p", "w", ROW_KEY, row | of_row) == digest([*listed, *named, 3])
    # What Spark collects has no zone, and is in that of the machine.
    local = [at.astimezone().replace(tzinfo=None) for at in (NOON, hour)]
    of_spark = row | {"window_start": local[0], "window_end": local[1]}
    assert alert_id("p", "w", (), of_spark) == digest([*listed, 3])


def test_alerts_are_listed_with_their_ids(project: Called) -> None:
    status, said = project.call("alerts", "flights", "--json", "--with-retracted")
    assert status == 0, said
    found = {row["_id"]: row["window_start"] for row in json.loads(said)}
    assert found[AT_NOON] == NOON_TEXT
    assert (RETRACTED in found, len(found)) == (True, 4)
    assert f" {AT_NOON} " in project.call("alerts", "flights")[1]


def test_an_alert_leads_to_its_window(project: Called) -> None:
    """Rule E5: by its id or the first digits of it, with a key that no shell takes as it is."""
    for text, more in ((AT_NOON, ()), (AT_NOON[:6], ("--windows", "hourly"))):
        status, said = project.call("trace", "flights", "--alert", text, *more, "--json")
        assert status == 0, said
        found = json.loads(said)
        assert found["window"]["window_start"] == NOON_TEXT
        assert found["window"]["key"] == HOSTILE
        assert found["alert"] == {
            "id": AT_NOON,
            "windows_name": "hourly",
            "rule": "disruption",
            "severity": 70.0,
            "retracted_by": None,
        }
    store = WindowStore(project.pipeline, "hourly", str(project.folder / "warehouse"))
    window = store.alerted(AT_NOON)
    assert (window.key, window.start) == (HOSTILE, NOON)
    assert store.trace(window).records.num_rows == len(found["records"])
    printed = call_alone(project.folder, "trace", "flights", "--alert", AT_NOON, "--limit", "100")
    assert f"alert {AT_NOON}: disruption of hourly, severity 70" in printed
    assert "the window after" in printed


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            ("--alert", "0123456789ab"),
            "no alert of flights/hourly/alerts has the id '0123",
        ),
        (("--alert", "JFK"), "--alert: must be the id of an alert, 12 digits from 0 to f, or its"),
        (("--alert", ""), "--alert: must be the id of an alert"),
        (("--alert", AT_NOON, "--windows", "daily"), "flights has no windows 'daily'; use one of"),
        (("--alert", AT_NOON, "JFK"), "name the window by KEY and TIME, or by --alert alone"),
        (("JFK",), "name the window by KEY and TIME, or by --alert alone"),
        ((), "name the window by KEY and TIME, or by --alert alone"),
        (("--alert", AT_NOON, "--offset", "1"), "--offset goes with KEY and TIME"),
        (("--alert", RETRACTED), "must be there, but is not; correction 1 retracted it. To see"),
    ],
)
def test_an_id_that_names_no_window_is_refused(
    project: Called, args: Sequence[str], said: str
) -> None:
    status, printed = project.call("trace", "flights", *args)
    assert (status, said in printed.replace(" │ │ ", " ")) == (2, True), printed


def test_an_id_that_several_alerts_have_lists_them(project: Called) -> None:
    """Four digits of one of 2,000 alerts or more: some two of them begin alike."""
    alerts = specs_of(project.pipeline, str(project.folder / "warehouse")).of("hourly").alerts
    keys = [f"K{number}" for number in range(2_000)]
    raised = {"arrival_unit": date(2013, 1, 2), "rule": "disruption", "window_start": NOON}
    row = {**raised, "window_end": NOON.replace(hour=13), "episode_start": NOON}
    write_rows(alerts, [{**row, "key": key} for key in keys])
    ids: dict[str, list[tuple[str, str]]] = {}
    for key in keys:
        own = digest(["flights", "hourly", "disruption", [key], NOON_TEXT, ONE, None])
        ids.setdefault(own[:4], []).append((own, key))
    first, alike = next((at, found) for at, found in ids.items() if len(found) > 1)
    status, said = project.call("trace", "flights", "--alert", first)
    assert status == 2
    assert f"must name one alert, and {len(alike)} have ids that begin with '{first}'" in said
    for own, key in alike[:5]:
        assert f"{own}: disruption of hourly, key {key}, ends 2013-01-01 13:00:00" in said
