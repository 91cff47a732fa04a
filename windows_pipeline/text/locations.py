"""Resolves locations of files and tables, which are local paths or URIs."""

from __future__ import annotations

from pathlib import Path


def resolve(location: str, base: str | Path) -> str:
    """Joins a relative path to a base; returns a URI or an absolute path unchanged."""
    if "://" in location or Path(location).is_absolute():
        return location
    return f"{str(base).rstrip('/')}/{location}".removesuffix("/.")
