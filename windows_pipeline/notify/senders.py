"""Ways to notify somebody: each sends one message, or raises `NotSentError`."""

from __future__ import annotations

import http.client
import smtplib
import ssl
import subprocess
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from email.message import EmailMessage
from email.utils import localtime
from typing import Any
from urllib.parse import unquote, urlsplit

from windows_pipeline.config import ConfigError, Pipeline
from windows_pipeline.config.notify import Email
from windows_pipeline.notify.conversation import Conversation
from windows_pipeline.notify.not_sent import NotSentError
from windows_pipeline.notify.plan import Message
from windows_pipeline.notify.texts import body, lines, slack, title
from windows_pipeline.notify.topic import to_topic
from windows_pipeline.notify.whole_lines import append, json_line
from windows_pipeline.settings import Settings
from windows_pipeline.text.references import position, resolved

Send = Callable[[Message], None]
_TIMEOUT_S, _MAIL_TIMEOUT_S = 10, 20
"""How long a server may be silent."""
_LIMIT_S, _MAIL_LIMIT_S = 20, 60
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
_LONGEST_SUBJECT = 200
_TEMPORARY, _PERMANENT = range(400, 500), range(500, 600)
"""A mail server's status codes of failures."""
_TOO_LARGE = 552
"""A mail server's answer to the announced size of a message (RFC 1870)."""


def sender_of(pipeline: Pipeline, name: str, settings: Settings) -> Send:
    """The way of a target, by its name.

    Raises:
        ConfigError: A text refers to an environment variable that is not set.
        ValueError: The webhook's url is not a web address, the settings do not allow the program,
            or the topic's client is not installed or does not take its options.
    """
    target, ui_url = pipeline.notify[name], settings.ui_url
    field = f"{pipeline.name}: notify.{name}"
    if target.webhook is not None:
        url = resolved(target.webhook.url).strip()
        if not _is_address(url):
            where = position(target.webhook.url, f"{field}.webhook.url")
            raise ValueError(f"{where}: {_NO_ADDRESS}")
        form = slack if target.webhook.format == "slack" else body
        return lambda message: post(url, message.id, json_line(form(pipeline, message, ui_url)))
    if target.email is not None:
        return mailer(pipeline, f"{field}.email", target.email, ui_url)
    if target.command is not None:
        program = target.command[0]
        if program not in settings.commands:
            raise ValueError(
                f"{field}.command: the settings must allow the program, but do not; add "
                f"{program!r} to the list commands of settings.yaml"
            )
        argv = target.command
        return lambda message: run(argv, json_line(body(pipeline, message, ui_url)))
    if target.topic is not None:
        return to_topic(pipeline, f"{field}.topic", target.topic, ui_url)
    path = f"{settings.warehouse}/{pipeline.name}/{target.file}"
    return lambda message: write(path, body(pipeline, message, ui_url))


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

    def talk(conversation: Conversation) -> int:
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
        status = Conversation().within(limit_s, talk)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise NotSentError(f"no answer: {type(error).__name__}") from error
    if not 200 <= status < 300:
        may_help = status in (408, 425, 429) or status >= 500
        of_content = status in _OF_CONTENT
        raise NotSentError(f"answered {status}", may_help=may_help, of_content=of_content)


class _MailServer(smtplib.SMTP):
    """A mail server to which a conversation connects."""

    def __init__(self, conversation: Conversation, host: str, port: int) -> None:
        conversation.connects(self)
        super().__init__(host, port, timeout=_MAIL_TIMEOUT_S)


def mailer(
    pipeline: Pipeline,
    field: str,
    email: Email,
    ui_url: str | None = None,
    limit_s: float = _MAIL_LIMIT_S,
) -> Send:
    """The way to send a pipeline's messages by e-mail.

    If the server refuses only some of the addresses, a message counts as sent, because the other
    addresses would get it twice.

    Args:
        pipeline: The pipeline.
        field: Where the file has the server and the addresses.
        email: The server and the addresses.
        ui_url: The address of Dagster's UI, for links; None for no links.
        limit_s: How long the whole exchange about a message may take.

    Raises:
        ConfigError: A text refers to an environment variable that is not set.
        ValueError: A text with such a reference is no address.
    """
    login = None
    if email.user is not None and email.password is not None:
        login = resolved(email.user), resolved(email.password)
    sender = _mail_address(f"{field}.from", email.sender)
    to = [_mail_address(f"{field}.to", address) for address in email.to]
    host = resolved(email.host, may_be_secret=False)

    def send(message: Message) -> None:
        def talk(conversation: Conversation) -> None:
            server = _MailServer(conversation, host, email.port)
            try:
                conversation.require_time()
                if email.starttls:
                    server.starttls(context=ssl.create_default_context())
                    conversation.require_time()
                if login is not None:
                    server.login(*login)
                server.send_message(_mail(pipeline, message, sender, to, ui_url))
                with suppress(OSError, smtplib.SMTPException):  # the message was taken
                    server.putcmd("quit")
            finally:
                server.close()

        try:
            Conversation().within(limit_s, talk)
        except smtplib.SMTPResponseException as error:
            code, of_message = error.smtp_code, isinstance(error, smtplib.SMTPDataError)
            is_too_large = isinstance(error, smtplib.SMTPSenderRefused) and code == _TOO_LARGE
            raise NotSentError(
                f"answered {code}",
                may_help=code in _TEMPORARY,
                of_content=is_too_large or (of_message and code in _PERMANENT),
            ) from error
        except smtplib.SMTPRecipientsRefused as error:
            raise NotSentError("no address was accepted", may_help=False) from error
        except (OSError, ValueError, smtplib.SMTPException) as error:
            raise NotSentError(f"no answer: {type(error).__name__}") from error

    return send


def _mail_address(field: str, text: str) -> str:
    """An address with the values of variables.

    Raises:
        ValueError: It is none; the message has no value of a variable.
    """
    try:
        return Email.require_address(resolved(text))
    except ConfigError:
        raise
    except ValueError as error:
        raise ValueError(f"{position(text, f'{field}: {text}')} {error}") from None


def _mail(
    pipeline: Pipeline, message: Message, sender: str, to: Sequence[str], ui_url: str | None
) -> EmailMessage:
    mail = EmailMessage()
    mail["Subject"] = title(pipeline, message)[:_LONGEST_SUBJECT]
    mail["From"] = sender
    mail["To"] = ", ".join(to)
    mail["Date"] = localtime()
    # A message that is sent again has the same id, so mail programs recognize it.
    mail["Message-ID"] = f"<{message.id}@{sender.rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content("\n".join(lines(pipeline, message, ui_url)))
    return mail


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
