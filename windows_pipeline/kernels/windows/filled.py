"""A chunk's records and the windows over them, from which every aggregate is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windows_pipeline.kernels.windows.arrays import WindowArrays


class WindowedRecords(NamedTuple):
    """The records of a chunk, in the order of group and event time, and windows over them.

    Attributes:
        starts: Where each group's records begin; one more entry for the end of the last.
        time_ms: The records' event times.
        windows: The windows, by group. Within a group `entered` and `left` never fall, each
            record enters before it leaves, and `enter_order` permutes the group's records.
        describe: Names a window, given its index: "the window of key 'UA' from 0 to 10 (ms)".
        noted: The aggregates that can't be computed, by name, with the indices of their windows;
            None if such an aggregate raises an error (rule G3).
    """

    starts: np.ndarray
    time_ms: np.ndarray
    windows: WindowArrays
    describe: Callable[[int], str]
    noted: list[tuple[str, np.ndarray]] | None = None

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
        return self._replace(
            windows=some,
            describe=lambda window: self.describe(start + window),
            noted=None if self.noted is None else [],
        )

    def fail(self, name: str, windows: np.ndarray, error_of: Callable[[int], Exception]) -> None:
        """Notes that an aggregate can't be computed in some windows, or raises the first error.

        Args:
            name: The aggregate's name.
            windows: The indices of at least one window, in order.
            error_of: Makes the error of a window.

        Raises:
            Exception: The error of the first window, unless failures are noted.
        """
        if self.noted is None:
            raise error_of(int(windows[0]))
        self.noted.append((name, windows))

    def failed(self) -> pa.Array:
        """The names of the aggregates that can't be computed in each window, in order."""
        count = len(self.windows.group)
        if not self.noted:
            offsets = pa.array(np.zeros(count + 1, np.int32))
            return pa.ListArray.from_arrays(offsets, pa.array([], pa.string()))
        names, windows = zip(*self.noted, strict=True)
        by_window = np.argsort(np.concatenate(windows), kind="stable")
        of_name = np.repeat(np.arange(len(names)), [len(some) for some in windows])[by_window]
        counts = np.bincount(np.concatenate(windows), minlength=count)
        offsets = pa.array(np.concatenate(([0], np.cumsum(counts))), pa.int32())
        return pa.ListArray.from_arrays(offsets, pa.array(names).take(pa.array(of_name)))
