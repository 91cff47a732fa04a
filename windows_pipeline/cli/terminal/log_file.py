"""The log file of a command: the output of Spark's JVM, its workers and libraries, and traces.

A log lies in `.cache/windows-pipeline/` beside the settings file, follows the umask, and is made
once it is needed. The logs that were written last stay.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, TextIO

from windows_pipeline.cli.terminal.console import UserStream
from windows_pipeline.text.references import without_values

FOLDER = Path(".cache") / "windows-pipeline"
MOST_LOGS = 20
"""The most logs that a folder keeps."""
MOST_BYTES = 16 * 1024**2
"""A log that grows beyond this size keeps its last part."""
KEPT_BYTES = 1024**2
_STREAMS = (("stdout", 1), ("stderr", 2))
_ERRORS = "backslashreplace"
"""How characters that the encoding lacks are written."""


class LogFile:
    """The log of one command.

    Attributes:
        path: Where the log lies, once something is written.
    """

    def __init__(self, folder: Path, command: str) -> None:
        """Names the log; its first use creates the file.

        Args:
            folder: The folder of logs.
            command: The command's name, with which the log's name begins.
        """
        started = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
        self.path = folder / f"{command}-{started}-{os.getpid()}.log"
        self._file: BinaryIO | None = None
        self._text: TextIO | None = None

    @property
    def is_open(self) -> bool:
        """Whether the command writes to the log."""
        return self._file is not None

    def open(self) -> BinaryIO:
        """The log, to append bytes; the first call makes it and deletes the oldest logs.

        Raises:
            OSError: The folder or the file cannot be written.
        """
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _delete_oldest(self.path.parent)
            # In append mode the JVM and Python write to the same end, even after the log was cut.
            self._file = self.path.open("ab", buffering=0)
        return self._file

    def add_trace(self, error: BaseException) -> None:
        """Appends an error with its trace, to a new file where another command deleted the log.

        Raises:
            OSError: The log cannot be written.
        """
        self.open()
        text = without_values("".join(traceback.format_exception(error)))
        with self.path.open("ab") as log:
            log.write(text.encode(errors=_ERRORS))

    @contextmanager
    def captured(self) -> Iterator[None]:
        """Sends all standard output and error to the log, except what the consoles print.

        Processes that start within the block, such as Spark's JVM, inherit the log for good.

        Raises:
            OSError: The log cannot be written.
        """
        log = self.open()
        with ExitStack() as stack:
            stack.callback(take_out_values, self.path)
            stack.callback(self.cut)
            _flush()
            own = {}
            for name, descriptor in _STREAMS:
                encoding = getattr(sys, name).encoding
                own[name] = stack.enter_context(
                    os.fdopen(os.dup(descriptor), "w", encoding=encoding, errors=_ERRORS)
                )
                stack.callback(os.dup2, own[name].fileno(), descriptor)
                os.dup2(log.fileno(), descriptor)
            stack.callback(_flush)  # what is buffered belongs to the log
            if self._text is None:  # stays open, as loggers may keep it
                self._text = os.fdopen(os.dup(log.fileno()), "w", buffering=1, errors=_ERRORS)
            # Without these, streams that code has replaced would go past the file descriptors.
            stack.enter_context(redirect_stdout(self._text))
            stack.enter_context(redirect_stderr(self._text))
            stack.enter_context(UserStream.replaced(**own))
            yield

    def cut(self) -> None:
        """Cuts a log that is too large to its last part; other writers continue at its end."""
        with suppress(OSError), self.path.open("r+b") as log:
            size = log.seek(0, os.SEEK_END)
            if size <= MOST_BYTES:
                return
            log.seek(size - KEPT_BYTES)
            last = log.read()
            log.truncate(0)
            self.open().write(b"(the log was too large; its first part is gone)\n" + last)


def _flush() -> None:
    for name, _ in _STREAMS:
        getattr(sys, name).flush()


def take_out_values(path: Path) -> None:
    """Replaces values of environment variables by the references that they came from.

    Spark and its clients may write a value that they refuse. A log that can't be changed stays.
    """
    with suppress(OSError), path.open("r+b") as log:
        text = log.read().decode(errors="surrogateescape")
        clean = without_values(text)
        if clean != text:
            log.seek(0)
            log.write(clean.encode(errors="surrogateescape"))
            log.truncate()


def _delete_oldest(folder: Path) -> None:
    """Makes room for a log by deleting those to which nothing was written for longest."""
    found = []
    for path in folder.glob("*.log"):
        with suppress(OSError):  # another command may delete it, too
            if not path.is_symlink():
                found.append((path.stat().st_mtime, path))
    for _, path in sorted(found)[: max(len(found) - MOST_LOGS + 1, 0)]:
        with suppress(OSError):
            path.unlink()
