"""Writes Markdown: text from files and data is never markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# An underscore within a word is no markup, and lists of assets show Markdown as it is written.
_MARKUP = re.compile(r"[\\`*\[\]<>#|~&$]|^[-+]|(?<![^\W_])_|_(?![^\W_])")


def plain(text: str) -> str:
    """The Markdown that shows a text as it is, in one line."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(text.split()))


def as_text(markdown: str) -> str:
    """The text that `plain` was given, where Markdown is shown as it is written."""
    return re.sub(r"\\(.)", r"\1", markdown)


def code(text: str) -> str:
    """The Markdown that shows a text as code, in one line; also in a cell of a table."""
    shown = " ".join(text.split()).replace("|", "\\|")
    longest = max((len(found) for found in re.findall("`+", shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose names and cells are Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
