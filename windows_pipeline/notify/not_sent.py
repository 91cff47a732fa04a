"""The error of a message that a target did not accept."""

from __future__ import annotations


class NotSentError(Exception):
    """A target did not accept a message; the text says why, without addresses, which may be secret.

    Attributes:
        may_help: Whether another attempt right away may succeed.
    """

    def __init__(self, text: str, *, may_help: bool = True) -> None:
        super().__init__(text)
        self.may_help = may_help
