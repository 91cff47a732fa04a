"""Recounts sessions by replaying their records in the order of arrival (rule D2).

The replay compares each record with the sessions that are open then, without the engine's orders
and trees. Few sessions are open at a time: they are further apart than the gap, and none is older
than grace and gap. The recount takes many keys at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from windows_pipeline.checks.recounts.kernel import (
    GROUP,
    ChunkRecount,
    Recount,
    codes_of,
    how_many_equal,
    numbers,
    recount_groups,
)
from windows_pipeline.compat.numba_jit import compiled
from windows_pipeline.kernels.groups import CHUNK_ROWS

ADDED = (
    "recount",
    "recount_first_ms",
    "recount_last_ms",
    "beyond_grace",
    "previous_end_ms",
    "same_end",
    "counted",
    "last_instant_ms",
)
"""The columns that the recount adds to windows and records, all bigint."""
_ADDED = pa.schema([(name, pa.int64()) for name in ADDED])

ORDER = ("_close_time_ms", "arrival_unit", "source_partition", "offset")
"""The order of arrival; windows, which have none of these columns, come first."""
_LATE = -1


def session_recount(gap_ms: int, group: Sequence[str] = GROUP) -> Recount:
    """The function by which `recount_windows` recounts sessions.

    It needs rows sorted by `shards.by_group`, by the columns of `ORDER` within a group.
    """
    make = partial(_Chunk, gap_ms=gap_ms)
    return partial(recount_groups, make, _ADDED, group, ORDER, CHUNK_ROWS)


class _Chunk(ChunkRecount):
    """The replayed sessions of whole groups, and the windows to compare with them."""

    def __init__(
        self,
        records: pa.Table,
        of_records: np.ndarray,
        windows: pa.Table,
        of_windows: np.ndarray,
        gap_ms: int,
    ) -> None:
        time_ms, close_ms = numbers(records, "_event_time_ms"), numbers(records, "_close_time_ms")
        self.session = _replay(of_records, time_ms, close_ms, gap_ms)
        in_session = self.session != _LATE
        named = self.session[in_session]
        rows = len(time_ms)
        self.count = np.bincount(named, minlength=rows).astype(np.int64)
        beyond = in_session & (time_ms < close_ms + gap_ms)
        self.beyond = np.bincount(self.session[beyond], minlength=rows).astype(np.int64)
        self.first_ms, self.last_ms = time_ms.copy(), time_ms.copy()
        np.minimum.at(self.first_ms, named, time_ms[in_session])
        np.maximum.at(self.last_ms, named, time_ms[in_session])
        # A session is identified by the index of one of its records.
        self.names = np.unique(named)
        self.of_windows, self.end_ms = of_windows, numbers(windows, "_window_end_ms")
        groups, ends = (of_records[self.names], of_windows), (self.last_ms[self.names], self.end_ms)
        _, (self.session_code, self.window_code) = codes_of(groups, ends)

    def window_columns(self) -> dict[str, pa.Array]:
        order = np.argsort(self.session_code)
        index = np.searchsorted(self.session_code[order], self.window_code)
        found = index < len(order)
        found[found] = self.session_code[order][index[found]] == self.window_code[found]
        name = np.zeros(len(index), np.int64)
        name[found] = self.names[order][index[found]]
        recount, beyond = np.zeros((2, len(index)), np.int64)
        recount[found], beyond[found] = self.count[name[found]], self.beyond[name[found]]
        times_ms = [np.zeros(len(index), np.int64) for _ in range(2)]
        for times, of_session in zip(times_ms, (self.first_ms, self.last_ms), strict=True):
            times[found] = of_session[name[found]]
        first_ms, last_ms = (pa.array(times, mask=~found) for times in times_ms)
        return {
            "recount": pa.array(recount),
            "recount_first_ms": first_ms,
            "recount_last_ms": last_ms,
            "beyond_grace": pa.array(beyond),
            "previous_end_ms": self._previous_end(),
            "same_end": pa.array(how_many_equal([self.window_code])),
        }

    def _previous_end(self) -> pa.Array:
        """The end of the previous window in each window's group; null for the first window."""
        order = np.lexsort((self.end_ms, self.of_windows))
        group = self.of_windows[order]
        is_first = np.diff(group, prepend=-1) != 0
        previous = np.concatenate(([0], self.end_ms[order][:-1]))[: len(order)]
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return pa.array(previous[rank], mask=is_first[rank])

    def held(self) -> np.ndarray:
        """Whether a window ends where each record's session ends."""
        is_window = np.zeros(len(self.session), np.bool_)
        is_window[self.names] = np.isin(self.session_code, self.window_code)
        held: np.ndarray = (self.session != _LATE) & is_window[self.session]
        return held

    def counts_in_none(self) -> np.ndarray:
        """Whether each record was too late for every session."""
        late: np.ndarray = self.session == _LATE
        return late

    def record_columns(self, wanted: np.ndarray) -> dict[str, pa.Array]:
        """The last instant of each wanted record's session."""
        return {"last_instant_ms": pa.array(self.last_ms[self.session[wanted]])}


@compiled
def _replay(
    group: np.ndarray, time_ms: np.ndarray, close_ms: np.ndarray, gap_ms: int
) -> np.ndarray:
    """Returns the index that names each record's session, or `_LATE`; groups must be contiguous."""
    rows = len(time_ms)
    joined = np.arange(rows)
    first_ms, last_ms = time_ms.copy(), time_ms.copy()
    is_open = np.empty(rows, np.int64)
    open_count = 0
    for r in range(rows):
        if r > 0 and group[r] != group[r - 1]:
            open_count = 0
        time, still_open = time_ms[r], 0
        for index in range(open_count):
            other = is_open[index]
            if last_ms[other] < close_ms[r]:
                continue  # the other session is closed
            if first_ms[other] - gap_ms <= time <= last_ms[other] + gap_ms:
                joined[other] = r
                first_ms[r] = min(first_ms[r], first_ms[other])
                last_ms[r] = max(last_ms[r], last_ms[other])
            else:
                is_open[still_open] = other
                still_open += 1
        if last_ms[r] < close_ms[r]:
            joined[r] = _LATE
        else:
            is_open[still_open] = r
            still_open += 1
        open_count = still_open
    for r in range(rows - 1, -1, -1):  # a session is named by a later record that joined it
        if joined[r] != _LATE:
            joined[r] = joined[joined[r]]
    return joined
