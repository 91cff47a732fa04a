"""Waiting for what another process does."""

from __future__ import annotations

import time
from collections.abc import Callable

_POLL_S = 0.2


def wait_until(holds: Callable[[], bool], limit_s: float, name: str) -> None:
    """Returns once it holds.

    Raises:
        TimeoutError: It did not in the time.
    """
    end = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {limit_s} s for {name}")
        time.sleep(_POLL_S)
