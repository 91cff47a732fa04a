"""What targets are notified: each event once, nothing lost, nothing old; with real receivers."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path

import pytest

from tests.support.command_line import call
from tests.support.notified import DAY, NOW, SINCE, Notified
from tests.support.pipeline_texts import FLIGHTS, changed
from tests.support.receivers import Receiver, receiver
from tests.support.written_tables import write_rows
from windows_pipeline.notify import WrongTargetsError, note_failure
from windows_pipeline.notify.delivered import BusyError, delivered_log
from windows_pipeline.storage.catalog import specs_of


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as running:
        yield running


@pytest.fixture
def project(tmp_path: Path, hook: Receiver, monkeypatch: pytest.MonkeyPatch) -> Notified:
    monkeypatch.setenv("HOOK", hook.url)
    return Notified(tmp_path, "  people:\n    webhook: {url: '${env:HOOK}'}\n")


def test_the_end_of_a_silence_says_how_long_it_was(project: Notified, hook: Receiver) -> None:
    silence = {"rule": "quiet", "record_count": 0, "severity": None, "event": "ended"}
    # It began a millisecond after the last record.
    until = SINCE + timedelta(hours=36)
    project.happen({**silence, "since": SINCE + timedelta(milliseconds=1), "until": until})
    project.deliver()
    assert hook.bodies[0]["events"][0]["length_ms"] == 36 * 3_600_000 - 1
    first, condition, worst, began, _ = hook.bodies[0]["text"].splitlines()
    assert condition.startswith("condition: record_count < 4 and ")
    assert first == (
        "flights hourly: quiet ended for JFK at 2013-01-02 20:00:00 UTC, after 1 d 12 h"
    )
    assert ", 0 records, " in worst
    assert began == "it began at 2013-01-01 08:00:00.001 UTC"


@pytest.mark.parametrize(
    ("declared", "key", "named"),
    [
        ("[carrier, origin]", {"carrier": "AA", "origin": "JFK"}, "AA,JFK"),
        ("[carrier, origin]", {"carrier": "AA", "origin": None}, "AA,"),
        ("[]", None, "all records"),
        # A definition's own key may be null (rule A9).
        ("carrier", None, "null"),
    ],
)
def test_a_message_names_the_key_as_commands_take_it(
    tmp_path: Path,
    hook: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    declared: str,
    key: object,
    named: str,
) -> None:
    monkeypatch.setenv("HOOK", hook.url)
    text = FLIGHTS.replace("  hourly:\n", f"  hourly:\n    key: {declared}\n")
    project = Notified(tmp_path, "  people:\n    webhook: {url: '${env:HOOK}'}\n", text=text)
    project.happen({"key": key})
    project.deliver()
    assert hook.bodies[0]["text"].startswith(f"flights hourly: disruption opened for {named} since")


def test_an_event_is_sent_once(project: Notified, hook: Receiver) -> None:
    """The rows of an episode that are due at once are one message."""
    first = project.happen({}, {"event": "worsened", "severity": 70.0})
    other = project.happen({"key": "LGA", "severity": None})
    sent = project.deliver()["people"]
    assert (len(sent.messages), sent.events, sent.failed) == (2, 3, False)
    assert [[event["id"] for event in body["events"]] for body in hook.bodies] == [first, other]
    assert hook.ids == [body["id"] for body in hook.bodies]
    (opened, _), (alone,) = (body["events"] for body in hook.bodies)
    assert opened == {
        "id": "id1", "windows": "hourly", "rule": "disruption", "key": "JFK", "event": "opened",
        "severity": 61.5, "since": "2013-01-01T08:00:00.000Z", "until": "2013-01-01T09:01:00.000Z",
        "window_start": "2013-01-01T08:00:00.000Z", "window_end": "2013-01-01T09:00:00.000Z",
        "record_count": 12, "aggregates": {"avg_dep_delay": 61.5}, "arrival_unit": "2013-01-01",
        "length_ms": 3_660_000, "correction": None,
        "trace": "windows-pipeline trace flights JFK '2013-01-01 09:00:00' --windows hourly",
        "when": "record_count >= 10 and avg_dep_delay > 60",
    }  # fmt: skip
    assert (alone["key"], alone["severity"]) == ("LGA", None)
    assert hook.bodies[0]["text"].startswith(
        "flights hourly: disruption worsened for JFK since 2013-01-01 08:00:00 UTC, severity 70\n"
    )
    traced = "its records: windows-pipeline trace flights JFK '2013-01-01 09:00:00'"
    assert hook.bodies[0]["text"].endswith(f"\n{traced} --windows hourly")
    assert project.deliver()["people"].events == 0
    project.happen({"event": "ended"})
    assert project.deliver()["people"].events == 1
    assert hook.events == [
        ("JFK", "opened"), ("JFK", "worsened"), ("LGA", "opened"), ("JFK", "ended"),
    ]  # fmt: skip


def test_a_message_says_what_the_file_says_of_the_rule(project: Notified, hook: Receiver) -> None:
    """Who gets it needs to know how urgent it is, whose it is, and what to do."""
    about = {
        "description": "Long delays. Planes <wait>.",
        "level": "critical",
        "owner": "team:ops",
        "runbook": "https://wiki.example.org/delays",
    }
    lines = "".join(f"        {name}: {value}\n" for name, value in about.items())
    project.text = changed(
        "        severity: avg_dep_delay", f"{lines}        severity: avg_dep_delay"
    )
    project.happen({}, {"key": "LGA", "rule": "quiet", "severity": -1.0})
    project.deliver()
    disruption, quiet = hook.bodies
    first, *more = disruption["text"].splitlines()
    assert first.endswith(", severity 61.5, level critical")
    assert more[:4] == [
        about["description"],
        "condition: record_count >= 10 and avg_dep_delay > 60",
        "owner: team:ops",
        "runbook: https://wiki.example.org/delays",
    ]
    assert {name: disruption["events"][0][name] for name in about} == about
    assert "level" not in quiet["text"]
    assert not about.keys() & quiet["events"][0].keys()


def test_a_message_has_links_and_local_times(
    tmp_path: Path, hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the check of the rule, or the table's page, if the settings name the address of the UI."""
    monkeypatch.setenv("HOOK", hook.url)
    zone = "departed_at: {type: timestamp, zone: Europe/Berlin}"
    text = changed("departed_at: timestamp", zone).replace(
        "windows:", "expect_every: 1 day\nwindows:", 1
    )
    people = "  people:\n    webhook: {url: '${env:HOOK}'}\n    group: 2\n"
    project = Notified(tmp_path, people, text=text, ui_url="https://dagster.example.org/a/")
    page = "https://dagster.example.org/a/assets/flights"
    check = f"{page}/hourly/alerts?view=checks&checkDetail=alert_disruption"
    project.happen({}, {"key": "LGA", "event": "ended"})
    project.deliver()
    opened, ended = (body["text"].splitlines() for body in hook.bodies)
    assert (
        "since 2013-01-01 08:00:00 UTC (2013-01-01 09:00:00 CET, Europe/Berlin), sev" in opened[0]
    )
    assert "at 2013-01-01 09:02:00 UTC (2013-01-01 10:02:00 CET, Europe/Berlin), aft" in ended[0]
    window = "2013-01-01 08:00:00 to 2013-01-01 09:00:00 UTC"
    local = "2013-01-01 09:00:00 CET to 2013-01-01 10:00:00 CET, Europe/Berlin"
    assert opened[2].startswith(f"worst window: {window} ({local}), 12 records")
    assert opened[-1] == f"in Dagster: {check}"
    assert hook.bodies[0]["events"][0]["link"] == check
    # One link for several episodes of a rule; none for a failed run.
    project.happen({"key": "EWR"}, {"key": "BOS"})
    note_failure(project.pipeline, project.settings.warehouse, "run", "no")
    project.deliver(datetime.now(UTC), every=True)
    *_, last, each, link = hook.bodies[-1]["text"].splitlines()
    assert (last.startswith("flights: run failed"), link) == (True, f"in Dagster: {check}")
    assert each == "each episode: windows-pipeline episodes flights"
    log = specs_of(project.pipeline, project.settings.warehouse).arrival_log
    write_rows(log, [{"arrival_unit": DAY, "rows": 5}])
    project.deliver(datetime.now(UTC) + timedelta(days=3))
    assert hook.bodies[-1]["text"].endswith(f"\nin Dagster: {page}/arrival_log")


