"""Sends messages by e-mail."""

from __future__ import annotations

import smtplib
import ssl
from contextlib import suppress
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import localtime

from windows_pipeline.config import ConfigError, Pipeline
from windows_pipeline.config.notify import Email
from windows_pipeline.notify.conversation import Conversation
from windows_pipeline.notify.not_sent import NotSentError
from windows_pipeline.notify.plan import Message
from windows_pipeline.notify.texts import lines, title
from windows_pipeline.text.references import position, resolved

_TIMEOUT_S = 20
"""How long a server may be silent."""
_LIMIT_S = 60
"""How long the whole exchange with a server may take."""
_LONGEST_SUBJECT = 200
_TEMPORARY = range(400, 500)
"""A mail server's status codes of temporary failures."""
_PERMANENT = range(500, 600)
_TOO_LARGE = 552
"""The answer to the announced size of a message (RFC 1870)."""


def mailer(pipeline: Pipeline, field: str, email: Email) -> Mailer:
    """The way to send a pipeline's messages by e-mail.

    Args:
        pipeline: The pipeline.
        field: Where the file has the server and the addresses.
        email: The server and the addresses.

    Raises:
        ConfigError: A text refers to an environment variable that is not set.
        ValueError: A text with such a reference is no address.
    """
    login = None
    if email.user is not None and email.password is not None:
        login = resolved(email.user), resolved(email.password)
    sender = _address(f"{field}.from", email.sender)
    to = tuple(_address(f"{field}.to", address) for address in email.to)
    return Mailer(pipeline, email, resolved(email.host, may_be_secret=False), login, sender, to)


def _address(field: str, text: str) -> str:
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


class _Server(smtplib.SMTP):
    """A mail server to which a conversation connects."""

    def __init__(self, conversation: Conversation[None], host: str, port: int) -> None:
        conversation.connects(self)
        super().__init__(host, port, timeout=_TIMEOUT_S)


@dataclass(frozen=True)
class Mailer:
    """Sends each message as an e-mail.

    Attributes:
        pipeline: The pipeline.
        email: The server and the addresses.
        host: The server's name.
        login: User and password; None for no log-in.
        sender: The address that messages come from.
        to: The addresses that messages go to.
        limit_s: How long the whole exchange about a message may take.
    """

    pipeline: Pipeline
    email: Email
    host: str
    login: tuple[str, str] | None
    sender: str
    to: tuple[str, ...]
    limit_s: float = _LIMIT_S

    def __call__(self, message: Message) -> None:
        """Sends a message.

        If the server refuses only some of the addresses, the message counts as sent, because the
        other addresses would get it twice.

        Raises:
            NotSentError: The server did not take the message for any address.
        """

        def talk(conversation: Conversation[None]) -> None:
            server = _Server(conversation, self.host, self.email.port)
            try:
                conversation.require_time()
                if self.email.starttls:
                    server.starttls(context=ssl.create_default_context())
                    conversation.require_time()
                if self.login is not None:
                    server.login(*self.login)
                server.send_message(self._mail(message))
                with suppress(OSError, smtplib.SMTPException):  # the message was taken
                    server.putcmd("quit")
            finally:
                server.close()

        try:
            Conversation(talk).within(self.limit_s)
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

    def _mail(self, message: Message) -> EmailMessage:
        mail = EmailMessage()
        mail["Subject"] = title(self.pipeline, message)[:_LONGEST_SUBJECT]
        mail["From"] = self.sender
        mail["To"] = ", ".join(self.to)
        mail["Date"] = localtime()
        # A message that is sent again has the same id, so mail programs recognize it.
        domain = self.sender.rpartition("@")[2]
        mail["Message-ID"] = f"<{message.id}@{domain}>"
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content("\n".join(lines(self.pipeline, message)))
        return mail
