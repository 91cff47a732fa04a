"""What a way to notify somebody raises if its message was not taken."""

from __future__ import annotations


class NotSentError(Exception):
    """A target did not accept a message; the text says why, without addresses, which may be secret.

    Attributes:
        may_help: Whether another attempt right away may succeed.
        of_content: Whether the target refused this message for its content, and may take others.
    """

    def __init__(self, text: str, *, may_help: bool = True, of_content: bool = False) -> None:
        super().__init__(text)
        self.may_help = may_help and not of_content
        self.of_content = of_content