def test_an_outage_loses_nothing(project: Notified, hook: Receiver) -> None:
    """Not even what becomes too old meanwhile; and later events come after earlier ones."""
    project.happen({}, {"key": "LGA"})
    hook.answers = [500, 503, 429]
    sent = project.deliver()["people"]
    assert (sent.failed, sent.waiting, sent.reason) == (True, 2, "answered 429")
    assert (len(hook.ids), hook.bodies) == (3, [])
    week = NOW + timedelta(days=7)
    hook.answers = [404]  # not tried again at once
    assert project.deliver(week)["people"].reason == "answered 404"
    project.happen({"event": "ended", "arrival_unit": DAY + timedelta(days=7)})
    sent = project.deliver(week)["people"]
    assert (sent.events, sent.failed) == (3, False)
    assert hook.events == [("JFK", "opened"), ("JFK", "ended"), ("LGA", "opened")]
    # An attempt that succeeds after others is sent with the same id.
    project.happen({"key": "EWR", "arrival_unit": DAY + timedelta(days=7)})
    hook.answers = [500]
    assert not project.deliver(week)["people"].failed
    assert hook.ids[-1] == hook.ids[-2] == hook.bodies[-1]["id"]


def test_a_command_that_is_killed_sends_again_with_the_same_ids(
    project: Notified, hook: Receiver
) -> None:
    """Between a message and its line in the log; a torn line is as if it were not there."""
    project.happen({}, {"key": "LGA"})
    command = get_context("spawn").Process(target=project.deliver)

    def kill_at_the_second() -> None:
        if len(hook.bodies) == 2:
            command.kill()

    hook.before_answer = kill_at_the_second
    command.start()
    command.join()
    assert command.exitcode == -signal.SIGKILL
    hook.before_answer = None
    with project.log.open("a") as log:
        log.write('{"id": "id2", "target": "peo')
    project.deliver()
    assert hook.events == [("JFK", "opened"), ("LGA", "opened"), ("LGA", "opened")]
    assert hook.ids[1] == hook.ids[2]
    assert project.deliver()["people"].events == 0
    lines = project.log.read_text().splitlines()
    assert len(lines) == 2
    last = json.loads(lines[-1])
    assert (last["id"], last["outcome"]) == ("id2", "sent")


