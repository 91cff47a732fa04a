"""Names the line of a user's code that raised, for the error of a Spark job."""

from __future__ import annotations

from traceback import extract_tb


def with_location(error: Exception, file: str = "") -> str:
    """The exception and the line that raised it; Spark's error shows no more of a traceback.

    Args:
        error: The exception.
        file: The user's file, whose innermost line it is; empty for the line of any file.
    """
    called = extract_tb(error.__traceback__)
    raised_at = ([each for each in called if each.filename == file] or called)[-1]
    return f"{error!r} ({raised_at.filename}, line {raised_at.lineno}, in {raised_at.name})"
