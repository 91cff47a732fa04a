"""`episodes`, `alerts` and `trace` say one thing of an episode, without Spark (rules B8, E5)."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.alert_ids import digest
from tests.support.command_line import call_alone
from tests.support.reported import DAYS, HOSTILE, HOUR, NOON, Called, called_project, episode
from tests.support.written_tables import write_rows
from windows_pipeline.cli.questions.episodes import FIRST_COLUMNS
from windows_pipeline.cli.terminal.console import PlainConsole
from windows_pipeline.cli.terminal.rows import print_grid
from windows_pipeline.query.episodes import read_episodes, rows_of
from windows_pipeline.query.tables.local import LocalTable
from windows_pipeline.storage.catalog import specs_of

MS = timedelta(milliseconds=1)


@pytest.fixture
def project(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Called:
    """Two episodes of a key, and a silence of EWR: of an hour on the first day, then of a day."""
    made = called_project(tmp_path, capfd, monkeypatch)
    tables = specs_of(made.pipeline, str(tmp_path / "warehouse")).of("hourly")
    start = NOON - 20 * HOUR + MS
    silence = {**episode(DAYS[0], start, start + HOUR, 1, 1.0, start), "open_until": None}
    silence |= {"rule": "quiet", "key": "EWR"}
    goes_on = {"arrival_unit": DAYS[1], "until": NOON, "severity": 20.0, "has_alert": False}
    write_rows(tables.episodes, [silence, {**silence, **goes_on}])
    alert = {
        "arrival_unit": DAYS[0],
        "rule": "quiet",
        "key": "EWR",
        "window_start": start,
        "window_end": start + HOUR,
        "record_count": 0,
        "severity": 1.0,
        "episode_start": start,
        "correction": 7,
    }
    retracted = {**alert, "correction": None, "retracted_by": 7}
    write_rows(tables.alerts, [alert, retracted])
    window = {name: alert[name] for name in ("arrival_unit", "key", "window_start", "window_end")}
    write_rows(tables.final_windows, [{**window, "record_count": 0}])
    return made


def _id_of_silence() -> str:
    """The id of the alert that stands, which a correction raised."""
    bounds = "2012-12-31T16:00:00.001Z", "2012-12-31T17:00:00.001Z"
    return digest(["flights", "hourly", "quiet", ["EWR"], *bounds, 7])


def test_the_newest_close_is_shown_the_worst_first(project: Called) -> None:
    status, said = project.call("episodes", "flights", "--json")
    assert status == 0, said
    rows = json.loads(said)
    assert [(row["key"], row["state"], row["severity"], row["alerts"]) for row in rows] == [
        (HOSTILE, "still open", 95.5, 2),
        (HOSTILE, "still open", 61, 1),
        ("EWR", "still silent", 20, 1),
    ]
    silence = rows[-1]
    assert silence["_windows"] == "hourly"
    assert silence["_id"] == _id_of_silence()
    assert (silence["until"], silence["has_alert"]) == ("2013-01-01T12:00:00.000Z", False)
    assert silence["worst"]["record_count"] == 11
    status, said = project.call("episodes", "flights", "--json", "--to", str(DAYS[0]))
    (row,) = json.loads(said)
    assert (row["key"], row["severity"], row["until"]) == ("EWR", 1, "2012-12-31T17:00:00.001Z")


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        (("--rule", "quiet"), ["EWR"]),
        (("--key", "EWR"), ["EWR"]),
        (("--key", "JFK"), []),
        (("--limit", "1"), [HOSTILE]),
        (("--from", "2013-01-03"), []),
    ],
)
def test_episodes_are_chosen(project: Called, options: tuple[str, ...], keys: list[str]) -> None:
    status, said = project.call("episodes", "flights", *options, "--json")
    assert (status, [row["key"] for row in json.loads(said)]) == (0, keys), said


def test_what_is_left_out_is_said(project: Called) -> None:
    status, said = project.call("episodes", "flights", "--limit", "2")
    assert status == 0, said
    assert "flights/hourly/episodes has 3 episodes; raise --limit 2 to see them" in said
    # Beside the length, the worst window as people read it; `--json` has its fields.
    for text in (" length ", " worst window ", ": record_count=", "times are UTC"):
        assert text in said


def test_a_terminal_of_80_columns_shows_id_state_key_and_rule(project: Called) -> None:
    tables = specs_of(project.pipeline, str(project.folder / "warehouse")).of("hourly")
    table, windows = LocalTable(tables.episodes), project.pipeline.windows["hourly"]
    key = table.key.one("EWR", "key")
    found = read_episodes(table, windows, keys=key).found
    named = (project.pipeline, "hourly", None)
    rows = rows_of(found, LocalTable(tables.alerts), *named, table.schema)
    out = io.StringIO()
    console = PlainConsole(file=out, width=80, force_terminal=True, color_system=None)
    print_grid("episodes", rows, FIRST_COLUMNS, newest_last=False, console=console)
    lines = out.getvalue().splitlines()
    (line,) = (line for line in lines if "EWR" in line)
    assert line.split()[:5] == [_id_of_silence(), "still", "silent", "EWR", "quiet"]
    assert all(len(line) <= 80 for line in lines if "left out" not in line)


def test_a_silence_has_one_severity_everywhere(project: Called) -> None:
    """Of its window alone it is 1; over all its length so far 20."""
    status, said = project.call("alerts", "flights", "--json")
    assert status == 0, said
    (alert,) = (row for row in json.loads(said) if row["key"] == "EWR")
    assert (alert["severity"], alert["_id"]) == (20, _id_of_silence())
    status, said = project.call("trace", "flights", "--alert", _id_of_silence())
    assert status == 0, said
    lasted = "2012-12-31 16:00:00.001 to 2013-01-01 12:00:00, 1 alert, still silent"
    assert f": quiet of hourly, severity 20 episode: {lasted}" in said
    status, said = project.call("trace", "flights", "--alert", _id_of_silence(), "--json")
    assert json.loads(said)["alert"]["severity"] == 20, said


def test_episodes_needs_no_spark(project: Called) -> None:
    heavy = {"pyspark", "great_expectations"}
    assert "still silent" in call_alone(project.folder, "episodes", "flights", heavy=heavy)


def test_a_warehouse_of_an_earlier_release_is_refused(project: Called) -> None:
    """Its alerts follow another definition, so the run that the message names says to rebuild."""
    folder = project.folder / "warehouse" / "flights" / "hourly" / "episodes"
    folder.rename(project.folder / "moved")
    status, said = project.call("episodes", "flights")
    assert status == 2
    assert "flights/hourly/episodes: the table does not exist yet; to fill it: " in said
