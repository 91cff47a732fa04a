"""Where delta-rs (1.6) deviates from Delta's protocol."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

UNSUPPORTED_CHARACTERS = frozenset("%[]^|\\")
"""delta-rs cannot open a folder whose path contains any of these characters."""
_RETENTIONS = ("delta.logRetentionDuration", "delta.deletedFileRetentionDuration")
_PERIOD = re.compile(r"interval( \d+ (week|day|hour|minute|second)s?)+")
_LAST_CHECKPOINT_CHECKSUM = "_delta_log/._last_checkpoint.crc"


def supports_folder(location: str) -> bool:
    """Whether delta-rs can open a table in the local folder with this absolute path."""
    return UNSUPPORTED_CHARACTERS.isdisjoint(location) and location.isprintable()


def understands_retention(properties: Mapping[str, str]) -> bool:
    """Whether delta-rs understands the retention periods in a table's properties.

    delta-rs replaces a period that it cannot parse, such as `60 days`, by its own default.
    """
    periods = (properties[name] for name in _RETENTIONS if name in properties)
    return all(map(_PERIOD.fullmatch, periods))


def forget_last_checkpoint(location: str) -> None:
    """Deletes the checksum file that Spark wrote for a table's `_last_checkpoint`.

    delta-rs rewrites `_last_checkpoint` and leaves Spark's checksum file, which then does not
    match: Spark would retry for seconds before it ignores `_last_checkpoint`. Without a checksum
    file Spark verifies nothing.

    Args:
        location: The table's local folder.

    Raises:
        OSError: The file cannot be deleted.
    """
    (Path(location) / _LAST_CHECKPOINT_CHECKSUM).unlink(missing_ok=True)
