"""The Kafka topic of a target of notifications: its brokers, and how a client reaches them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Self

from pydantic import Field, model_validator

from windows_pipeline.config.fields import Text
from windows_pipeline.config.strict import Strict, refuse
from windows_pipeline.text.problems import Problem, listed
from windows_pipeline.text.references import KEEPS_REFERENCES, ReferringText, refers

_SERVER = r"(?:[^\s,:/\[\]]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}"
_SERVERS = re.compile(rf"{_SERVER}(?:\s*,\s*{_SERVER})*")
_NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")
_OPTIONS: dict[str, tuple[str, ...]] = {
    "security.protocol": ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    "sasl.mechanism": ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
    "sasl.jaas.config": (),
    "ssl.truststore.type": ("PEM",),
    "ssl.truststore.location": (),
    "ssl.truststore.certificates": (),
    "ssl.keystore.type": ("PEM",),
    "ssl.keystore.location": (),
    "ssl.keystore.key": (),
    "ssl.keystore.certificate.chain": (),
    "ssl.key.password": (),
}
"""The options, with the values of those that have few. No other is taken: some run programs."""
_JAAS_VALUE = r'"(?:[^"\\]|\\["\\])*"'
_JAAS = re.compile(rf"\s*[\w.]+\s+required((?:\s+\w+\s*=\s*{_JAAS_VALUE})+)\s*;\s*")
_JAAS_OPTION = re.compile(rf"(\w+)\s*=\s*({_JAAS_VALUE})")


class AlertsTopic(Strict):
    """A Kafka topic that gets each event as a message, under the event's key.

    Attributes:
        servers: The brokers that the client contacts first: ``host:port``, separated by commas.
        name: The topic's name.
        options: How the client logs in and encrypts, by Kafka's own keys as under `source.kafka`;
            only those of SASL and of PEM files are taken.
    """

    servers: Annotated[Text, KEEPS_REFERENCES]
    name: Annotated[Text, KEEPS_REFERENCES]
    options: dict[str, ReferringText] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _known(self) -> Self:
        refuse(list(topic_problems(self.servers, self.name, self.options)))
        return self


def topic_problems(servers: str, name: str, options: Mapping[str, str]) -> Iterator[Problem]:
    """What is wrong with a topic; a text that refers to the environment is not looked at."""
    if not refers(servers) and not _SERVERS.fullmatch(servers):
        text = "must name each broker with its port; write them as in broker-1:9092,broker-2:9092"
        yield Problem(("servers",), servers, text)
    if not refers(name) and not _NAME.fullmatch(name):
        text = "is not the name of a topic; write 1 to 249 letters, digits, '.', '_' and '-'"
        yield Problem(("name",), name, text)
    for option, value in options.items():
        text = "" if refers(value) else _option_problem(option, value)
        if text or option not in _OPTIONS:
            of_name = f"is not an option of a target; use {listed(_OPTIONS)}"
            yield Problem(("options", option), value, text or of_name)
    protocol = options.get("security.protocol", "PLAINTEXT")
    if protocol in _OPTIONS["security.protocol"]:
        yield from _conflicts(protocol, options)


def login_of(jaas: str) -> tuple[str, str] | None:
    """The user and the password of a `sasl.jaas.config`; None if the text is no such one."""
    found = _JAAS.fullmatch(jaas)
    if found is None:
        return None
    values = {
        name: re.sub(r"\\(.)", r"\1", value[1:-1]) for name, value in _JAAS_OPTION.findall(found[1])
    }
    if not values.keys() >= {"username", "password"}:
        return None
    return values["username"], values["password"]


def _option_problem(option: str, value: str) -> str:
    """What is wrong with the value of an option; empty if nothing is."""
    values = _OPTIONS.get(option)
    if values and value not in values:
        *first, last = values
        return f"must be {', '.join(first)}{' or ' if first else ''}{last}; correct it"
    if option == "sasl.jaas.config" and login_of(value) is None:
        return (
            "must name a module, a user and a password; write it as in "
            "'org.apache.kafka.common.security.scram.ScramLoginModule required "
            'username="${env:NAME}" password="${env:NAME}";\''
        )
    return ""


def _conflicts(protocol: str, options: Mapping[str, str]) -> Iterator[Problem]:
    """Options that a protocol needs, or has no use for."""
    for option in ("sasl.mechanism", "sasl.jaas.config"):
        if protocol.startswith("SASL_") and option not in options:
            text = f"lack {option}, which security.protocol: {protocol} needs; write it"
            yield Problem(("options",), None, text)
    for option, value in options.items():
        if option not in _OPTIONS:
            continue
        kind, _, rest = option.partition(".")
        if kind == "sasl" and not protocol.startswith("SASL_"):
            text = "has no effect without a log-in; write security.protocol: SASL_SSL, or remove it"
            yield Problem(("options", option), value, text)
        if kind == "ssl" and not protocol.endswith("SSL"):
            text = "has no effect without encryption; write security.protocol: SASL_SSL or SSL"
            yield Problem(("options", option), value, f"{text}, or remove it")
        store = f"ssl.{rest.partition('.')[0]}.type"
        if store in _OPTIONS and store not in options:
            text = f"is read as PEM; write {store}: PEM, and convert a store of another form"
            yield Problem(("options", option), value, text)
