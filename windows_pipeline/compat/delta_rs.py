"""What delta-rs (1.6) takes or reads otherwise than Delta's protocol says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

UNTAKEN_CHARACTERS = frozenset("%[]^|\\")
"""What delta-rs takes no folder with."""
_RETENTIONS = ("delta.logRetentionDuration", "delta.deletedFileRetentionDuration")
_PERIOD = re.compile(r"interval( \d+ (week|day|hour|minute|second)s?)+")
_LAST_CHECKPOINT_CHECKSUM = "_delta_log/._last_checkpoint.crc"


def takes_folder(location: str) -> bool:
    """Whether delta-rs can have a table in a local folder of that absolute path."""
    return UNTAKEN_CHARACTERS.isdisjoint(location) and location.isprintable()


def reads_retention(properties: Mapping[str, str]) -> bool:
    """Whether delta-rs reads all that a table's properties say of what is to be kept.

    Where it cannot read a period, such as `60 days`, it takes its own default.
    """
    periods = (properties[name] for name in _RETENTIONS if name in properties)
    return all(map(_PERIOD.fullmatch, periods))


def forget_last_checkpoint(location: str) -> None:
    """Deletes the checksum that Spark wrote of a table's `_last_checkpoint`.

    delta-rs writes another `_last_checkpoint` and leaves that checksum, which would not fit: Spark
    would wait for seconds before it reads the table without. No checksum is held against no file.

    Args:
        location: The table's local folder.

    Raises:
        OSError: The file cannot be deleted.
    """
    (Path(location) / _LAST_CHECKPOINT_CHECKSUM).unlink(missing_ok=True)
