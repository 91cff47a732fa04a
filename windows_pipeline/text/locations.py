"""Where things lie: local paths and URIs."""

from __future__ import annotations

from pathlib import Path


def resolve(location: str, base: str | Path) -> str:
    """A location under a base; a URI or an absolute path stays as it is."""
    if "://" in location or Path(location).is_absolute():
        return location
    return f"{str(base).rstrip('/')}/{location}".removesuffix("/.")
