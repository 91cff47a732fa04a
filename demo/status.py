"""What is being done, on a terminal's last line; on a pipe a line each."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


class Status:
    """Shows what is being done and for how long.

    Rich's own would print what others write to standard output and error meanwhile, too, wherever
    these lead: here to a log.
    """

    def __init__(self, console: Console, text: str) -> None:
        """Shows nothing yet."""
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
        """Begins to show it."""
        if self._console.is_terminal:
            self._progress.start()
        else:
            self._console.print(self._text)

    def update(self, text: str) -> None:
        """Shows what is being done now."""
        if self._console.is_terminal:
            self._progress.reset(self._task, description=text)
        else:
            self._console.print(text)

    def stop(self) -> None:
        """Shows nothing any more."""
        if self._console.is_terminal:
            self._progress.stop()

    def __enter__(self) -> Self:
        """Begins to show it."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Shows nothing any more."""
        self.stop()
