"""Servers whose answer has no end: each exchange ends within its time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Event, Thread

import pytest

from tests.support.notified import Notified
from tests.support.receivers import mail_server
from windows_pipeline.notify.events import read_events
from windows_pipeline.notify.not_sent import NotSentError
from windows_pipeline.notify.plan import Message
from windows_pipeline.notify.senders import mailer, post

LIMIT_S = 0.5
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"
EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"


@contextmanager
def server(answer: bytes, drip: bytes) -> Iterator[int]:
    """Answers whoever connects, then goes on to send a few bytes, each soon after the last."""
    stopped = Event()

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            try:
                self.request.sendall(answer)
                while not stopped.wait(0.02):
                    self.request.sendall(drip)
            except OSError:
                return

    running = ThreadingTCPServer(("127.0.0.1", 0), Handler)
    running.daemon_threads = True
    thread = Thread(target=running.serve_forever, daemon=True)
    thread.start()
    try:
        yield running.server_address[1]
    finally:
        stopped.set()
        running.shutdown()
        running.server_close()
        thread.join()


@pytest.mark.parametrize(
    ("scheme", "answer", "drip"),
    [
        ("http", b"HTTP/1.1 2", b"0"),
        ("http", b"HTTP/1.1 200 OK\r\nX: ", b"x"),
        ("http", b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
        ("http", b"", EARLY),
        ("http", b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        # Within the handshake: a record of TLS that does not end.
        ("https", b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc", b"\x00"),
    ],
)
def test_an_answer_that_does_not_end_is_none(scheme: str, answer: bytes, drip: bytes) -> None:
    with server(answer, drip) as port, pytest.raises(NotSentError, match="no answer: ") as no:
        post(f"{scheme}://127.0.0.1:{port}/", "id", b"{}" * 10, LIMIT_S)
    assert no.value.may_help
    assert not no.value.of_content


@pytest.mark.parametrize(
    "interim",
    [b"", EARLY, EARLY * 3, b"HTTP/1.1 100 Continue\r\n\r\n" + EARLY, EARLY[:9] + b"102 X\r\n\r\n"],
)
def test_interim_answers_are_passed_over(interim: bytes) -> None:
    """The last one counts; its body, which does not end here, does not."""
    with server(interim + OK, b"x") as port:
        post(f"http://127.0.0.1:{port}/", "id", b"{}")
    refused = b"HTTP/1.1 422 No\r\n\r\n"
    with server(interim + refused, b"x") as port, pytest.raises(NotSentError, match="422") as no:
        post(f"http://127.0.0.1:{port}/", "id", b"{}")
    assert no.value.of_content


@pytest.mark.parametrize("drip_at", ["greeting", "EHLO", "RCPT", "DATA", "content"])
def test_a_mail_server_that_does_not_end_takes_nothing(tmp_path: Path, drip_at: str) -> None:
    with mail_server(drip_at) as box, pytest.raises(NotSentError, match="no answer: TimeoutError"):
        send(tmp_path, box.port)


def test_a_mail_that_was_taken_is_sent_however_the_server_says_good_bye(tmp_path: Path) -> None:
    with mail_server("QUIT") as box:
        send(tmp_path, box.port)
        assert len(box.mails) == 1


def send(folder: Path, port: int) -> None:
    where = f"host: 127.0.0.1, port: {port}, starttls: false"
    made = Notified(folder, f"  a:\n    email: {{{where}, from: a@b.org, to: [c@d.org]}}\n")
    made.happen({})
    events = read_events(made.pipeline, made.settings.warehouse)
    email = made.pipeline.notify["a"].email
    assert email is not None
    mailer(made.pipeline, "email", email, limit_s=LIMIT_S)(Message(tuple(events)))
