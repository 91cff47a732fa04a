"""Names a landed file that can't be read, also where a Spark task is what read the file."""

from __future__ import annotations

import re

_IN_TRACE = re.compile(r"^[\w.]*\bBadFileError: (.+)$", re.MULTILINE)


class BadFileError(ValueError):
    """A landed file can't be read; the message is one line that names file, fault and fix."""

    def __init__(self, text: str) -> None:
        """Takes the message, whose line breaks become blanks."""
        super().__init__(" ".join(text.split()))


def bad_file_in(error: BaseException) -> BadFileError | None:
    """The bad file that an error is about; None if the error is about something else.

    Args:
        error: A `BadFileError`, or the error of a Spark job, which has a task's error as text.
    """
    if isinstance(error, BadFileError):
        return error
    found = _IN_TRACE.search(str(error))
    return BadFileError(found[1]) if found else None
