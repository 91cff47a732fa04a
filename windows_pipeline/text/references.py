"""References to environment variables in the texts of files: ``${env:NAME}``.

A reference stands for the variable's value where the text is used, and nowhere else: the model,
digests and errors have the text as the file writes it. ``$${env:`` stands for ``${env:``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Annotated, Self

from pydantic import WrapValidator

from windows_pipeline.text.problems import ConfigError

_MARK = "${env:"
_TOKEN = re.compile(r"\$(?P<escaped>\$\{env:)|\$\{env:(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}")
_SHORTEST_HIDDEN = 8
"""Shorter values are not taken out of messages, in which they occur by chance, as `true` does."""
_resolved: dict[str, str] = {}
"""The values that may be secrets, for which references stood in this process."""


class Referring(str):
    """A text of a file that has a reference, or the escape of one.

    Attributes:
        location: Where the text stands: `file:line: field`.
    """

    __slots__ = ("location",)
    location: str

    def __new__(cls, text: str, location: str) -> Self:
        """Makes the text."""
        made = super().__new__(cls, text)
        made.location = location
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        """Returns what copies and pickles are made of."""
        return str(self), self.location


def refers(text: str) -> bool:
    """Whether a text has a reference or the escape of one, or the beginning of either."""
    return _MARK in text


def escaped(text: str) -> str:
    """Escapes a text so that a file that contains it means exactly this text."""
    return text.replace(_MARK, f"${_MARK}")


def reference_problem(text: str) -> str | None:
    """What is wrong with the references of a text, and the fix; None if they are right."""
    if _MARK not in _TOKEN.sub("", text):
        return None
    return (
        "has '${env:' without the name of a variable and '}' after it; write ${env:NAME} with "
        "letters, digits and _, or $${env: for the characters themselves"
    )


def resolved(text: str, *, may_be_secret: bool = True) -> str:
    """The text to use: with the values of variables for its references.

    A text of code, which no file has written, is returned unchanged.

    Args:
        text: The text.
        may_be_secret: Whether `without_values` takes the values out of messages.

    Raises:
        ConfigError: A variable is not set; the error names it, the file, the line and the field.
    """
    if not isinstance(text, Referring):
        return text
    location = text.location

    def value(token: re.Match[str]) -> str:
        name = token["name"]
        if name is None:
            return token["escaped"]
        found = os.environ.get(name)
        if found is None:
            reason = f"refers to the environment variable {name}, which is not set; set it"
            raise ConfigError(
                [f"{location}: {reason}, or write $${{env:{name}}} for the text itself"]
            )
        if may_be_secret and len(found) >= _SHORTEST_HIDDEN:
            _resolved[found] = token[0]
        return found

    return _TOKEN.sub(value, text)


def position(text: str, otherwise: str) -> str:
    """Where a text stands, and the references that it has: `file:line: field: ${env:NAME}`.

    Args:
        text: The text.
        otherwise: The position of a text without references.
    """
    if not isinstance(text, Referring):
        return otherwise
    found = [token[0] for token in _TOKEN.finditer(text) if token["name"] is not None]
    return ": ".join([text.location, *([" and ".join(found)] if found else [])])


def without_values(text: str) -> str:
    """A message with references in place of the values that they stood for in this process.

    Other programs' errors may show a value that they refuse.
    """
    for value in sorted(_resolved, key=len, reverse=True):
        text = text.replace(value, _resolved[value])
    return text


def _kept(value: object, check: Callable[[object], str]) -> str:
    checked = check(value)
    return value if isinstance(value, Referring) else checked


KEEPS_REFERENCES = WrapValidator(_kept)
"""Makes a field of text keep its position in the file, which pydantic would drop."""
ReferringText = Annotated[str, KEEPS_REFERENCES]
"""A text that may have references."""
