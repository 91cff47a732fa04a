"""Says whether a command writes a pipeline's tables, to schedules and sensors; without Spark.

A command holds a shared lock on a file in the pipeline's folder while it runs. The operating system
releases the lock of a process that was killed. The lock keeps no writer out: it is for those who
would start a run of the same days beside the command.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from windows_pipeline.config import Pipeline

_NAME = "_writers.lock"


@contextmanager
def writing(pipeline: Pipeline, warehouse: str) -> Iterator[None]:
    """Holds the lock of a pipeline; several processes may hold it at once.

    Args:
        pipeline: The pipeline.
        warehouse: The folder of all tables. One that is no local folder has no lock.

    Raises:
        OSError: The folder of the pipeline's tables cannot be written.
    """
    path = _lock_file(pipeline, warehouse)
    if path is None:
        yield
        return
    with holding(path):
        yield


def is_writing(pipeline: Pipeline, warehouse: str) -> bool:
    """Whether a process of this machine holds the lock of a pipeline."""
    path = _lock_file(pipeline, warehouse)
    return path is not None and is_held(path)


@contextmanager
def holding(path: Path) -> Iterator[None]:
    """Holds a shared lock on a file, which is made if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


def is_held(path: Path) -> bool:
    """Whether a process of this machine holds the lock on a file; no one holds that of none."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _lock_file(pipeline: Pipeline, warehouse: str) -> Path | None:
    return None if "://" in warehouse else Path(warehouse) / pipeline.name / _NAME
