"""Repeats writes that conflicted with another run's write."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from delta.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    MetadataChangedException,
    ProtocolChangedException,
)
from deltalake.exceptions import CommitFailedError
from pyspark.errors import AnalysisException

R = TypeVar("R")
_CONFLICTS = (
    CommitFailedError,
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
)
_CREATION_CONFLICTS = (CommitFailedError, MetadataChangedException, ProtocolChangedException)
_ATTEMPTS = 20


def is_conflict(error: Exception) -> bool:
    """Whether a write failed because another write changed rows that it had read."""
    return isinstance(error, _CONFLICTS)


def is_creation_conflict(error: Exception) -> bool:
    """Whether creating a table failed because another run created it at the same time."""
    if isinstance(error, AnalysisException):  # the folder existed, but no version of the table
        return error.getCondition() == "DELTA_TABLE_NOT_FOUND"
    return isinstance(error, _CREATION_CONFLICTS)


def retry_conflicts(write: Callable[[], R], is_retriable: Callable[[Exception], bool]) -> R:
    """Calls `write`, and calls it again after a conflict, up to twenty times.

    Args:
        write: The write; it must be safe to repeat.
        is_retriable: Whether an error is a conflict that another attempt may avoid.

    Raises:
        Exception: `write` raised an error that is not retriable, or failed twenty times.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return write()
        except Exception as error:
            if not is_retriable(error):
                raise
        time.sleep(random.uniform(0.1, 1.0))  # noqa: S311  at random, so that two runs do not collide again
    return write()
