"""Golden cases of count windows, with the answers of both of Flink's APIs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from windows_pipeline.windows.count_windows import CountWindows

COUNT_KINDS = ("tumble_count", "slide_count")

ANSWERS = ("updates", "datastream_updates")
"""The fields of the Table API's and DataStream's answers; each is a computed day of a case."""


class Update(NamedTuple):
    """A window that fired: the offset of the record that fired it, and those of its records."""

    after: int
    key: str | None
    offsets: tuple[int, ...]


def count_spec(window: Mapping[str, Any]) -> CountWindows:
    """Reads the windows of a case as those of the Table API."""
    return CountWindows(window["size"], window.get("advance", window["size"]))


def count_updates(
    raw: Mapping[str, Any], key_text: Callable[[object], str | None]
) -> dict[str, list[Update]]:
    """Reads a case's answers, sorted; DataStream has none for null keys, which it refuses."""
    return {
        name: sorted_updates(
            [Update(row["after"], key_text(row["key"]), tuple(row["offsets"])) for row in raw[name]]
        )
        for name in ANSWERS
        if name in raw
    }


def sorted_updates(updates: list[Update]) -> list[Update]:
    """Sorts updates by the record that fired them, then by key and records."""
    return sorted(updates, key=lambda update: (update.after, update.key or "", update.offsets))
