"""Writes messages to a Kafka topic; needs the extra `kafka`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from windows_pipeline.config import Pipeline
from windows_pipeline.config.alerts_topic import AlertsTopic, login_of, topic_problems
from windows_pipeline.notify.not_sent import NotSentError
from windows_pipeline.notify.pipeline_events import AnyEvent, PipelineEvent
from windows_pipeline.notify.plan import Message
from windows_pipeline.notify.texts import body
from windows_pipeline.notify.whole_lines import json_line
from windows_pipeline.text.problems import FieldPath
from windows_pipeline.text.references import position, resolved, without_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from confluent_kafka import KafkaError

_LIMIT_S = 20
"""How long the client tries to write a message."""
_CLIENT = {
    "acks": "all",  # in-sync replicas
    "linger.ms": 0,
    # In each partition the key's events stay in order, and a key's partition is that of Java's.
    "partitioner": "murmur2_random",
    # A topic that the brokers do not know at once may appear only while it is being made.
    "topic.metadata.propagation.max.ms": 0,
    # Errors come as events; the client's log would show addresses.
    "log_level": 0,
}
_NAMES: dict[str, tuple[str, ...]] = {
    "sasl.jaas.config": (),
    "ssl.truststore.type": (),
    "ssl.truststore.location": ("ssl.ca.location",),
    "ssl.truststore.certificates": ("ssl.ca.pem",),
    "ssl.keystore.type": (),
    "ssl.keystore.location": ("ssl.certificate.location", "ssl.key.location"),
    "ssl.keystore.certificate.chain": ("ssl.certificate.pem",),
    "ssl.keystore.key": ("ssl.key.pem",),
}
"""The client's own names of Kafka's options, where these differ; Kafka's PEM files hold both."""
_REFUSED = {
    "_AUTHENTICATION": "the brokers refuse the log-in; correct sasl.mechanism and the user and "
    "password of sasl.jaas.config, or have the user created",
    "_SSL": "the connection cannot be encrypted, as where the brokers' certificate is not trusted; "
    "correct ssl.truststore.location, or the host names in servers",
}
"""Errors of a connection that no further attempt mends, by the client's names."""
_REASONS = {
    **_REFUSED,
    **dict.fromkeys(
        ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"),
        "the brokers have no topic of this name; create the topic, or correct the name",
    ),
    "TOPIC_AUTHORIZATION_FAILED": "the brokers do not let this user write to the topic; have the "
    "user allowed to write to it and to describe it, or log in as another by sasl.jaas.config",
    **dict.fromkeys(
        ("_MSG_TIMED_OUT", "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"),
        "no broker acknowledged the message in time; start the brokers, as many as the topic's "
        "min.insync.replicas, or correct servers and security.protocol",
    ),
}
_OF_CONTENT = {
    "MSG_SIZE_TOO_LARGE": "the message is too large for the topic; raise its max.message.bytes",
    "INVALID_RECORD": "the topic does not take the message's content; correct its validation",
}
"""What the topic says of one message, by the client's names of errors."""


def to_topic(
    pipeline: Pipeline,
    field: str,
    topic: AlertsTopic,
    ui_url: str | None = None,
    limit_s: float = _LIMIT_S,
) -> Callable[[Message], None]:
    """The way to write a pipeline's messages to a topic.

    A message counts as sent once all in-sync replicas have it.

    Args:
        pipeline: The pipeline.
        field: Where the file has the topic.
        topic: The topic.
        ui_url: The address of Dagster's UI, for links; None for no links.
        limit_s: How long the client tries to write a message.

    Raises:
        ConfigError: A text refers to an environment variable that is not set.
        ValueError: A text with such a reference is wrong, the client does not take the options, or
            it is not installed.
    """
    name, client = _client(field, topic)
    try:
        from confluent_kafka import KafkaException, Producer
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{field}: the package confluent-kafka must be installed, but is not; install the "
            "extra `kafka`: pip install 'windows-pipeline[kafka]'"
        ) from error
    refused: list[str] = []

    def failed(error: KafkaError) -> None:
        if error.name() in _REFUSED:
            refused.append(error.name())

    limits = {"message.timeout.ms": round(limit_s * 1_000), "error_cb": failed}
    try:
        producer = Producer({**_CLIENT, **client, **limits})
    except KafkaException as error:
        raise ValueError(
            f"{field}.options: must be what Kafka's client takes, but it says: "
            f"{_in_kafkas_names(error.args[0].str())}; correct the options"
        ) from None

    def send(message: Message) -> None:
        outcomes: list[KafkaError | None] = []
        try:
            producer.produce(
                name,
                value=json_line(body(pipeline, message, ui_url)),
                key=_key(message.events[0]),
                headers={"id": message.id},
                on_delivery=lambda error, _: outcomes.append(error),
            )
        except KafkaException as error:
            raise _not_sent(name, error.args[0].name()) from error
        while not outcomes and not refused:
            producer.poll(0.1)
        if not outcomes:
            producer.purge()
            raise _not_sent(name, refused[0])
        if outcomes[0] is not None:
            raise _not_sent(name, outcomes[0].name())

    return send


def _client(field: str, topic: AlertsTopic) -> tuple[str, Mapping[str, str]]:
    """The topic's name and the client's options, with the values of environment variables.

    Raises:
        ConfigError: A variable is not set.
        ValueError: A value is wrong; the message has no value of a variable.
    """
    texts: dict[FieldPath, str] = {("servers",): topic.servers, ("name",): topic.name}
    texts |= {("options", option): text for option, text in topic.options.items()}
    servers, name = (resolved(text, may_be_secret=False) for text in (topic.servers, topic.name))
    options = {option: resolved(text) for option, text in topic.options.items()}
    for problem in topic_problems(servers, name, options):
        otherwise = f"{field}.{'.'.join(problem.path)}"
        where = position(texts.get(problem.path, ""), otherwise)
        hidden = "" if problem.value is None else "; the value is not shown"
        raise ValueError(f"{where}: {problem.text}{hidden}")
    client = {
        own: text for option, text in options.items() for own in _NAMES.get(option, (option,))
    }
    login = login_of(options.get("sasl.jaas.config", ""))
    if login is not None:
        client |= dict(zip(("sasl.username", "sasl.password"), login, strict=True))
    return name, {**client, "bootstrap.servers": servers}


def _in_kafkas_names(text: str) -> str:
    """What the client says of its options, by the names that the file has for them."""
    for option, names in _NAMES.items():
        for name in names:
            text = text.replace(name, option)
    return without_values(text)


def _key(event: AnyEvent) -> bytes | None:
    """A text as it is, any other key as JSON; None where all records have one key, or none."""
    if isinstance(event, PipelineEvent) or event.key is None:
        return None
    if isinstance(event.key, str):
        return event.key.encode(errors="backslashreplace")
    return json.dumps(event.key, ensure_ascii=False, separators=(",", ":")).encode()


def _not_sent(name: str, error: str) -> NotSentError:
    """What to say of a client's error; the client has tried for as long as a try may help."""
    reason = (_REASONS | _OF_CONTENT).get(error, f"Kafka's client says {error}")
    return NotSentError(f"topic {name}: {reason}", may_help=False, of_content=error in _OF_CONTENT)
