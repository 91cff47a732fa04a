"""A chunk's records and the windows over them, from which every aggregate is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from windows_pipeline.kernels.windows.sliding import Windows


class WindowedRecords(NamedTuple):
    """The records of a chunk, in the order of group and event time, and windows over them.

    Attributes:
        starts: Where each group's records begin; one more entry for the end of the last.
        time_ms: The records' event times.
        windows: The windows, by group. Within a group `entered` and `left` never fall, each
            record enters before it leaves, and `enter_order` permutes the group's records.
        describe: Names a window, given its index: "the window of key 'UA' from 0 to 10 (ms)".
    """

    starts: np.ndarray
    time_ms: np.ndarray
    windows: Windows
    describe: Callable[[int], str]

    def part(self, start: int, end: int) -> WindowedRecords:
        """The same records with the windows from index `start` to before `end`."""
        windows, last_end_ms = self.windows, self.windows.last_end_ms
        some = windows._replace(
            group=windows.group[start:end],
            end_ms=windows.end_ms[start:end],
            closed=windows.closed[start:end],
            entered=windows.entered[start:end],
            left=windows.left[start:end],
            last_end_ms=None if last_end_ms is None else last_end_ms[start:end],
        )
        return self._replace(windows=some, describe=lambda window: self.describe(start + window))
