"""Topics as targets, without a broker: texts of the environment, a missing package, no answer."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from tests.support.notified import Notified
from windows_pipeline.config.alerts_topic import login_of
from windows_pipeline.notify import WrongTargetsError
from windows_pipeline.notify.events import read_events
from windows_pipeline.notify.not_sent import NotSentError
from windows_pipeline.notify.plan import Message
from windows_pipeline.notify.topic import to_topic

TOPIC = """  people:
    topic:
      servers: ${env:SERVERS}
      name: ${env:TOPIC}
      options:
        security.protocol: ${env:PROTOCOL}
        sasl.mechanism: SCRAM-SHA-512
        sasl.jaas.config: ${env:JAAS}
        ssl.truststore.type: PEM
        ssl.truststore.certificates: ${env:CA}
"""
JAAS = 'o.a.ScramLoginModule required username="me" password="hunter2x";'
RIGHT = {"SERVERS": "127.0.0.1:1", "TOPIC": "t", "PROTOCOL": "SASL_SSL", "JAAS": JAAS}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("SERVERS", "hunter2x", r"servers: \$\{env:SERVERS\}: must name each broker with its port"),
        ("TOPIC", "hunter2x/", r"name: \$\{env:TOPIC\}: is not the name of a topic; write 1 to"),
        ("PROTOCOL", "hunter2x", r"options\.security\.protocol: \$\{env:PROTOCOL\}: must be PLAI"),
        ("JAAS", "hunter2x", r"options\.sasl\.jaas\.config: \$\{env:JAAS\}: must name a module,"),
        ("PROTOCOL", "SSL", r"options\.sasl\.mechanism: has no effect without a log-in; write se"),
        (
            "CA",
            "hunter2x",
            r"options: must be what Kafka's client takes, but it says: .*ssl\.truststor",
        ),
    ],
)
def test_a_wrong_text_of_the_environment_is_named_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    """Its events wait, and the other targets are sent theirs."""
    project = Notified(tmp_path, f"{TOPIC}  file:\n    file: sent\n")
    project.happen({})
    for variable, right in {**RIGHT, "CA": "x", name: value}.items():
        monkeypatch.setenv(variable, right)
    with pytest.raises(WrongTargetsError, match=rf"notify\.people\.topic\.{said}") as wrong:
        project.deliver()
    assert "hunter2x" not in str(wrong.value)
    assert [(one.events, one.waiting) for one in wrong.value.sent] == [(0, 1), (1, 0)]
    assert project.deliver(dry_run=True)["people"].events == 1


def test_a_missing_package_is_named_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Notified(tmp_path, "  people:\n    topic: {servers: 'a:1', name: t}\n")
    project.happen({})
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(WrongTargetsError) as wrong:
        project.deliver()
    assert str(wrong.value) == (
        "flights: notify.people.topic: the package confluent-kafka must be installed, but is not; "
        "install the extra `kafka`: pip install 'windows-pipeline[kafka]'"
    )


def test_without_a_broker_a_message_ends_in_time(tmp_path: Path) -> None:
    """Nothing else is said by the client, whose texts have addresses."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    fields = f"{{servers: '127.0.0.1:{port}', name: t}}"
    project = Notified(tmp_path, f"  people:\n    topic: {fields}\n")
    project.happen({})
    pipeline = project.pipeline
    topic = pipeline.notify["people"].topic
    assert topic is not None
    send = to_topic(pipeline, "topic", topic, limit_s=0.5)
    message = Message(tuple(read_events(pipeline, project.settings.warehouse)))
    with pytest.raises(NotSentError) as no:
        send(message)
    assert str(no.value) == (
        "topic t: no broker acknowledged the message in time; start the brokers, as many as the "
        "topic's min.insync.replicas, or correct servers and security.protocol"
    )
    assert not no.value.may_help


@pytest.mark.parametrize(
    ("jaas", "login"),
    [
        (JAAS, ("me", "hunter2x")),
        ('a.B required password="a\\"b\\\\c;" username="" x="y" ;\n', ("", 'a"b\\c;')),
        ('a.B required username="me";', None),
        ('a.B required username="me" password="p"', None),
        ('a.B required username="me" password="a\\nb";', None),
        ('a.B optional username="me" password="p";', None),
        ("", None),
    ],
)
def test_user_and_password_are_read_as_java_does(jaas: str, login: tuple[str, str] | None) -> None:
    assert login_of(jaas) == login
