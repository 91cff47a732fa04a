"""The `notify` field of a pipeline: the targets that get notifications of episodes (rule E6)."""

from __future__ import annotations

import re
from datetime import time
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PositiveInt,
    StrictBool,
    model_validator,
)

from windows_pipeline.config.alerts_topic import AlertsTopic
from windows_pipeline.config.fields import (
    Identifier,
    PositiveDurationMs,
    Text,
    Zone,
    looks,
    matches,
)
from windows_pipeline.config.strict import Strict, refuse
from windows_pipeline.text.problems import Problem
from windows_pipeline.text.references import KEEPS_REFERENCES, ReferringText, refers

Event = Literal[
    "opened",
    "worsened",
    "ended",
    "retracted",
    "warned",
    "confirmed",
    "withdrawn",
    "failed",
    "overdue",
]
EVENTS: tuple[Event, ...] = ("opened", "worsened", "ended", "retracted", "failed", "overdue")
_WAYS = ("webhook", "email", "command", "file", "topic")
_JOINS = ("group", "rate_limit")
"""The fields that join messages."""
_DAY_MS = 86_400_000
_REFERENCE = re.compile(r"\$\{env:\w+\}")
_URL = re.compile(r"https?://[^\s/?#]+[^\s]*")
_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")
_HOURS = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d-(?:[01]\d|2[0-3]):[0-5]\d")
_MOST_PORT = 65_535


def _url(value: str) -> str:
    # What references stand for is known once a message is sent; the text around them is known now.
    around = _REFERENCE.sub("x", value)
    if "${" in around:
        raise ValueError("has '${' that begins no reference; write ${env:NAME} for a variable")
    if _REFERENCE.match(value) or _URL.fullmatch(around):
        return value
    raise ValueError("must begin with https:// or http:// and name a host; write such an address")


def _address(value: str) -> str:
    return value if refers(value) else _whole_address(value)


def _whole_address(value: str) -> str:
    if not _ADDRESS.fullmatch(value):
        raise ValueError("is not an e-mail address; write one, without a name, as in a@example.com")
    return value


def _port(value: int) -> int:
    if value > _MOST_PORT:
        raise ValueError(f"must be 1 to {_MOST_PORT}; write the port of the mail server")
    return value


def _argument(value: str) -> str:
    if "\0" in value:
        raise ValueError("holds the character NUL; write the argument without it")
    return value


def _hours(value: str) -> str:
    if not _HOURS.fullmatch(value):
        raise ValueError("is not from one time to another; write both as in 22:00-06:00")
    first, last = value.split("-")
    if first == last:
        raise ValueError("must be two times that differ; write both as in 22:00-06:00")
    return value


def _some(value: object) -> object:
    if not isinstance(value, (list, tuple)):
        raise ValueError("is not a list; write one in brackets, as in [a, b]")
    if not value:
        raise ValueError("is empty; write at least one entry, or leave it out")
    return value


