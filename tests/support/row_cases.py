"""Row windows of the engine for the oracle's rows: definitions, and its kernel without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tests.support.oracle.rows import (
    CountBlock,
    Row,
    RowDefinition,
    RowsAround,
    Session,
    TumblingBlock,
)
from tests.support.radix_batches import with_sort_key
from tests.support.spark_cases import PAIRS
from tests.support.strategies import pair
from windows_pipeline.aggregates.column_type import parse_type
from windows_pipeline.kernels.arrow_types import arrow_type
from windows_pipeline.windows.frames.bounds import FrameUnit
from windows_pipeline.windows.frames.row_windows import (
    RowWindow,
    SessionRows,
    SlideRows,
    TumbleRows,
)

SCHEMA = pa.schema(
    [
        ("_computed_day", pa.int32()),
        ("key", pa.string()),
        ("_event_time_ms", pa.int64()),
        ("arrival", pa.int64()),
        ("whole", pa.int64()),
        ("real", pa.float64()),
        ("counted", arrow_type(parse_type(PAIRS["counted"]))),
    ]
)

_BOUNDS = st.none() | st.integers(-4, 8)


def window_of_definition(definition: RowDefinition) -> RowWindow:
    """A definition as the engine's row window, over `_event_time_ms`."""
    match definition:
        case RowsAround(is_range, back, ahead, by_arrival):
            unit = FrameUnit.RANGE if is_range else FrameUnit.ROWS
            time = None if by_arrival else "_event_time_ms"
            return SlideRows(unit=unit, back=back, ahead=ahead, time_column=time)
        case TumblingBlock(size):
            return TumbleRows(unit=FrameUnit.RANGE, size=size, time_column="_event_time_ms")
        case CountBlock(size):
            return TumbleRows(unit=FrameUnit.ROWS, size=size, time_column="_event_time_ms")
        case Session(gap):
            return SessionRows(gap_ms=gap, time_column="_event_time_ms")


def _frames() -> st.SearchStrategy[RowsAround]:
    # All fields: builds would draw one that is left out, and ranges have no order by arrival.
    frames = st.builds(RowsAround, st.booleans(), _BOUNDS, _BOUNDS, st.just(False))
    by_arrival = st.builds(RowsAround, st.just(False), _BOUNDS, _BOUNDS, st.just(True))
    return (frames | by_arrival).filter(
        lambda frame: frame.back is None or frame.ahead is None or -frame.back <= frame.ahead
    )


DEFINITIONS: st.SearchStrategy[RowDefinition] = (
    _frames()
    | st.builds(TumblingBlock, st.integers(1, 12))
    | st.builds(CountBlock, st.integers(1, 4))
    | st.builds(Session, st.integers(1, 6))
)


@st.composite
def row_lists(draw: st.DrawFn) -> list[Row]:
    """Rows of up to three keys, one of them null, few times and some values null."""
    whole = st.none() | st.integers(-3, 3)
    real = st.none() | st.sampled_from((0.0, -0.0, 1e16, 1.0, -1.5, float("nan")))
    rows = draw(
        st.lists(
            st.tuples(st.sampled_from(("a", "b", None)), st.integers(-12, 25), whole, real),
            max_size=14,
        )
    )
    arrivals = draw(st.permutations(range(len(rows))))
    return [
        Row(key, time, arrival, {"whole": w, "real": r, "counted": pair(w, w and w % 2)})
        for (key, time, w, r), arrival in zip(rows, arrivals, strict=True)
    ]


def batches_of_rows(
    rows: Sequence[Row], window: RowWindow, cuts: Sequence[int] = ()
) -> Iterator[pa.RecordBatch]:
    """Rows sorted as Spark sorts them, in batches, some of them empty."""

    def order(row: Row) -> tuple[Any, ...]:
        time = 0 if window.by_arrival else row.time
        return (row.key is not None, row.key or "", time, row.arrival)

    listed = [
        {
            "_computed_day": 0,
            "key": row.key,
            "_event_time_ms": row.time,
            "arrival": row.arrival,
            **row.values,
        }
        for row in sorted(rows, key=order)
    ]
    whole = with_sort_key(pa.RecordBatch.from_pylist(listed, SCHEMA), ["_computed_day", "key"])
    positions = sorted(cut % (len(rows) + 1) for cut in cuts)
    for start, end in pairwise([0, *positions, len(rows)]):
        yield whole.slice(start, end - start)
