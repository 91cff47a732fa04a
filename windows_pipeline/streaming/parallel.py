"""Runs tasks at the same time, because a small commit mostly waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def together(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Runs tasks at the same time, waits for all, and returns their results in order.

    Raises:
        Exception: A task failed; the error is that of the first failed task in order.
    """
    if not tasks:
        return []
    with ThreadPoolExecutor(len(tasks)) as threads:
        running = [threads.submit(task) for task in tasks]
    return [one.result() for one in running]
