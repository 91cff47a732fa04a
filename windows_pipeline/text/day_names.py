"""Reads the names of day folders."""

from __future__ import annotations

import re
from datetime import date

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def day_of(name: str) -> date | None:
    """The arrival day that a folder's name says; None if the name is not a day."""
    if not _DAY.fullmatch(name):
        return None
    try:
        return date.fromisoformat(name)
    except ValueError:
        return None
