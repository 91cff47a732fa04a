"""`explain` says what became of a record, without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
import yaml

from tests.support.command_line import call, call_alone
from tests.support.written_flights import NOON, flights
from tests.support.written_tables import write_rows

Explain = Callable[..., tuple[int, str]]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The flights, in a folder that is the working directory."""
    found = flights(tmp_path)
    (tmp_path / "settings").mkdir()
    day = {"arrival_unit": date(2013, 1, 2), "file": "b.jsonl", "reason": "malformed"}
    text = '{"origin": "EWR", "departed_at": "2013-01-01T12:00\n[red]'
    write_rows(found.source.rejected_records, [{**day, "original": text}])
    settings = tmp_path / "settings" / "settings.yaml"
    settings.write_text(
        yaml.safe_dump(
            {"warehouse": "../warehouse", "pipelines": "..", "landing": ".", "spark": {}}
        )
    )
    monkeypatch.setenv("WINDOWS_PIPELINE_SETTINGS", str(settings))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def explain(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Explain:
    del project
    return lambda *args: call(capfd, monkeypatch, "explain", "flights", *args)


@pytest.mark.parametrize("time", ["2013-01-01 12:00", "2013-01-01T13:00:00+01:00"])
def test_a_record_is_shown_with_its_windows(explain: Explain, time: str) -> None:
    status, said = explain("JFK", time)
    assert status == 0, said
    assert "offset 0 of source partition 0, arrived on 2013-01-01: counted: 3 windows" in said
    assert "stream time 2013-01-01 12:00:00, 0:00:00 after it; watermark before its" in said
    assert "2013-01-01 11:00:00 to 2013-01-01 12:00:00: closed, 2 records" in said


def test_json_has_times_windows_and_values(explain: Explain) -> None:
    status, said = explain("--offset", "1", "--day", "2013-01-01", "--json")
    assert status == 0, said
    found = json.loads(said)
    (record,) = found["records"]
    assert (record["fate"], record["key"], record["offset"]) == ("counted", "JFK", 1)
    assert record["event_time"] == "2013-01-01T12:30:00.000Z"
    assert record["windows"][0] == {
        "start": "2013-01-01T11:30:00.000Z",
        "end": "2013-01-01T12:30:00.000Z",
        "record_count": 2,
        "closed": True,
        "watermark": None,
    }
    assert record["values"]["dep_delay"] == 30
    assert (found["are_more"], found["through"]) == (False, "2013-01-02")


def test_a_record_that_is_not_there_is_looked_for_among_the_rejected(explain: Explain) -> None:
    status, said = explain("EWR", "2013-01-01 12:00")
    assert status == 0, said
    assert "a record of key 'EWR' at 2013-01-01 12:00 is not among the accepted" in said
    assert "rejected on 2013-01-02, and names key and time: malformed: {" in said
    assert r"12:00\n[red]" in said
    status, said = explain("--offset", "9", "--partition", "p")
    assert (status, "offset 9 of source partition p is not among" in said) == (0, True)


def test_records_beyond_the_limit_are_named(explain: Explain) -> None:
    status, said = explain("JFK", "2013-01-01", "--limit", "1")
    assert (status, "there are more such records; raise --limit 1 to see them" in said) == (0, True)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "name the record by KEY and TIME, or by --offset alone"),
        (("JFK",), "name the record by KEY and TIME, or by --offset alone"),
        (("JFK", "2013-01-01", "--offset", "1"), "name the record by KEY and TIME, or by"),
        (("JFK", "2013-01-01", "--day", "2013-01-01"), "--partition and --day go with --offset"),
        (("JFK", "soon"), "TIME: 'soon' is no time; write it as '2013-03-08 21:15:00'"),
        (("--offset", "1", "--day", "May"), "--day: 'May' is no day; write it as 2013-03-08"),
        (("JFK", "2013-01-01", "--windows", "daily"), "flights has no windows 'daily'"),
    ],
)
def test_arguments_that_name_no_record_are_refused(
    explain: Explain, args: tuple[str, ...], said: str
) -> None:
    status, printed = explain(*args)
    assert (status, said in printed.replace(" │ │ ", " ")) == (2, True), printed


def test_explain_needs_no_spark(project: Path) -> None:
    printed = call_alone(project, "explain", "flights", "JFK", f"{NOON:%Y-%m-%d %H:%M}")
    assert "counted: 3 windows count it" in printed
