"""Folders that the processes of a run of the tests share: one makes what is in it."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone(lock_file: Path) -> Iterator[None]:
    """Waits until no other process of the tests is inside."""
    with lock_file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def made_once(folder: Path, make: Callable[[Path], object]) -> Path:
    """A folder that is made by the first process that asks for it; the others wait."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    done = folder.with_suffix(".done")
    with alone(folder.with_suffix(".lock")):
        if not done.exists():
            make(folder)
            done.touch()
    return folder
