"""Sends messages by e-mail."""

from __future__ import annotations

import smtplib
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import localtime

from windows_pipeline.config import ConfigError, Pipeline
from windows_pipeline.config.notify import Email
from windows_pipeline.notify.not_sent import NotSentError
from windows_pipeline.notify.plan import Message
from windows_pipeline.notify.texts import lines, title
from windows_pipeline.text.references import resolved

_TIMEOUT_S = 20
_LONGEST_SUBJECT = 200
_TEMPORARY = range(400, 500)
"""A mail server's status codes of temporary failures."""


def mailer(pipeline: Pipeline, target: str, email: Email) -> Mailer:
    """The way to send a pipeline's messages by e-mail.

    Args:
        pipeline: The pipeline.
        target: The target's name.
        email: The server and the addresses.

    Raises:
        ConfigError: A text refers to an environment variable that is not set.
        ValueError: A text with such a reference is no address.
    """
    login = None
    if email.user is not None and email.password is not None:
        login = resolved(email.user), resolved(email.password)
    sender = _address(f"{target}: email.from", email.sender)
    to = tuple(_address(f"{target}: email.to", address) for address in email.to)
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
        raise ValueError(f"{field}: {text!r} {error}") from None


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
    """

    pipeline: Pipeline
    email: Email
    host: str
    login: tuple[str, str] | None
    sender: str
    to: tuple[str, ...]

    def __call__(self, message: Message) -> None:
        """Sends a message.

        If the server refuses only some of the addresses, the message counts as sent, because the
        other addresses would get it twice.

        Raises:
            NotSentError: The server did not take the message for any address.
        """
        try:
            with smtplib.SMTP(self.host, self.email.port, timeout=_TIMEOUT_S) as server:
                if self.email.starttls:
                    server.starttls(context=ssl.create_default_context())
                if self.login is not None:
                    server.login(*self.login)
                server.send_message(self._mail(message))
        except smtplib.SMTPResponseException as error:
            may_help = error.smtp_code in _TEMPORARY
            raise NotSentError(f"answered {error.smtp_code}", may_help=may_help) from error
        except smtplib.SMTPRecipientsRefused as error:
            raise NotSentError("no address was accepted", may_help=False) from error
        except (OSError, UnicodeError, smtplib.SMTPException) as error:
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