def test_old_events_are_not_sent_unless_asked(project: Notified, hook: Receiver) -> None:
    """As those of a backfill or a rebuild; an event's age counts from the end of its day."""
    project.happen({}, {"key": "LGA", "arrival_unit": DAY - timedelta(days=1)})
    just = NOW - timedelta(minutes=30) + timedelta(days=1)
    sent = project.deliver(just)["people"]
    assert (sent.events, sent.old) == (1, 1)
    assert project.deliver(just + timedelta(days=300), every=True)["people"].events == 1
    assert hook.events == [("JFK", "opened"), ("LGA", "opened")]


def test_a_rebuild_after_a_correction_sends_nothing_again(
    project: Notified, hook: Receiver
) -> None:
    """Its rows have no correction's number, and so other ids; what differs is sent."""
    until = SINCE + timedelta(hours=2)
    project.happen({"event": "ended", "correction": 1, "until": until})
    assert project.deliver()["people"].events == 1
    project.happen(
        {"event": "ended", "until": until},
        {"event": "ended", "until": until, "key": "LGA"},
        {"event": "ended", "until": until, "severity": 70.0},
    )
    assert project.deliver()["people"].events == 2
    assert sorted(key for key, _ in hook.events) == ["JFK", "JFK", "LGA"]
    assert project.deliver()["people"].events == 0


def test_a_retraction_is_sent_where_the_episode_was(project: Notified, hook: Receiver) -> None:
    """Rule E1: however old it is; nobody hears of an episode that was never sent."""
    gone = {"retracted_by": 1}
    project.happen({}, {"key": "LGA", "arrival_unit": date(2012, 1, 1)})
    project.deliver()
    project.retract("id1", "id2")
    project.happen(
        {"event": "retracted", "correction": 1},
        {"event": "retracted", "correction": 1, "key": "LGA"},
        {"event": "worsened", "key": "EWR", **gone},
    )
    sent = project.deliver(NOW + timedelta(days=300))["people"]
    assert (sent.events, sent.old) == (1, 0)
    assert hook.events == [("JFK", "opened"), ("JFK", "retracted")]
    assert "disruption retracted (correction 1) for JFK" in hook.bodies[-1]["text"]


