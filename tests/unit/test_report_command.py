"""`report` writes one page that works offline, of episodes, windows and lateness."""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

import pytest

from tests.support.alert_ids import digest
from tests.support.command_line import Command, call_alone
from tests.support.pipeline_texts import FLIGHTS, changed
from tests.support.reported import (
    DAYS,
    HOSTILE,
    HOUR,
    NOON,
    SHOWN,
    many_episodes,
    reported_project,
)
from tests.support.written_tables import write_rows
from windows_pipeline.config import Pipeline, Rule
from windows_pipeline.query.episodes import read_episodes
from windows_pipeline.query.tables.local import LocalTable
from windows_pipeline.report.day_plots import alert_plot
from windows_pipeline.report.gather import read_report
from windows_pipeline.report.measures import Measure, measure_of
from windows_pipeline.report.page import rendered, report_page
from windows_pipeline.report.records import rounded_up
from windows_pipeline.report.words import trace_command
from windows_pipeline.storage.catalog import TableSpec, specs_of

MEBIBYTE = 2**20


class Page(HTMLParser):
    """The elements and the text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.data = ""
        self.feed(text)
        self.text = re.sub(r"\s+", " ", self.data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.data += data


class Reported(NamedTuple):
    """A project of few rows, whose folder is the working directory."""

    folder: Path
    pipeline: Pipeline
    command: Command

    @property
    def episodes(self) -> TableSpec:
        return specs_of(self.pipeline, str(self.folder / "warehouse")).of("hourly").episodes

    def report(self, *args: str) -> tuple[int, str]:
        return self.command("report", "flights", *args)

    def page(self, *args: str) -> tuple[str, Page]:
        """The text of the page that the command writes, and what is in it."""
        status, said = self.report("--output", "out.html", *args)
        assert (status, "out.html: written" in said) == (0, True), said
        text = (self.folder / "out.html").read_text()
        return text, Page(text)


@pytest.fixture
def project(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> Reported:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WINDOWS_PIPELINE_SETTINGS", raising=False)
    return Reported(tmp_path, reported_project(tmp_path), command)


def test_the_page_shows_what_the_tables_hold(project: Reported) -> None:
    """Rules A5, E5: by hand. A retracted alert is none; two overlapping windows are an episode."""
    _, page = project.page()
    assert "Arrival days 2013-01-01 to 2013-01-02" in page.text
    for card in (
        *("100 records accepted", "1 records rejected", "2 episodes of alerts"),
        *("2 of them still open", "2013-01-02 ingested through"),
    ):
        assert card in page.text
    assert "A grace of 1 hour would have caught 99 % of the records." in page.text
    assert "With the grace of hourly, 6 hours, 100 % of the records" in page.text
    assert "Episodes: 2" in page.text
    assert "record_count >= 10 and avg_dep_delay > 60" in page.text
    # The worst window of the first episode: noon to 13:30, by two windows.
    assert "2013-01-01 12:00:002013-01-01 13:30:00 still open1 h 30 min2" in page.text
    assert "avg_dep_delay = 95.5, record_count = 11 · severity 95.5" in page.text
    assert trace_command("flights", _worst_id()) in page.text
    assert "300" not in re.findall(r"severity (\d+)", page.text)


def test_the_page_needs_nothing_and_no_text_of_data_is_markup(project: Reported) -> None:
    text, page = project.page()
    assert page.data.count(SHOWN) > 4
    assert HOSTILE not in text
    names = {name for name, _ in page.tags}
    assert names.isdisjoint({"script", "img", "link", "iframe", "object", "form", "base"})
    for _, attributes in page.tags:
        assert not [
            name for name in attributes if name.startswith("on") or name in ("src", "style")
        ]
        assert (attributes.get("href") or "#").startswith("#")
    (policy,) = (
        attributes["content"]
        for _, attributes in page.tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'; style-src 'sha256-" in str(policy)
    drawings = re.findall(r"<svg.*?</svg>", text)
    assert len(drawings) == 4
    for drawing in drawings:
        ET.XML(drawing)


@pytest.mark.parametrize(
    ("declared", "key", "shown"),
    [
        ("[origin, dest]", {"origin": "JFK", "dest": "<LAX>"}, "JFK,<LAX>"),
        ("[origin, dest]", {"origin": None, "dest": "LAX"}, ",LAX"),
        ("flight", 1545, "1545"),
        ("[]", None, "all records"),
    ],
)
def test_keys_of_any_kind_are_shown(tmp_path: Path, declared: str, key: object, shown: str) -> None:
    pipeline = reported_project(tmp_path, changed("key: origin", f"key: {declared}"), key)
    read = read_report(pipeline, str(tmp_path / "warehouse"))
    page = Page(report_page(read, datetime(2026, 11, 27, tzinfo=UTC)))
    assert f"{shown} · disruption" in page.text
    assert f"> 60{shown}2013-01-01 12:00:00" in page.text
    drawn = alert_plot(specs_of(pipeline, str(tmp_path / "warehouse")), "hourly")
    drawing = base64.b64decode(drawn(DAYS[1]).partition("base64,")[2][:-1])
    assert f"{shown} · avg_dep_delay · disruption" in "".join(ET.XML(drawing).itertext())


def test_what_was_warned_of_is_listed(project: Reported) -> None:
    """Rules E1, E2, G3: the newest rows, and the command for more."""
    of_windows = specs_of(project.pipeline, str(project.folder / "warehouse")).of("hourly")
    _, page = project.page()
    assert "Failed windows" not in page.text
    failed = {
        "arrival_unit": DAYS[1], "key": HOSTILE, "window_start": NOON, "aggregate": "total",
        "message": "<b>overflow",
    }  # fmt: skip
    write_rows(
        of_windows.failed_windows,
        [{**failed, "window_end": NOON + HOUR * number} for number in range(1, 12)],
    )
    corrected = {"correction": 7, "cause": "late files", "arrival_unit": DAYS[0], "key": "JFK"}
    write_rows(of_windows.corrections, [{**corrected, "window_end": NOON}])
    _, page = project.page()
    newest = f"2013-01-02{SHOWN}2013-01-01 12:00:002013-01-01 23:00:00total<b>overflow"
    assert newest in page.text
    assert "2013-01-01 13:00:00total" not in page.text  # the eleventh
    assert "windows-pipeline rows flights failed_windows --windows hourly" in page.text
    assert "late files" in page.text
    _, page = project.page("--to", "2013-01-01")
    assert ("Failed windows" in page.text, "Corrections" in page.text) == (False, True)


def test_the_newest_firings_are_listed(tmp_path: Path) -> None:
    """Rule E2."""
    text = re.sub(r"    emit_empty: true.*", "    trigger: {early_every: 10 records}", FLIGHTS)
    pipeline = reported_project(tmp_path, text)
    fired = {"arrival_unit": DAYS[1], "key": "JFK", "window_end": NOON, "reason": "LATE"}
    write_rows(specs_of(pipeline, str(tmp_path / "warehouse")).of("hourly").firings, [fired])
    read = read_report(pipeline, str(tmp_path / "warehouse"))
    page = Page(report_page(read, datetime(2026, 11, 27, tzinfo=UTC)))
    assert "Firings" in page.text
    assert "LATE" in page.text


def test_days_are_chosen(project: Reported) -> None:
    _, page = project.page("--to", "2013-01-01")
    assert "Arrival days 2013-01-01 to 2013-01-01" in page.text
    assert "0 episodes of alerts" in page.text
    assert "No window broke a rule." in page.text
    assert "0 records rejected" in page.text
    status, said = project.report("--from", "2014-01-01")
    assert status == 2
    assert "no day from 2014-01-01 to the last is; to see the days: windows-pipeline" in said
    status, said = project.report("--from", "2013-01-02", "--to", "2013-01-01")
    assert (status, "must not be before --from 2013-01-02" in said) == (2, True)


def test_many_episodes_give_a_small_page_that_says_what_is_left_out(project: Reported) -> None:
    write_rows(project.episodes, many_episodes(5_000, 20))
    text, page = project.page()
    assert len(text.encode()) < MEBIBYTE
    # An episode of each key for each three hours, and two of the hostile key.
    assert "100,002 episodes of alerts" in page.text
    assert "20 of 5,001 keys and rules are drawn" in page.text
    assert "99,962 milder episodes are left out; to list them" in page.text
    table, windows = LocalTable(project.episodes), project.pipeline.windows["hourly"]
    some = read_episodes(table, windows, DAYS, most=2)
    assert (some.read_from, some.alerts) == (DAYS[1], 3)


def test_the_most_urgent_level_comes_first(project: Reported) -> None:
    """Severities of two rules have two units: 36 hours of silence, and 50 degrees."""
    rules = {
        "silent": Rule(when="record_count = 0", severity="36", level="critical"),
        "hot": Rule(when="avg_dep_delay > 0", severity="50", level="warning"),
        "plain": Rule(when="avg_dep_delay > 0", severity="900"),
        "note": Rule(when="avg_dep_delay > 0", severity="9000", level="info"),
    }
    windows = project.pipeline.windows["hourly"].model_copy(update={"alerts": rules})
    (row,) = many_episodes(1, 1)
    severities = {"note": 9000.0, "hot": 50.0, "unknown": 1.0, "silent": 36.0, "plain": 900.0}
    rows = [{**row, "rule": rule, "severity": of_rule} for rule, of_rule in severities.items()]
    write_rows(project.episodes, rows)
    found = read_episodes(LocalTable(project.episodes), windows, DAYS[:1]).found
    assert [(one.rule, one.severity) for one in found] == [
        ("silent", 36.0),
        ("hot", 50.0),
        ("plain", 900.0),
        ("unknown", 1.0),
        ("note", 9000.0),
    ]


def test_the_description_is_shown_as_markdown_and_never_as_html() -> None:
    text = (
        "See **the _page_** of `a*b*c` <b>,\nat [x](https://a.b/c?d=1&e).\n\n- \\*no\\*\n\n"
        "[bad](javascript:alert(1)) ![picture](https://a.b/c.png)\n\n<img src=x>\u202e"
    )
    assert rendered(text).replace("\n", "") == (
        "<p>See <strong>the <em>page</em></strong> of <code>a*b*c</code> &lt;b&gt;,at "
        '<a href="https://a.b/c?d=1&amp;e">x</a>.</p><ul><li>*no*</li></ul>'
        '<p>[bad](javascript:alert(1)) !<a href="https://a.b/c.png">picture</a></p>'
        "<p>&lt;img src=x&gt;\\u202e</p>"
    )


def test_wrong_places_and_empty_projects_are_refused(project: Reported) -> None:
    status, said = project.report("--output", "no/such/folder.html")
    assert (status, "--output: no/such/folder.html must be a file in a folder" in said) == (2, True)
    status, said = project.report("--output", str(project.folder))
    assert (status, "--output" in said) == (2, True)
    (project.folder / "warehouse").rename(project.folder / "moved")
    status, said = project.report()
    assert status == 2
    assert "the table does not exist yet; to fill it: windows-pipeline run flights" in said


def test_report_needs_no_spark(project: Reported) -> None:
    printed = call_alone(
        project.folder, "report", "flights", heavy={"pyspark", "great_expectations"}
    )
    assert "flights.html: written" in printed


@pytest.mark.parametrize(
    ("when", "severity", "expected"),
    [
        ("record_count >= 10 and a > 60", "a", Measure("a", 60.0, keeps_smallest=False)),
        ("record_count < 4", "-record_count", Measure("record_count", 4.0, keeps_smallest=True)),
        ("a > 1 or a > 2.5", "1", Measure("a", None, keeps_smallest=False)),
        ("a > b", "-a", Measure("a", None, keeps_smallest=True)),
        ("a > -2.5 and ba < 3", "a", Measure("a", -2.5, keeps_smallest=False)),
        ("text = 'x'", "1", Measure("record_count", None, keeps_smallest=False)),
    ],
)
def test_what_a_rule_watches(when: str, severity: str, expected: Measure) -> None:
    rule = Rule(when=when, severity=severity)
    assert measure_of(rule, {"record_count", "a", "b", "ba"}) == expected


def test_a_duration_is_rounded_up() -> None:
    """So that the grace that is named catches what it is said to catch."""
    hour = 3_600_000
    texts = [rounded_up(ms) for ms in (1, 999, 60_001, hour, hour + 1, 25 * hour + 1)]
    assert texts == [
        *("1 millisecond", "999 milliseconds", "1 minute 1 second"),
        *("1 hour", "1 hour 1 minute", "1 day 2 hours"),
    ]


def _worst_id() -> str:
    """The id of the worst window's alert: noon and a half to half past one, as written."""
    bounds = "2013-01-01T12:30:00.000Z", "2013-01-01T13:30:00.000Z"
    return digest(["flights", "hourly", "disruption", [HOSTILE], *bounds, None])
