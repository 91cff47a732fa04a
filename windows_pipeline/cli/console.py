"""A console that prints data as it is, whatever markup or control characters it holds."""

from __future__ import annotations

import re
from typing import Any

from rich.console import Console
from rich.text import Text

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class PlainConsole(Console):
    """A console without markup, emoji names, highlighting and control characters.

    To print a word in a colour, pass the `Text` that `coloured` returns.
    """

    def __init__(self, **options: Any) -> None:
        """Takes the options of rich's own console."""
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Renders the text as it is, and a control character as Python writes it."""
        return super().render_str(printable(text), **options)


def printable(text: str) -> str:
    """The text with control characters escaped as in Python; tabs and line ends stay."""
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)


def coloured(word: str, style: str, *rest: str) -> Text:
    """A word in a colour, followed by plain text."""
    return Text.assemble((printable(word), style), *(printable(text) for text in rest))
