"""Programs that take messages, for tests: a web server and a mail server on this machine."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Event, Thread
from typing import Any


@dataclass
class Receiver:
    """A web server that takes messages.

    Attributes:
        url: Its address; the path is a secret.
        answers: The statuses of its next answers; 200 after these.
        bodies: The bodies of the messages that it took, as JSON.
        ids: The header Idempotency-Key of every request.
        logins: The header Authorization of every request.
        before_answer: Called between a request and its answer.
    """

    url: str = ""
    answers: list[int] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    ids: list[str | None] = field(default_factory=list)
    logins: list[str | None] = field(default_factory=list)
    before_answer: Callable[[], None] | None = None

    @property
    def events(self) -> list[tuple[Any, str]]:
        """The key and the event of each row that it was sent, in order."""
        sent = [event for body in self.bodies for event in body["events"]]
        return [(event["key"], event["event"]) for event in sent]


@contextmanager
def receiver() -> Iterator[Receiver]:
    """Runs a web server on a free port."""
    taken = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            taken.ids.append(self.headers["Idempotency-Key"])
            taken.logins.append(self.headers["Authorization"])
            status = taken.answers.pop(0) if taken.answers else 200
            if status == 200:
                taken.bodies.append(json.loads(content))
            if taken.before_answer is not None:
                taken.before_answer()
            self.send_response(status)
            self.send_header("Location", taken.url)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  its name there
            """Prints nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    taken.url = f"http://127.0.0.1:{server.server_port}/hook/s3cret-path?token=s3cret"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield taken
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Mailbox:
    """A mail server that takes messages.

    Attributes:
        port: Its port.
        logins: The answers to AUTH PLAIN, decoded.
        answers: The answers to its next messages; 250 after these.
        to: The addresses of each message.
        mails: The messages that it took.
    """

    port: int = 0
    logins: list[bytes] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    to: list[list[str]] = field(default_factory=list)
    mails: list[EmailMessage] = field(default_factory=list)


class _MailServer(ThreadingTCPServer):
    daemon_threads = True
    taken: Mailbox
    drip_at: str
    stopped: Event


class _MailHandler(StreamRequestHandler):
    server: _MailServer

    def say(self, text: str, at: str = "") -> None:
        """Answers; where the server drips, the answer never ends."""
        while at and at == self.server.drip_at and not self.server.stopped.wait(0.02):
            self.wfile.write(b"2")
        self.wfile.write(f"{text}\r\n".encode())

    def handle(self) -> None:
        with suppress(OSError):
            self.talk()

    def talk(self) -> None:
        self.say("220 test", "greeting")
        to: list[str] = []
        while line := self.rfile.readline().decode().strip():
            match line.partition(" ")[0].upper():
                case "EHLO":
                    self.say("250-test", "EHLO")
                    self.say("250 AUTH PLAIN")
                case "AUTH":
                    self.server.taken.logins.append(base64.b64decode(line.split()[2]))
                    self.say("235 ok")
                case "RCPT":
                    to.append(line.partition("<")[2].partition(">")[0])
                    self.say("250 ok", "RCPT")
                case "DATA":
                    self.say("354 go on", "DATA")
                    content = b""
                    while (part := self.rfile.readline()) != b".\r\n":
                        content += part
                    answer = (
                        self.server.taken.answers.pop(0) if self.server.taken.answers else "250 ok"
                    )
                    if answer.startswith("250"):
                        parsed = BytesParser(policy=default).parsebytes(content)
                        assert isinstance(parsed, EmailMessage)
                        self.server.taken.mails.append(parsed)
                        self.server.taken.to.append(to)
                    self.say(answer, "content")
                case "QUIT":
                    self.say("221 bye", "QUIT")
                    return
                case _:
                    self.say("250 ok")


@contextmanager
def mail_server(drip_at: str = "") -> Iterator[Mailbox]:
    """Runs a mail server without encryption on a free port.

    Args:
        drip_at: The command, `greeting` or `content` at which its answer never ends.
    """
    taken = Mailbox()

    server = _MailServer(("127.0.0.1", 0), _MailHandler)
    server.taken, server.drip_at, server.stopped = taken, drip_at, Event()
    taken.port = server.server_address[1]
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield taken
    finally:
        server.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()
