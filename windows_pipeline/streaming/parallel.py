"""Runs tasks side by side: what takes long about a small commit is waiting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def together(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Runs tasks at once; all have ended when it returns what they return, in their order.

    Raises:
        Exception: What the first of them that failed raised.
    """
    if not tasks:
        return []
    with ThreadPoolExecutor(len(tasks)) as threads:
        running = [threads.submit(task) for task in tasks]
    return [one.result() for one in running]
