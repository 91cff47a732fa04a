"""Cuts a query into portions that are read one after the other, so that none has too many rows.

The portions of a query are in its order: those of one key by time, those of several keys by key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import isnan
from typing import Any

import pyarrow as pa

from windows_pipeline.query.tables.keys import KEY, KeyColumn, KeyRange, flattened
from windows_pipeline.query.tables.local import LocalTable
from windows_pipeline.query.tables.wanted import Part, Span, Wanted

_END = "window_end"
_Parts = tuple[Any, ...]


def portions_of(
    table: LocalTable,
    wanted: Wanted,
    most_rows: int,
    *,
    by_end: bool,
) -> Iterator[Wanted]:
    """Yields the portions of a query, in order; one may have no rows.

    Args:
        table: The table.
        wanted: The wanted rows.
        most_rows: How many rows a portion should have at most; a key, or an instant, with more rows
            is one portion.
        by_end: Whether the order of a key's windows is that of their ends, and all rows of a
            window have the same end.
    """
    parts = table.parts(wanted)
    if sum(_row_count(part, most_rows) for part in parts) <= most_rows:
        yield wanted
    elif not wanted.keys.is_one_key:
        counts = _rows_by_key(table, wanted)
        for keys in _key_portions(counts, table.key, most_rows):
            yield Wanted(keys, wanted.times, wanted.days)
    elif by_end:
        asked = wanted.times.get(_END, Span())
        for span in _time_portions(parts, most_rows):
            yield Wanted(wanted.keys, {**wanted.times, _END: span.within(asked)}, wanted.days)
    else:
        yield wanted


def _row_count(part: Part, most_rows: int) -> int:
    return most_rows if part.row_count is None else part.row_count


def _time_portions(parts: Sequence[Part], most_rows: int) -> list[Span]:
    """Spans of window ends, one after the other; each cut is where a file begins."""
    known = [
        (part.first_end_us, _row_count(part, most_rows))
        for part in parts
        if part.first_end_us is not None
    ]
    spans, first, row_count, last_cut = [], None, 0, None
    for begins, count in sorted(known):
        if row_count and row_count + count > most_rows and begins != last_cut:
            spans.append(Span(first, begins - 1))
            first, row_count, last_cut = begins, 0, begins
        row_count += count
    return [*spans, Span(first, None)]


def _rows_by_key(table: LocalTable, wanted: Wanted) -> list[tuple[_Parts, int]]:
    """Each key with its number of wanted rows, in order."""
    counts: Counter[_Parts] = Counter()
    for batch in table.batches(wanted, [KEY]):
        parts = flattened(pa.Table.from_batches([batch]), [KEY])
        counts.update(zip(*(column.to_pylist() for column in parts.columns), strict=True))
    return sorted(counts.items(), key=lambda found: tuple(map(_order, found[0])))


def _order(value: Any) -> tuple[bool, bool, Any]:
    """What orders the values of a part: null first, NaN last."""
    if value is None:
        return (False, False, 0)
    is_nan = isinstance(value, float) and isnan(value)
    return (True, is_nan, 0 if is_nan else value)


def _key_portions(
    counts: Sequence[tuple[_Parts, int]], column: KeyColumn, most_rows: int
) -> Iterator[KeyRange]:
    """Ranges of keys, one after the other."""
    group: list[_Parts] = []
    row_count = 0
    for key, count in counts:
        if group and row_count + count > most_rows:
            yield _range(group, column)
            group, row_count = [], 0
        group.append(key)
        row_count += count
    if group:
        yield _range(group, column)


def _range(keys: Sequence[_Parts], column: KeyColumn) -> KeyRange:
    first, last = (column.of_parts(key) for key in (keys[0], keys[-1]))
    return column.between(first, last)
