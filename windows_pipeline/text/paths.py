"""Paths as Spark's readers take them."""

from __future__ import annotations

import re


def literal(path: str) -> str:
    """A path as Spark takes it: what it would read as a pattern is escaped."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)
