"""Conversations with servers that end within a time, whatever the server does.

The time-outs of sockets, and so of `http.client` and `smtplib`, count from byte to byte, and the
look-up of a name has none. So a conversation runs in a thread, which is given up after a time.
"""

from __future__ import annotations

import http.client
import smtplib
import socket
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import Any


class Conversation:
    """A conversation with a server, whose talk calls `connects` and `require_time`."""

    def __init__(self) -> None:
        self._connection: http.client.HTTPConnection | smtplib.SMTP | None = None
        self._is_over = False

    def within(self, limit_s: float, talk: Callable[[Conversation], Any]) -> Any:
        """Holds the conversation, and returns what it returned.

        Raises:
            TimeoutError: The conversation did not end in time. Nothing more is sent in it.
        """
        ended: Future[Any] = Future()

        def hold() -> None:
            try:
                ended.set_result(talk(self))
            except BaseException as error:  # noqa: BLE001  whoever waits gets it
                ended.set_exception(error)

        Thread(target=hold, daemon=True).start()
        try:
            return ended.result(limit_s)
        finally:
            self._end()

    def connects(self, connection: http.client.HTTPConnection | smtplib.SMTP) -> None:
        """Takes the connection, before it is made."""
        self._connection = connection

    def require_time(self) -> None:
        """Ends the talk if its time is over; call this after what replaces the socket.

        Raises:
            TimeoutError: The time is over.
        """
        if self._is_over:
            raise TimeoutError

    def _end(self) -> None:
        # Before the socket is read: either it is shut here, or `require_time` finds the end.
        self._is_over = True
        sock: socket.socket | None = getattr(self._connection, "sock", None)
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
