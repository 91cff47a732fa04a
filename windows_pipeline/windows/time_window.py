"""A window's bounds."""

from __future__ import annotations

from typing import NamedTuple


class TimeWindow(NamedTuple):
    """A window's bounds in event time, milliseconds.

    The start belongs to the window. So does the end of sliding windows and sessions (rules
    B2, D1); that of hopping and tumbling windows does not (rule C1).
    """

    start_ms: int
    end_ms: int
