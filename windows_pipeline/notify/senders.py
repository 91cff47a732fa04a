"""Ways to notify somebody: each sends one message, or raises `NotSentError`."""

from __future__ import annotations

import http.client
import os
import subprocess
from base64 import b64encode
from collections.abc import Callable, Sequence
from urllib.parse import unquote, urlsplit

from windows_pipeline.config import Pipeline
from windows_pipeline.notify.mail import mailer
from windows_pipeline.notify.not_sent import NotSentError
from windows_pipeline.notify.plan import Message
from windows_pipeline.notify.texts import body, encoded, slack
from windows_pipeline.settings import Settings
from windows_pipeline.text.references import resolved

Send = Callable[[Message], None]
_TIMEOUT_S = 10
_PROGRAM_TIMEOUT_S = 60
_SCHEMES = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}


def sender_of(pipeline: Pipeline, name: str, settings: Settings) -> Send:
    """The way of a target, by its name.

    Raises:
        ConfigError: A text refers to an environment variable that is not set.
        ValueError: The webhook's url is not a web address, or the settings do not allow the
            program.
    """
    target = pipeline.notify[name]
    if target.webhook is not None:
        url = resolved(target.webhook.url)
        if not _is_address(url):
            raise ValueError(
                f"{name}: webhook.url: must begin with https:// or http:// and name a host; the "
                "value is not shown, as it may be a secret"
            )
        form = slack if target.webhook.format == "slack" else body
        return lambda message: post(url, message.id, encoded(form(pipeline, message)))
    if target.email is not None:
        return mailer(pipeline, name, target.email)
    if target.command is not None:
        program = target.command[0]
        if program not in settings.commands:
            raise ValueError(
                f"{name}: command: the settings must allow the program, but do not; add "
                f"{program!r} to the list commands of settings.yaml"
            )
        argv = target.command
        return lambda message: run(argv, encoded(body(pipeline, message)))
    path = f"{settings.warehouse}/{pipeline.name}/{target.file}"
    return lambda message: append(path, encoded(body(pipeline, message)))


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a wrong port
        return False


def post(url: str, message_id: str, content: bytes) -> None:
    """Sends a body by POST, without following redirects; 2xx means that it was accepted.

    A user and a password in the address are sent as HTTP's basic authentication.

    Raises:
        NotSentError: The message was not taken, or there was no answer.
    """
    parts = urlsplit(url)
    headers = {"Content-Type": "application/json; charset=utf-8", "Idempotency-Key": message_id}
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {b64encode(user.encode()).decode()}"
    connection = _SCHEMES[parts.scheme](str(parts.hostname), parts.port, timeout=_TIMEOUT_S)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request("POST", path, content, headers)
        status = connection.getresponse().status
    except (OSError, UnicodeError, http.client.HTTPException) as error:
        raise NotSentError(f"no answer: {type(error).__name__}") from error
    finally:
        connection.close()
    if not 200 <= status < 300:
        may_help = status in (408, 425, 429) or status >= 500
        raise NotSentError(f"answered {status}", may_help=may_help)


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


def append(path: str, content: bytes) -> None:
    """Appends a line to a file, on disk before it returns.

    Raises:
        NotSentError: The file cannot be written.
    """
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(path, flags, 0o666)  # the umask decides
        try:
            line = content + b"\n"
            while line:
                line = line[os.write(descriptor, line) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise NotSentError(f"{path}: cannot be written ({error.strerror})") from error