def _number(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("is not a number; write one without quotes, such as 40")
    return value


_Address = Annotated[
    str,
    AfterValidator(_address),
    KEEPS_REFERENCES,
    looks("e-mail address", "a@example.com", type="string"),
]


_FileName = Annotated[
    str,
    matches(
        re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*"),
        "is not the name of a file; write letters, digits, '_', '-' and '.', a letter or digit "
        "first, without a folder: the file lies in the pipeline's folder of the warehouse",
    ),
    looks("file name", "sent", type="string"),
]
_Arguments = Annotated[
    tuple[Annotated[Text, AfterValidator(_argument)], ...], BeforeValidator(_some)
]


class Webhook(Strict):
    """An address that gets each message as the body of a POST.

    Attributes:
        url: The address; a secret, so better a reference to the environment.
        format: The body: all fields as `json`, or a `slack` message with a text.
    """

    url: Annotated[
        Text, AfterValidator(_url), KEEPS_REFERENCES, looks("URL", "${env:HOOK}", type="string")
    ]
    format: Literal["json", "slack"] = "json"


class Email(Strict):
    """A mail server, and the addresses to which it sends each message.

    Attributes:
        host: The server's name.
        port: The server's port: that of mail submission if left out.
        starttls: Whether the connection is encrypted before anything is sent; `false` is for a
            server on the same machine.
        user: The name to log in with; None for no log-in.
        password: The password, a secret, so a reference to the environment.
        sender: The address that messages come from.
        to: The addresses that messages go to.
    """

    host: ReferringText
    port: Annotated[PositiveInt, AfterValidator(_port)] = 587
    starttls: StrictBool = True
    user: ReferringText | None = None
    password: ReferringText | None = None
    sender: Annotated[_Address, Field(alias="from")]
    to: Annotated[tuple[_Address, ...], BeforeValidator(_some)]

    @staticmethod
    def require_address(value: str) -> str:
        """Returns an address, with the values of variables.

        Raises:
            ValueError: The text is not an address; the message does not show the text.
        """
        return _whole_address(value)

    @model_validator(mode="after")
    def _both_or_none(self) -> Self:
        if (self.user is None) != (self.password is None):
            missing = "user" if self.user is None else "password"
            refuse([Problem((missing,), None, "is missing; write both user and password, or none")])
        return self


class RateLimit(Strict):
    """The most messages that a target gets within some time.

    Attributes:
        messages: How many messages.
        per: The time in which these messages are counted, ms.
    """

    messages: PositiveInt
    per: PositiveDurationMs


class Quiet(Strict):
    """The hours in which a target gets no messages; waiting events are sent after these hours.

    Attributes:
        hours: From when to when, each day.
        zone: The time zone of these hours.
    """

    hours: Annotated[
        str, AfterValidator(_hours), looks("hours of a day", "22:00-06:00", type="string")
    ]
    zone: Zone

    @property
    def bounds(self) -> tuple[time, time]:
        """The first minute, and the first after the last; this may be of the next day."""
        first, last = (time.fromisoformat(text) for text in self.hours.split("-"))
        return first, last


class Target(Strict):
    """A target of notifications: how it gets them, and which it gets.

    Attributes:
        webhook: An address that gets messages by POST.
        email: Addresses that get messages by e-mail.
        command: A program and its arguments, which gets each message as JSON on its standard input;
            `commands` of the settings has to name the program.
        file: A file of JSON lines in the pipeline's folder of the warehouse, by its name.
        topic: A Kafka topic; each event is a message of its own.
        rules: The rules whose episodes are sent; None for all.
        min_severity: The least severity; a row without severity is sent. None for any.
        events: What is sent of an episode; that a run `failed`, and that records are `overdue`
            (`expect_every`); and of early warnings, if named: `warned`, `confirmed` and
            `withdrawn`.
        max_age: How old an event may be, ms, after the end of its arrival day; older events, such
            as those of a backfill, are not sent.
        group: How many messages may go out at once; more become a single one with a count.
        rate_limit: The most messages that go out within some time; None for any number.
        quiet: Hours in which nothing is sent; None for none.
    """

    webhook: Webhook | None = None
    email: Email | None = None
    command: _Arguments | None = None
    file: _FileName | None = None
    topic: AlertsTopic | None = None
    rules: Annotated[tuple[Identifier, ...], BeforeValidator(_some)] | None = None
    min_severity: (
        Annotated[float, BeforeValidator(_number), looks("number", 40, type="number")] | None
    ) = None
    events: Annotated[tuple[Event, ...], BeforeValidator(_some)] = EVENTS
    max_age: PositiveDurationMs = _DAY_MS
    group: PositiveInt = 10
    rate_limit: RateLimit | None = None
    quiet: Quiet | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        ways = [name for name in _WAYS if getattr(self, name) is not None]
        if not ways:
            refuse([Problem((), None, f"has no way; write one of {', '.join(_WAYS)} under it")])
        if len(ways) > 1:
            text = f"is a second way, after {ways[0]}; move it to a target of its own"
            refuse([Problem((ways[1],), None, text)])
        if self.topic is not None:
            text = "joins messages, but in a topic each event is a message of its own; remove it"
            refuse(
                [Problem((name,), None, text) for name in _JOINS if name in self.model_fields_set]
            )
        return self
