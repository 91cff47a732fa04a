"""A topic of a real broker as a target: each event once or, where a command is killed, again."""

from __future__ import annotations

import json
import resource
import signal
import sys
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from tests.support.kafka import KafkaBroker, messages_of
from tests.support.notified import NOW, Notified
from tests.support.pipeline_texts import FLIGHTS
from windows_pipeline.notify import deliver, note_failure

LOGIN = (
    "{security.protocol: SASL_PLAINTEXT, sasl.mechanism: PLAIN, sasl.jaas.config: "
    "'org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="${env:KAFKA_USER}" password="${env:KAFKA_PASSWORD}";\'}'
)


def to(name: str, servers: str, options: str = "{}") -> str:
    fields = f"servers: '{servers}', name: {name}, options: {options}"
    return f"  people:\n    topic: {{{fields}}}\n"


def read_messages(broker: KafkaBroker, topic: str) -> list[tuple[str | None, str, Any]]:
    """The key, the header `id` and the body of each message, by partition and offset."""
    found = []
    for message in messages_of(broker.servers, topic):
        key, body = message.key(), message.value()
        ((name, id_),) = dict(message.headers() or []).items()
        assert name == "id"
        assert isinstance(id_, bytes)
        text = None if key is None else key.decode()
        found.append((text, id_.decode(), json.loads(body or b"")))
    return found


def killed_at_its_line(project: Notified) -> None:
    """Delivers, and dies by the first byte that it writes to the log of deliveries."""
    pipeline, settings = project.pipeline, project.settings
    sys.dont_write_bytecode = True
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (project.log.stat().st_size,) * 2)
    deliver(pipeline, settings, now=NOW)


def test_each_event_is_a_message_under_its_key(
    tmp_path: Path, broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its body is a webhook's; the log has it once the brokers do; nothing is sent twice."""
    monkeypatch.setenv("KAFKA_USER", "writer")
    monkeypatch.setenv("KAFKA_PASSWORD", "right")
    broker.create_topic("alerts", 3)
    text = FLIGHTS.replace("  hourly:\n", "  hourly:\n    key: [carrier, origin]\n")
    # A file has an episode's events in one line: here each episode has one event.
    targets = f"{to('alerts', broker.login_servers, LOGIN)}  file:\n    file: sent\n    group: 99\n"
    project = Notified(tmp_path, targets, text=text)
    first, *others = ({"carrier": "ÄA", "origin": origin} for origin in ("JFK", "", None))
    project.happen({"key": first}, *({"key": key} for key in others))
    note_failure(project.pipeline, project.settings.warehouse, "run", "no")
    assert project.deliver(dry_run=True)["people"].events == 4
    assert read_messages(broker, "alerts") == []
    for sent in project.deliver().values():
        assert (sent.events, len(sent.messages), sent.failed) == (4, 4, False)
    found = read_messages(broker, "alerts")
    in_file = map(json.loads, (project.log.parent / "sent").read_text().splitlines())
    assert sorted((body for _, _, body in found), key=str) == sorted(in_file, key=str)
    for key, id_, body in found:
        assert id_ == body["id"]
        of_key = body["events"][0].get("key")
        assert (None if key is None else json.loads(key)) == of_key
    lines = [json.loads(line) for line in project.log.read_text().splitlines()]
    logged = sorted(line["message"] for line in lines if line["target"] == "people")
    assert logged == sorted(id_ for _, id_, _ in found)
    # Events of an episode are messages of their own, in order.
    project.happen({"key": first, "event": "worsened"}, {"key": first, "event": "ended"})
    assert len(project.deliver()["people"].messages) == 2
    assert project.deliver()["people"].events == 0
    of_first = [
        body["events"]
        for key, _, body in read_messages(broker, "alerts")
        if key == '{"carrier":"ÄA","origin":"JFK"}'
    ]
    assert [[event["event"] for event in of] for of in of_first] == [
        ["opened"], ["worsened"], ["ended"],
    ]  # fmt: skip


def test_a_killed_command_writes_its_message_again_with_the_same_id(
    tmp_path: Path, broker: KafkaBroker
) -> None:
    """At least once: it is killed between the brokers' acknowledgement and its line in the log."""
    broker.create_topic("killed", 1)
    project = Notified(tmp_path, to("killed", broker.servers))
    project.happen({})
    project.deliver()
    project.happen({"key": "LGA"})
    command = get_context("spawn").Process(target=killed_at_its_line, args=(project,))
    command.start()
    command.join()
    assert command.exitcode == -signal.SIGXFSZ
    assert [key for key, _, _ in read_messages(broker, "killed")] == ["JFK", "LGA"]
    # Meanwhile the episode went on.
    project.happen({"key": "LGA", "event": "worsened"})
    assert project.deliver()["people"].events == 2
    ids = [id_ for _, id_, _ in read_messages(broker, "killed")]
    assert (len(ids), len(set(ids)), ids[1]) == (4, 3, ids[2])
    assert project.deliver()["people"].events == 0


def test_what_a_broker_refuses_stays_due(
    tmp_path: Path, broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason says what to do, and has no secret."""
    monkeypatch.setenv("KAFKA_USER", "writer")
    monkeypatch.setenv("KAFKA_PASSWORD", "hunter2x-hunter2x")
    project = Notified(tmp_path, to("refused", broker.login_servers, LOGIN))
    project.happen({}, {"key": "y" * 3_000}, {"key": "LGA"})

    def reason() -> str:
        sent = project.deliver()["people"]
        assert (sent.failed, sent.events, sent.waiting) == (True, 0, 3)
        return sent.reason

    assert reason().startswith("topic refused: the brokers refuse the log-in; correct sasl.mech")
    monkeypatch.setenv("KAFKA_USER", "guest")
    monkeypatch.setenv("KAFKA_PASSWORD", "right")
    assert reason().startswith("topic refused: the brokers do not let this user write to the topic")
    monkeypatch.setenv("KAFKA_USER", "writer")
    assert reason() == (
        "topic refused: the brokers have no topic of this name; create the topic, or correct the "
        "name"
    )
    assert "hunter2x" not in project.log.read_text()
    broker.create_topic("refused", 1, max_message_bytes="3000")
    sent = project.deliver(NOW)["people"]
    assert (sent.events, sent.waiting, sent.set_aside) == (2, 0, 1)
    (refused,) = sent.refused
    assert refused.endswith("too large for the topic; raise its max.message.bytes")
    assert [key for key, _, _ in read_messages(broker, "refused")] == ["JFK", "LGA"]
