"""The bounds of a window in event time."""

from __future__ import annotations

from typing import NamedTuple


class TimeWindow(NamedTuple):
    """The bounds of a window in event time, milliseconds.

    The start is inclusive. The end is inclusive for sliding windows and sessions (rules B2, D1),
    exclusive for hopping and tumbling windows (rule C1).
    """

    start_ms: int
    end_ms: int
