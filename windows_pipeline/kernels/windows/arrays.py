"""Windows as NumPy arrays, which every finder of windows returns and every aggregate takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class WindowArrays(NamedTuple):
    """The windows of a chunk of groups, by group and end, and the records they contain.

    A window contains the records `enter_order[:entered]` except the records `[:left]`. Records
    are sorted by group and event time, so those of earlier groups cancel out.

    Attributes:
        group: By window, the number of its group.
        end_ms: By window, its end.
        closed: By window, whether the close time is beyond its end (rule A4).
        entered: By window, how many records have entered by its end.
        left: By window, how many records have left by its end.
        enter_order: The records in the order in which they enter; they leave by event time.
        dropped: A mask of partly late records that no window counted before all closed (rule A5).
        last_end_ms: Where each entry is a run of hopping windows, the end of the run's last window;
            None where each entry is a window.
    """

    group: np.ndarray
    end_ms: np.ndarray
    closed: np.ndarray
    entered: np.ndarray
    left: np.ndarray
    enter_order: np.ndarray
    dropped: np.ndarray
    last_end_ms: np.ndarray | None = None

    @classmethod
    def all_counted(cls, found: Sequence[np.ndarray], enter_order: np.ndarray) -> WindowArrays:
        """Windows of a kind that counts every record that is in time for at least one window."""
        group, end_ms, closed, entered, left = found
        dropped = np.zeros(len(enter_order), np.bool_)
        return cls(group, end_ms, closed, entered, left, enter_order, dropped)

    def only(self, chosen: np.ndarray) -> WindowArrays:
        """The windows of a mask."""
        if chosen.all():
            return self
        return self._replace(
            group=self.group[chosen],
            end_ms=self.end_ms[chosen],
            closed=self.closed[chosen],
            entered=self.entered[chosen],
            left=self.left[chosen],
            last_end_ms=None if self.last_end_ms is None else self.last_end_ms[chosen],
        )
