"""What a user's own code raised, as an error of a Spark job can tell it."""

from __future__ import annotations

from traceback import extract_tb


def with_place(error: Exception) -> str:
    """The exception and the line that raised it: of its traceback Spark tells no more."""
    raised_at = extract_tb(error.__traceback__)[-1]
    return f"{error!r} ({raised_at.filename}, line {raised_at.lineno}, in {raised_at.name})"
