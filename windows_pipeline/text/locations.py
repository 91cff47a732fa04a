"""Resolves locations of files and tables, which are local paths or URIs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from windows_pipeline.text.references import resolved

_ONE_SLASH = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/(?!/)")
_options: dict[str, Mapping[str, str]] = {}
"""The storage options of this process, by the URI that they are for."""


def whole_location(location: str) -> str:
    """Returns a location, which is no local path that begins like a URI.

    Raises:
        ValueError: One slash follows its scheme: `file:/tables` would be a folder of that name.
    """
    scheme = _ONE_SLASH.match(location)
    if scheme is None:
        return location
    whole = f"{scheme[1]}:///{location[scheme.end() :]}"
    raise ValueError(f"{location!r} has one slash after {scheme[1]}:; write {whole!r}")


def resolve(location: str, base: str | Path) -> str:
    """Joins a relative path to a base; returns a URI or an absolute path unchanged."""
    if "://" in location or Path(location).is_absolute():
        return location
    return f"{str(base).rstrip('/')}/{location}".removesuffix("/.")


def use_storage_options(location: str, options: Mapping[str, str]) -> None:
    """Sets how this process reaches the tables below a URI without Spark.

    Args:
        location: The URI.
        options: The options of deltalake; their texts may have references to the environment.
    """
    _options[location.rstrip("/")] = options


def storage_options(location: str) -> dict[str, str] | None:
    """The storage options of a location; None if no tables there are read without Spark.

    Raises:
        ConfigError: An option refers to an environment variable that is not set.
    """
    if location.startswith("/"):
        return {}
    for known in sorted(_options, key=len, reverse=True):
        if f"{location}/".startswith(f"{known}/"):
            return {name: resolved(text) for name, text in _options[known].items()}
    return None
