"""Writes beside those of other runs: what they say when another came first, and trying again."""

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
_IN_THE_WAY = (
    CommitFailedError,
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
)
_MADE_MEANWHILE = (CommitFailedError, MetadataChangedException, ProtocolChangedException)
_ATTEMPTS = 20


def is_conflict(error: Exception) -> bool:
    """Whether a write was refused because another changed what it read."""
    return isinstance(error, _IN_THE_WAY)


def is_creation_conflict(error: Exception) -> bool:
    """Whether a table could not be made as another run made it just then."""
    if isinstance(error, AnalysisException):  # its folder was there, and no version of it yet
        return error.getCondition() == "DELTA_TABLE_NOT_FOUND"
    return isinstance(error, _MADE_MEANWHILE)


def retry_conflicts(write: Callable[[], R], may_pass: Callable[[Exception], bool]) -> R:
    """Writes, and tries again where another run was in the way.

    Args:
        write: What to do; it can be done again.
        may_pass: Whether an error may not come up the next time.

    Raises:
        Exception: What `write` raised, if it may not pass or has come up twenty times.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return write()
        except Exception as error:
            if not may_pass(error):
                raise
        time.sleep(random.uniform(0.1, 1.0))  # noqa: S311  so that two that wait part
    return write()