def test_a_target_hears_what_it_asks_for(tmp_path: Path) -> None:
    """By rule, severity and event; a row without severity is sent."""
    targets = "".join(
        f"  {name}:\n    file: {name}.jsonl\n    {field}\n"
        for name, field in {
            "severe": "min_severity: 62",
            "quiet": "rules: [quiet]",
            "ends": "events: [ended]",
        }.items()
    )
    project = Notified(tmp_path, targets)
    nan = {"key": "nan", "severity": float("nan")}
    project.happen({}, {"key": "LGA", "severity": 62.0}, {"key": "EWR", "severity": None}, nan)
    project.happen({"event": "ended"}, {"rule": "quiet", "severity": 3.0})
    sent = project.deliver()
    assert {name: one.events for name, one in sent.items()} == {"severe": 3, "quiet": 1, "ends": 1}
    lines = (tmp_path / "warehouse/flights/severe.jsonl").read_text().splitlines()
    assert [json.loads(line)["events"][0]["key"] for line in lines] == ["LGA", "EWR", "nan"]
    assert json.loads(lines[-1])["events"][0]["severity"] == "NaN"


def test_early_warnings_are_sent_where_they_are_asked_for(tmp_path: Path) -> None:
    """Rule E5: a warning, and what became of it; each is of a window."""
    text = FLIGHTS.replace("    aggregates:\n", "    trigger: {}\n    aggregates:\n")
    targets = "  early: {file: early, events: [warned, withdrawn]}\n  all: {file: all}\n"
    project = Notified(tmp_path, targets, text=text)
    tables = specs_of(project.pipeline, project.settings.warehouse).of("hourly")
    row = {
        "arrival_unit": DAY, "rule": "disruption", "window_start": SINCE,
        "window_end": SINCE + timedelta(hours=1), "record_count": 11, "avg_dep_delay": 60.5,
        "severity": 60.5, "failed": [],
    }  # fmt: skip
    ended = SINCE + timedelta(hours=2)
    states = [("JFK", "open"), ("JFK", "withdrawn"), ("LGA", "open"), ("LGA", "confirmed")]
    write_rows(
        tables.early_warnings,
        [{**row, "key": key, "state": state} for key, state in states]
        + [{**row, "key": "JFK", "state": "open", "window_end": ended}],
    )
    sent = project.deliver()
    assert {name: one.events for name, one in sent.items()} == {"early": 4, "all": 0}
    lines = (tmp_path / "warehouse/flights/early").read_text().splitlines()
    found = [
        [(event["key"], event["event"], event["aggregates"]["avg_dep_delay"]) for event in of_line]
        for of_line in (json.loads(line)["events"] for line in lines)
    ]
    assert sorted(found) == [
        [("JFK", "warned", 60.5)],
        [("JFK", "warned", 60.5), ("JFK", "withdrawn", 60.5)],
        [("LGA", "warned", 60.5)],
    ]
    assert project.deliver()["early"].events == 0


