"""The error of a message that was not taken."""

from __future__ import annotations


class NotSentError(Exception):
    """A message was not taken; the text says why, without addresses, which may be secrets.

    Attributes:
        may_help: Whether it may help to try at once again.
    """

    def __init__(self, text: str, *, may_help: bool = True) -> None:
        super().__init__(text)
        self.may_help = may_help
