"""Runs tasks side by side: what takes long about a small commit is waiting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor


def together(tasks: Sequence[Callable[[], None]]) -> None:
    """Runs tasks at once; all have ended when it returns.

    Raises:
        Exception: What the first of them that failed raised.
    """
    if not tasks:
        return
    with ThreadPoolExecutor(len(tasks)) as threads:
        running = [threads.submit(task) for task in tasks]
    for one in running:
        one.result()
