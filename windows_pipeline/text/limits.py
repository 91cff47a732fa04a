"""How long a text may be that is parsed, and how much of a value an error message shows."""

from __future__ import annotations

MAX_TEXT = 2_000
"""Characters; a name, duration, type, rule or call of a user's is far shorter."""
_MOST_SHOWN = 60
TOO_LONG = f"is longer than {MAX_TEXT} characters; make it shorter"
"""What is wrong with a longer text, and the fix."""


def shown(value: object, most: int = _MOST_SHOWN) -> str:
    """A value as an error message shows it: its repr, cut where it is long."""
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}..."


def require_short(text: object, name: str = "") -> None:
    """Refuses a text that is too long to be parsed.

    Args:
        text: The value; only a text has a length here.
        name: What it is of, for the error; the error leaves the value out where it is empty.

    Raises:
        ValueError: The text has more than `MAX_TEXT` characters.
    """
    if isinstance(text, str) and len(text) > MAX_TEXT:
        raise ValueError(f"{name}: {shown(text)} {TOO_LONG}" if name else TOO_LONG)
