"""Shows the current step on a terminal's last line; on a pipe, prints a line per step."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


class Status:
    """Shows the current step, and for how long it has been running.

    Rich's own status would also print what other code writes to standard output and error, which
    the demo redirects to a log.
    """

    def __init__(self, console: Console, text: str) -> None:
        """Sets the first step; `start` shows it."""
        self._console = console
        self._text = text
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
        if self._console.is_terminal:
            self._progress.start()
        else:
            self._console.print(self._text)

    def update(self, text: str) -> None:
        """Shows the next step."""
        if self._console.is_terminal:
            self._progress.reset(self._task, description=text)
        else:
            self._console.print(text)

    def stop(self) -> None:
        """Stops to show the step."""
        if self._console.is_terminal:
            self._progress.stop()

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
