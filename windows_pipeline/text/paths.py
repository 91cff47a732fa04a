"""Escapes paths for Spark's readers, which take paths as patterns."""

from __future__ import annotations

import re


def literal(path: str) -> str:
    """Escapes the characters of a path that Spark would read as a pattern."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)
