"""Ways to notify somebody: each sends one message, or raises `NotSentError`."""

from __future__ import annotations

import http.client
import subprocess
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from windows_pipeline.config import Pipeline
from windows_pipeline.notify.conversation import Conversation
from windows_pipeline.notify.mail import mailer
from windows_pipeline.notify.not_sent import NotSentError
from windows_pipeline.notify.plan import Message
from windows_pipeline.notify.texts import body, slack
from windows_pipeline.notify.whole_lines import append, json_line
from windows_pipeline.settings import Settings
from windows_pipeline.text.references import position, resolved

Send = Callable[[Message], None]
_TIMEOUT_S = 10
"""How long a server may be silent."""
_LIMIT_S = 20
"""How long the whole exchange with a server may take."""
_PROGRAM_TIMEOUT_S = 60
_SCHEMES = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
_OF_CONTENT = (400, 413, 422)
"""The statuses of a message that is refused for its content."""
_NO_ADDRESS = (
    "must begin with https:// or http:// and name a host, with a port of 1 to 65535 if any, and "
    "have no blank and after the host ASCII only; write such an address, which is not shown here, "
    "as it may be a secret"
)
_INTERIM = range(100, 200)
"""The statuses of answers before the last."""


def sender_of(pipeline: Pipeline, name: str, settings: Settings) -> Send:
    """The way of a target, by its name.

    Raises:
        ConfigError: A text refers to an environment variable that is not set.
        ValueError: The webhook's url is not a web address, or the settings do not allow the
            program.
    """
    target = pipeline.notify[name]
    field = f"{pipeline.name}: notify.{name}"
    if target.webhook is not None:
        url = resolved(target.webhook.url).strip()
        if not _is_address(url):
            where = position(target.webhook.url, f"{field}.webhook.url")
            raise ValueError(f"{where}: {_NO_ADDRESS}")
        form = slack if target.webhook.format == "slack" else body
        return lambda message: post(url, message.id, json_line(form(pipeline, message)))
    if target.email is not None:
        return mailer(pipeline, f"{field}.email", target.email)
    if target.command is not None:
        program = target.command[0]
        if program not in settings.commands:
            raise ValueError(
                f"{field}.command: the settings must allow the program, but do not; add "
                f"{program!r} to the list commands of settings.yaml"
            )
        argv = target.command
        return lambda message: run(argv, json_line(body(pipeline, message)))
    path = f"{settings.warehouse}/{pipeline.name}/{target.file}"
    return lambda message: write(path, body(pipeline, message))


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        has_host = parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a wrong port
        return False
    is_line = url.isprintable() and " " not in url
    return has_host and is_line and (parts.path + parts.query).isascii()


class _LastAnswer(http.client.HTTPResponse):
    """The answer after those that only say that the server is still at work (RFC 9110, 15.2)."""

    def begin(self) -> None:
        """Reads status and headers."""
        super().begin()
        while self.status in _INTERIM:
            self.headers = None  # type: ignore[assignment]  # else they count as read
            super().begin()


def post(url: str, message_id: str, content: bytes, limit_s: float = _LIMIT_S) -> None:
    """Sends a body by POST, without following redirects; 2xx means that it was accepted.

    A user and a password in the address are sent as HTTP's basic authentication.

    Args:
        url: The address.
        message_id: What the message's receiver knows it by if it is sent again.
        content: The body.
        limit_s: How long the whole exchange may take.

    Raises:
        NotSentError: The message was not taken, or there was no answer.
    """
    parts = urlsplit(url)
    headers = {"Content-Type": "application/json; charset=utf-8", "Idempotency-Key": message_id}
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {b64encode(user.encode()).decode()}"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    def talk(conversation: Conversation[int]) -> int:
        connection = _SCHEMES[parts.scheme](str(parts.hostname), parts.port, timeout=_TIMEOUT_S)
        connection.response_class = _LastAnswer
        conversation.connects(connection)
        try:
            connection.connect()
            conversation.require_time()
            connection.request("POST", path, content, headers)
            return int(connection.getresponse().status)
        finally:
            connection.close()

    try:
        status = Conversation(talk).within(limit_s)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise NotSentError(f"no answer: {type(error).__name__}") from error
    if not 200 <= status < 300:
        may_help = status in (408, 425, 429) or status >= 500
        of_content = status in _OF_CONTENT
        raise NotSentError(f"answered {status}", may_help=may_help, of_content=of_content)


def run(argv: Sequence[str], content: bytes) -> None:
    """Runs a program with the message on its standard input; exit status 0 means acceptance.

    Raises:
        NotSentError: The program cannot be started, takes too long, or ends with another status.
    """
    try:
        ended = subprocess.run(  # noqa: S603  the settings name the program; there is no shell
            argv, input=content, stdout=subprocess.DEVNULL, timeout=_PROGRAM_TIMEOUT_S, check=False
        )
    except OSError as error:
        raise NotSentError(f"{argv[0]}: cannot be started ({error.strerror})") from error
    except subprocess.TimeoutExpired as error:
        text = f"{argv[0]}: must end within {_PROGRAM_TIMEOUT_S} s, but did not"
        raise NotSentError(text) from error
    if ended.returncode:
        raise NotSentError(f"{argv[0]}: ended with exit status {ended.returncode}")


def write(path: str, content: Mapping[str, Any]) -> None:
    """Appends a line to a file.

    Raises:
        NotSentError: The file cannot be written.
    """
    try:
        append(path, content)
    except OSError as error:
        raise NotSentError(f"{path}: cannot be written ({error.strerror})") from error