def test_nothing_of_the_data_is_markup_in_slack(
    tmp_path: Path, hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK", hook.url)
    webhook = "{url: '${env:HOOK}', format: slack}"
    project = Notified(tmp_path, f"  chat:\n    webhook: {webhook}\n")
    project.happen({"key": "<!channel> & <http://x|y>\x1b[31m\u202e*a*\nb"})
    project.deliver()
    (body,) = hook.bodies
    assert set(body) == {"text", "mrkdwn"}
    assert body["mrkdwn"] is False
    first = body["text"].splitlines()[0]
    assert "for &lt;!channel&gt; &amp; &lt;http://x|y&gt;\\x1b[31m\\u202e*a*\\nb since" in first


def test_a_dry_run_notifies_nobody(project: Notified, hook: Receiver) -> None:
    project.happen({})
    sent = project.deliver(dry_run=True)["people"]
    assert (sent.events, hook.ids) == (1, [])
    assert project.deliver()["people"].events == 1


def test_no_error_shows_the_address(project: Notified, hook: Receiver) -> None:
    """It may be a secret; a redirect is not followed."""
    project.happen({})
    hook.answers = [302]
    assert project.deliver()["people"].reason == "answered 302"
    gone = hook.url.rsplit(":", 1)[0]
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HOOK", f"{gone}:1/s3cret")
        reason = project.deliver(waits_s=())["people"].reason
    assert reason == "no answer: ConnectionRefusedError"
    assert "s3cret" not in project.log.read_text()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HOOK", "ftp://s3cret")
        where = r"flights\.yaml:\d+: notify\.people\.webhook\.url: "
        value = rf"^[^:]*/{where}\$\{{env:HOOK}}: must begin with https:"
        for wrong in (
            "ftp://s3cret",
            "http://[s3cret",
            "http://s3cret:99999/",
            "https://x/s3cret x",
        ):
            patched.setenv("HOOK", wrong)
            with pytest.raises(WrongTargetsError, match=value) as no:
                project.deliver()
            assert "s3cret" not in str(no.value)
        patched.delenv("HOOK")
        # The other targets are notified all the same, and the events of this one wait.
        project.targets += "  file:\n    file: sent\n"
        with pytest.raises(WrongTargetsError, match=where) as no:
            project.deliver(NOW + timedelta(days=7))
        assert [(one.target, one.events, one.waiting) for one in no.value.sent] == [
            ("people", 0, 1), ("file", 0, 0),
        ]  # fmt: skip
        with pytest.raises(WrongTargetsError):
            project.deliver()
        assert (project.log.parent / "sent").read_text().count("\n") == 1
    assert project.deliver(NOW + timedelta(days=7))["people"].events == 1


def test_one_command_at_a_time_delivers(project: Notified, hook: Receiver) -> None:
    project.happen({})
    another = delivered_log(str(project.log.parent))
    with another, pytest.raises(BusyError, match="and another is running; wait for its end"):
        project.deliver()
    assert hook.ids == []


def test_before_the_first_run_there_is_nothing_to_send(project: Notified) -> None:
    assert project.deliver()["people"].events == 0
    (project.folder / "warehouse" / "flights").mkdir(parents=True)
    assert project.deliver()["people"].events == 0


def test_the_command_says_what_it_sent(
    project: Notified,
    hook: Receiver,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Exit status 1 where a message was not taken, 2 where the pipeline notifies nobody."""
    monkeypatch.chdir(project.folder)
    (project.folder / "pipelines").mkdir()
    text = f"{FLIGHTS}notify:\n{project.targets}"
    (project.folder / "pipelines" / "flights.yaml").write_text(text)
    (project.folder / "settings.yaml").write_text(
        "warehouse: warehouse\npipelines: pipelines\nlanding: .\nspark: {}\n"
    )

    def notify(*options: str) -> tuple[int, str]:
        return call(capfd, monkeypatch, "notify", "flights", *options)

    lacks = "nothing to send; flights/hourly/notifications: the table does not exist yet; to fill"
    status, said = notify()
    assert (status, f"{lacks} it: windows-pipeline run flights, or" in said) == (0, True), said
    # It has run, and got `notify` since then.
    write_rows(specs_of(project.pipeline, project.settings.warehouse).of("hourly").alerts, [])
    status, said = notify()
    rebuild = "windows-pipeline rebuild flights --from alerts"
    assert (status, f"{lacks} it: {rebuild}" in said) == (0, True), said
    project.happen({})
    status, said = notify()
    assert (status, "flights people: nothing to send; 1 event is older than max_age" in said) == (
        0,
        True,
    )
    assert "so that old data notifies nobody; --all sends them" in said
    status, said = notify("--all", "--dry-run")
    assert (status, hook.ids) == (0, [])
    assert "people would be sent: flights hourly: disruption opened for JFK since" in said
    hook.answers = [404]
    status, said = notify("--all")
    assert status == 1
    assert "1 event waiting, as a message was not taken: answered 404; to send again" in said
    status, said = notify("--json")
    assert (status, json.loads(said)[0]["events"]) == (0, 1)
    assert hook.events == [("JFK", "opened")]
    project.happen({"key": "LGA"}, {"key": "EWR"})
    hook.answers = [400]
    status, said = notify("--all")
    assert status == 1
    assert "people set aside: flights hourly: disruption opened for LGA since" in said
    assert "1 message of 1 event; 1 event is set aside, as the target refused them; --aga" in said
    assert "other messages; to send again: windows-pipeline notify flights --again" in said
    status, said = notify("--all", "--dry-run", "--json")
    assert (status, json.loads(said)[0]["set_aside"]) == (0, 1)
    status, said = notify("--again")
    assert (status, hook.events[-1]) == (0, ("LGA", "opened"))
    monkeypatch.setenv("HOOK", "s3cret")
    status, said = notify()
    assert (status, "s3cret" in said) == (2, False)
    assert "flights people: nothing to send; no event is left that was not sent" in said
    assert "notify.people.webhook.url: ${env:HOOK}: must begin with https://" in said
    (project.folder / "pipelines" / "flights.yaml").write_text(FLIGHTS)
    status, said = notify()
    assert status == 2
    assert "flights: must have targets under notify, but has none; add one to its file" in said
