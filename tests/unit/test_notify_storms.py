"""Storms, quiet hours and limits: fewer messages, and none lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.notified import NOW, Notified
from tests.support.pipeline_texts import changed
from tests.support.receivers import Receiver, receiver
from windows_pipeline.notify.events import Event
from windows_pipeline.notify.pipeline_events import PipelineEvent
from windows_pipeline.notify.plan import Message
from windows_pipeline.notify.texts import title


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as running:
        yield running


def project(folder: Path, hook: Receiver, field: str) -> Notified:
    return Notified(folder, f"  people:\n    webhook: {{url: '{hook.url}'}}\n    {field}\n")


def storm(made: Notified, first: int, last: int) -> None:
    made.happen(*({"key": f"K{key:02}", "severity": float(key)} for key in range(first, last)))


def test_a_storm_is_one_message_with_a_count(tmp_path: Path, hook: Receiver) -> None:
    """The worst are named; a grouped message has all events."""
    made = project(tmp_path, hook, "group: 3")
    storm(made, 0, 3)
    assert len(made.deliver()["people"].messages) == 3
    storm(made, 10, 35)
    sent = made.deliver()["people"]
    assert (sent.messages, sent.events) == (("flights: 25 episodes: 25 of disruption",), 25)
    body = hook.bodies[-1]
    assert (body["count"], len(body["events"])) == (25, 25)
    lines = body["text"].splitlines()
    assert "disruption opened for K34" in lines[1]
    assert (len(lines), lines[-2]) == (23, "and 5 more")
    assert lines[-1] == "each episode: windows-pipeline episodes flights"


def test_a_count_names_what_is_counted(tmp_path: Path) -> None:
    """Failed runs, overdue tables and early warnings are no episodes."""
    pipeline = Notified(tmp_path, "  people: {file: out.ndjson}\n").pipeline
    at = datetime(2013, 1, 1, tzinfo=UTC)

    def event(rule: str, what: str, key: str) -> Event:
        end = at + timedelta(hours=1)
        return Event(
            id=f"{rule}{key}", windows="hourly", arrival_unit=at.date(), rule=rule, key=key,
            event=what, window_start=at, window_end=end, record_count=1, aggregates={},
            severity=1.0, since=at, until=end, correction=None, stands=True,
        )  # fmt: skip

    def of_pipeline(what: str, name: str) -> PipelineEvent:
        return PipelineEvent(name, what, name, at, "text", at)

    episodes = [event("disruption", "opened", "A"), event("quiet", "ended", "B")]
    warnings = [event("disruption", "warned", "C"), event("disruption", "confirmed", "D")]
    failed = [of_pipeline("failed", "run a"), of_pipeline("failed", "run b")]
    overdue = [of_pipeline("overdue", "flights/arrival_log")]
    one = Message((*failed, *episodes, *warnings, *overdue))
    assert title(pipeline, one) == (
        "flights: 2 episodes: 1 of disruption, 1 of quiet; 2 early warnings: 2 of disruption; "
        "2 failed runs; 1 overdue table"
    )
    assert title(pipeline, Message(tuple(failed))) == "flights: 2 failed runs"
    assert title(pipeline, Message((failed[0], episodes[0]))) == (
        "flights: 1 episode: 1 of disruption; 1 failed run"
    )


def test_a_message_is_not_too_large(tmp_path: Path, hook: Receiver) -> None:
    """Receivers refuse large ones, and would so for ever; the count is right all the same."""
    made = project(tmp_path, hook, "group: 3")
    values = json.dumps({"listed": [0.5] * 10_000, "text": "x" * 10_000})
    made.happen(*({"key": f"K{key}", "aggregates": values} for key in range(600)))
    assert made.deliver()["people"].events == 600
    (body,) = hook.bodies
    assert (body["count"], len(body["events"])) == (600, 500)
    shown = body["events"][0]["aggregates"]
    assert (len(shown["listed"]), len(shown["text"])) == (100, 100)
    made.happen({"key": "alone", "aggregates": values})
    made.deliver()
    assert len(hook.bodies[-1]["text"]) < 1_000


def test_a_rate_limit_holds_and_joins_messages(tmp_path: Path, hook: Receiver) -> None:
    made = project(tmp_path, hook, "rate_limit: {messages: 3, per: 1 hour}")
    storm(made, 0, 2)
    assert len(made.deliver()["people"].messages) == 2
    storm(made, 2, 5)
    assert len(made.deliver(NOW + timedelta(minutes=1))["people"].messages) == 1
    storm(made, 5, 6)
    sent = made.deliver(NOW + timedelta(minutes=2))["people"]
    assert (sent.events, sent.waiting, sent.failed) == (0, 1, False)
    assert sent.reason == "the rate limit is reached"
    # Held for days, it is sent all the same.
    assert made.deliver(NOW + timedelta(days=5))["people"].events == 1
    assert [len(body["events"]) for body in hook.bodies] == [1, 1, 3, 1]


def test_nothing_is_sent_in_quiet_hours_and_all_after_them(tmp_path: Path, hook: Receiver) -> None:
    """By the clock of the zone: 22:00 in Berlin is 21:00 UTC in winter and 20:00 in summer."""
    made = project(tmp_path, hook, "quiet: {hours: 22:00-06:00, zone: Europe/Berlin}")
    made.happen({})

    def sent(at: str) -> int:
        now = datetime.fromisoformat(f"{at}+00:00")
        return made.deliver(now, dry_run=True)["people"].events

    winter = ("2013-01-01 20:59", "2013-01-01 21:00", "2013-01-02 04:59", "2013-01-02 05:00")
    assert [sent(at) for at in winter] == [1, 0, 0, 1]
    held = made.deliver(datetime(2013, 1, 2, 4, 59, tzinfo=UTC))["people"]
    assert (held.waiting, held.reason, held.failed) == (1, "quiet until 06:00", False)
    # What was held once is sent however old it is by then.
    summer = ("2013-07-01 19:59", "2013-07-01 20:00", "2013-07-02 04:00")
    assert [sent(at) for at in summer] == [1, 0, 1]
    assert made.deliver(datetime(2013, 1, 2, 5, tzinfo=UTC))["people"].events == 1
    by_day = project(tmp_path, hook, "quiet: {hours: 06:00-22:00, zone: Europe/Berlin}")
    by_day.number = made.number
    by_day.happen({"key": "LGA"})
    at = [datetime(2013, 1, 2, hour, tzinfo=UTC) for hour in (4, 5, 20, 21)]
    sent_at = [by_day.deliver(now, dry_run=True)["people"].events for now in at]
    assert sent_at == [1, 0, 0, 1]


def test_the_most_urgent_come_first_in_a_storm(tmp_path: Path, hook: Receiver) -> None:
    """Severities of two rules are of two kinds: a rule's level decides before them."""
    made = project(tmp_path, hook, "group: 3")
    made.text = changed(
        "        severity: -record_count",
        "        severity: -record_count\n        level: critical",
    )
    storm(made, 10, 35)
    made.happen({"key": "silent", "rule": "quiet", "severity": -3.0})
    made.deliver()
    assert "quiet opened for silent" in hook.bodies[-1]["text"].splitlines()[1]
