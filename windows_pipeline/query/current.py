"""The current windows among rows of keyed_windows, without Spark (rule E4).

keyed_windows has a row for each arrival unit and micro-batch that changed or closed a window. A
window's newest row has its current state. A session that grew or joined another session has other
bounds than before; the rows with its earlier bounds are no current windows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windows_pipeline.query.tables.arrow_values import booleans, integer
from windows_pipeline.query.tables.keys import differ, flattened, in_order

_VERSION = ("arrival_unit", "batch")
"""Orders the rows of a window by age; a row without a micro-batch is older than others."""


class _Session(NamedTuple):
    """A session as a row has it.

    Attributes:
        position: The row's position.
        version: Arrival day and micro-batch; tuples compare by age.
        start_us: Its first record, in microseconds since 1970.
        end_us: Its last record.
        is_open: Whether it could still change.
    """

    position: int
    version: tuple[int, int]
    start_us: int
    end_us: int
    is_open: bool


def current_windows(rows: pa.Table, window_key: Sequence[str], *, may_grow: bool) -> pa.Table:
    """Returns the current windows.

    Args:
        rows: Rows of keyed_windows, with `arrival_unit`, `batch`, `window_start`, `window_end` and
            `closed`. For each window all its rows, or none; for each session also the rows of
            those sessions of its key that contain it.
        window_key: The columns that identify a window, `key` first.
        may_grow: Whether an open window can take other bounds, as a session does.

    Returns:
        The rows of current windows, in the order of `window_key`.
    """
    newest = _newest_rows(rows, window_key)
    return newest.filter(_stands(newest)) if may_grow and newest.num_rows else newest


def _newest_rows(rows: pa.Table, window_key: Sequence[str]) -> pa.Table:
    """The newest row of each window, in the order of the windows."""
    # Each window's newest row is its last.
    ordered = in_order(rows, (*window_key, *_VERSION))
    if ordered.num_rows < 2:
        return ordered
    is_last = pa.chunked_array([*_chunks(_changes(ordered, window_key)), booleans([True])])
    return ordered.filter(is_last)


def _changes(rows: pa.Table, names: Sequence[str]) -> Any:
    """The mask of the rows, but for the last, after which a column has another value."""
    changes: Any = None
    for values in flattened(rows, names).columns:
        plain = values.combine_chunks()
        changed = differ(plain.slice(0, len(plain) - 1), plain.slice(1))
        changes = changed if changes is None else pc.or_(changes, changed)
    return changes


def _stands(rows: pa.Table) -> pa.BooleanArray:
    """The mask of the sessions that stand: no newer session grew out of them.

    A closed session never changes (rule D2). An open one that lies within a newer session of its
    key is a part of that session.
    """
    stands = np.ones(rows.num_rows, dtype=bool)
    changes = _changes(rows, ["key"]).to_numpy(zero_copy_only=False)
    of_key = [0, *np.cumsum(changes).tolist()]
    for _, group in groupby(zip(of_key, _sessions(rows), strict=True), itemgetter(0)):
        for position in _outgrown(session for _, session in group):
            stands[position] = False
    return booleans(stands)


def _sessions(rows: pa.Table) -> Iterator[_Session]:
    days = rows["arrival_unit"].cast(pa.int32()).to_pylist()
    batches = pc.fill_null(rows["batch"], integer(-1)).to_pylist()
    starts, ends = (_microseconds(rows[name]) for name in ("window_start", "window_end"))
    for position, (day, batch, start_us, end_us, closed) in enumerate(
        zip(days, batches, starts, ends, rows["closed"].to_pylist(), strict=True)
    ):
        yield _Session(position, (day, batch), start_us, end_us, not closed)


def _outgrown(of_key: Iterable[_Session]) -> Iterator[int]:
    """The positions of a key's open sessions that lie within a newer session.

    Newest first; `starts` and `ends` are the newer sessions that no other newer one contains, in
    the order of both.
    """
    starts: list[int] = []
    ends: list[int] = []
    newest_first = sorted(of_key, key=lambda session: session.version, reverse=True)
    for _, group in groupby(newest_first, lambda session: session.version):
        of_version = list(group)
        for session in of_version:
            before = bisect_right(starts, session.start_us)
            if session.is_open and before and ends[before - 1] >= session.end_us:
                yield session.position
        for session in of_version:
            _add(starts, ends, session)


def _add(starts: list[int], ends: list[int], session: _Session) -> None:
    at = bisect_right(starts, session.start_us)
    if at and ends[at - 1] >= session.end_us:
        return
    # Sessions that the added one contains start at or after it and end no later.
    first, last = bisect_left(starts, session.start_us), bisect_right(ends, session.end_us)
    starts[first : max(first, last)] = [session.start_us]
    ends[first : max(first, last)] = [session.end_us]


def _microseconds(times: pa.ChunkedArray) -> list[int]:
    found: list[int] = times.cast(pa.timestamp("us", times.type.tz)).cast(pa.int64()).to_pylist()
    return found


def _chunks(values: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return values.chunks if isinstance(values, pa.ChunkedArray) else [values]
