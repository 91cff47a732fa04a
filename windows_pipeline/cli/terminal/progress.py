"""Shows on a terminal what is being done, and for how long it has been running."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import ClassVar, Self

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


class Status:
    """The current step on a terminal's last line; a pipe gets nothing, or a line per step.

    Rich's own status would also print what other code writes to standard output and error, which
    goes to a log.
    """

    _shown: ClassVar[Status | None] = None
    """The status that the terminal's last line shows now."""

    def __init__(self, console: Console, text: str, lines: Console | None = None) -> None:
        """Sets the first step; `start` shows it.

        Args:
            console: Where the step is shown if that is a terminal.
            text: The first step.
            lines: A console that gets a line per step where `console` is no terminal, or is
                another console. None for no such lines.
        """
        self._console = console
        self._text = text
        self._lines = lines
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._progress.add_task(text, total=None)

    def start(self) -> None:
        """Starts to show the step."""
        self.resume()
        self._print_line(self._text)

    def resume(self) -> None:
        """Shows the step again after `stop`."""
        if self._console.is_terminal:
            Status._shown = self
            self._progress.start()

    def update(self, text: str) -> None:
        """Shows the next step."""
        if text == self._text:
            return
        self._text = text
        if self._console.is_terminal:
            self._progress.reset(self._task, description=text)
        self._print_line(text)

    def stop(self) -> None:
        """Stops to show the step."""
        if Status._shown is self:
            Status._shown = None
            self._progress.stop()

    @classmethod
    @contextmanager
    def hidden(cls) -> Iterator[None]:
        """Hides the step while other code prints on the terminal."""
        shown = cls._shown
        if shown is None:
            yield
            return
        shown.stop()
        try:
            yield
        finally:
            shown.resume()

    def _print_line(self, text: str) -> None:
        if self._lines is None or (self._console.is_terminal and self._lines is self._console):
            return
        with self.hidden():
            self._lines.print(text, soft_wrap=True)

    def __enter__(self) -> Self:
        """Starts to show the step."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stops to show the step."""
        self.stop()
