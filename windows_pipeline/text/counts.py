"""Writes numbers of things, so that a message about a single thing reads as such."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Writes a number with its noun, as in `1 file` and `1,200 files`.

    Args:
        number: How many there are.
        noun: The noun in the singular.
        plural: The noun in the plural; by default with an s.
    """
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {plural or f'{noun}s'}"
