"""Names the line of a user's code that raised, for the error of a Spark job."""

from __future__ import annotations

from traceback import extract_tb


def with_location(error: Exception) -> str:
    """The exception and the line that raised it; Spark's error shows no more of a traceback."""
    raised_at = extract_tb(error.__traceback__)[-1]
    return f"{error!r} ({raised_at.filename}, line {raised_at.lineno}, in {raised_at.name})"
