"""Consoles that print data as it is, whatever markup or control characters it holds."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Literal, TextIO

from rich.console import Console
from rich.text import Text

from windows_pipeline.text.values import printable


class PlainConsole(Console):
    """A console without markup, emoji names, highlighting and control characters.

    Where the output is no terminal, lines of text are not folded: they may hold commands to copy.
    To print a word in a colour, pass the `Text` that `coloured` returns.
    """

    def __init__(self, **options: Any) -> None:
        """Takes the options of rich's own console."""
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def print(self, *objects: Any, soft_wrap: bool | None = None, **options: Any) -> None:
        """Prints texts or a table, with the options of rich's own console."""
        is_text = all(isinstance(each, (str, Text)) for each in objects)
        if soft_wrap is None and is_text and not self.file.isatty():
            soft_wrap = True
        super().print(*objects, soft_wrap=soft_wrap, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Renders the text as it is, and a control character as Python writes it."""
        return super().render_str(printable(text), **options)


class UserStream(io.TextIOBase):
    """The user's standard output or error, even while other programs' output goes to a log."""

    _replaced: ClassVar[dict[str, TextIO]] = {}

    def __init__(self, name: Literal["stdout", "stderr"]) -> None:
        """Writes to the stream with this name in `sys`."""
        self._name = name

    @classmethod
    @contextmanager
    def replaced(cls, **streams: TextIO) -> Iterator[None]:
        """Redirects the streams, by their names in `sys`, to other streams within the block."""
        before = cls._replaced
        cls._replaced = {**before, **streams}
        try:
            yield
        finally:
            cls._replaced = before

    @property
    def _stream(self) -> TextIO:
        stream: TextIO = self._replaced.get(self._name) or getattr(sys, self._name)
        return stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The stream's encoding."""
        return self._stream.encoding

    def write(self, text: str) -> int:
        """Writes a text."""
        return self._stream.write(text)

    def flush(self) -> None:
        """Hands what was written to the operating system."""
        self._stream.flush()

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """The stream's file descriptor."""
        return self._stream.fileno()


def coloured(word: str, style: str, *rest: str) -> Text:
    """A word in a colour, followed by plain text."""
    return Text.assemble((printable(word), style), *(printable(text) for text in rest))


# A pipe has no width, and the console would cut the rows of tables at 80 columns.
CONSOLE = PlainConsole(
    file=UserStream("stdout"), width=None if sys.stdout and sys.stdout.isatty() else 240
)
ERRORS = PlainConsole(file=UserStream("stderr"))
