"""Conversations with servers that end within a time, whatever the server does.

The time-outs of sockets, and so of `http.client` and `smtplib`, count from byte to byte, and the
look-up of a name has none. So a conversation runs in a thread, which is given up after a time.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")


class _Connected(Protocol):
    """What has a socket once it is connected, as the connections of `http.client` and `smtplib`."""

    sock: socket.socket | None


class Conversation(Generic[T]):
    """A conversation with a server."""

    def __init__(self, talk: Callable[[Conversation[T]], T]) -> None:
        """Takes what talks to the server; it calls `connects` and `require_time`."""
        self._talk = talk
        self._connection: _Connected | None = None
        self._is_over = False
        self._ended: SimpleQueue[tuple[T, None] | tuple[None, BaseException]] = SimpleQueue()

    def within(self, limit_s: float) -> T:
        """Holds the conversation, and returns what it returned.

        Raises:
            TimeoutError: The conversation did not end in time. Nothing more is sent in it.
        """
        Thread(target=self._hold, daemon=True).start()
        try:
            result, error = self._ended.get(timeout=limit_s)
        except Empty:
            self._end()
            raise TimeoutError from None
        if error is not None:
            raise error
        return result  # type: ignore[return-value]

    def connects(self, connection: _Connected) -> None:
        """Takes the connection, before it is made."""
        self._connection = connection

    def require_time(self) -> None:
        """Ends the talk if its time is over; call this after what replaces the socket.

        Raises:
            TimeoutError: The time is over.
        """
        if self._is_over:
            raise TimeoutError

    def _hold(self) -> None:
        try:
            self._ended.put((self._talk(self), None))
        except BaseException as error:  # noqa: BLE001  whoever waits gets it
            self._ended.put((None, error))

    def _end(self) -> None:
        # Before the socket is read: either it is shut here, or `require_time` finds the end.
        self._is_over = True
        sock = None if self._connection is None else self._connection.sock
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
