"""A console that prints text from data as text."""

from __future__ import annotations

import re
from typing import Any

from rich.console import Console
from rich.text import Text

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class PlainConsole(Console):
    """Reads no markup, emoji names or numbers in a string, and sends no control characters.

    What is to have a colour is a `Text`, made by `coloured`.
    """

    def __init__(self, **options: Any) -> None:
        """Takes the options of rich's own console."""
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """The text as it is; a control character as Python writes it."""
        return super().render_str(printable(text), **options)


def printable(text: str) -> str:
    """The text with control characters, but for tabs and ends of lines, as Python writes them."""
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)


def coloured(word: str, style: str, *rest: str) -> Text:
    """A word in a colour, and what follows without one."""
    return Text.assemble((printable(word), style), *(printable(text) for text in rest))
