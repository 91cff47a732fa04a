"""The windows as they stand now follow from all rows of keyed_windows (rules D2, E4)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.oracle.windows import (
    SessionDefinition,
    WindowRow,
    keyed_windows,
    windows_after,
)
from tests.support.strategies import ArrivalsOf, any_definitions, arrivals_of
from windows_pipeline.query.current import current_windows

WINDOW_KEY = ("key", "window_start", "window_end")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("arrival_unit", pa.date32()),
        ("key", pa.string()),
        ("window_start", pa.timestamp("us", "UTC")),
        ("window_end", pa.timestamp("us", "UTC")),
        ("record_count", pa.int64()),
        ("closed", pa.bool_()),
        ("batch", pa.int64()),
    ]
)


def instant(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)


def table_of(rows: list[WindowRow], arrival_units_a_day: int | None) -> pa.Table:
    """The rows as days write them, or as a stream with so many micro-batches a day."""
    listed = [
        {
            "arrival_unit": date(2026, 1, 1)
            + timedelta(days=row.arrival_unit // (arrival_units_a_day or 1)),
            "key": row.key,
            "window_start": instant(row.start),
            "window_end": instant(row.end),
            "record_count": row.record_count,
            "closed": row.closed,
            "batch": row.arrival_unit if arrival_units_a_day else None,
        }
        for row in rows
    ]
    return pa.Table.from_pylist(listed, SCHEMA)


def of_sessions(rows: list[tuple[int, int | None, int, int, bool]]) -> list[tuple[int, int]]:
    """The bounds of the current sessions of one key.

    Args:
        rows: Day, micro-batch, start, end and whether it is closed, of each row.
    """
    listed = [
        {
            "arrival_unit": date(2026, 1, day),
            "key": "k",
            "window_start": instant(start),
            "window_end": instant(end),
            "record_count": 1,
            "closed": closed,
            "batch": batch,
        }
        for day, batch, start, end, closed in rows
    ]
    found = current_windows(pa.Table.from_pylist(listed, SCHEMA), WINDOW_KEY, of_sessions=True)
    return [
        ((row["window_start"] - EPOCH) // timedelta(milliseconds=1),
         (row["window_end"] - EPOCH) // timedelta(milliseconds=1))
        for row in found.to_pylist()
    ]  # fmt: skip


@given(
    arrivals_of(any_definitions, source_partitions=1, max_arrival_units=6),
    st.sampled_from((None, 1, 2, 3)),
    st.randoms(use_true_random=False),
)
def test_current_windows_are_those_that_stand_after_the_last_arrival_unit(
    case: ArrivalsOf[Any], arrival_units_a_day: int | None, random: Random
) -> None:
    """Rule E4, of every kind, by days and as a stream, whatever the order of rows in files."""
    rows = keyed_windows(case.records, case.arrival_units, case.definition, {})
    random.shuffle(rows)
    found = current_windows(
        table_of(rows, arrival_units_a_day),
        WINDOW_KEY,
        of_sessions=isinstance(case.definition, SessionDefinition),
    )
    standing = windows_after(case.records, case.arrival_units - 1, case.definition)
    assert sorted(map(str, found.drop(["arrival_unit", "batch"]).to_pylist())) == sorted(
        str(
            {
                "key": window.key,
                "window_start": _utc(window.start),
                "window_end": _utc(window.end),
                "record_count": len(window.records),
                "closed": window.closed,
            }
        )
        for window in standing
    )


def _utc(ms: int) -> object:
    """An instant as Arrow returns it."""
    return pa.scalar(instant(ms), pa.timestamp("us", "UTC")).as_py()


@pytest.mark.parametrize(
    ("rows", "current"),
    [
        pytest.param(
            [(1, None, 0, 5, False), (2, None, 0, 9, False)], [(0, 9)], id="grew at its end"
        ),
        pytest.param(
            [(1, None, 4, 9, False), (2, None, 0, 9, True)], [(0, 9)], id="grew at its start"
        ),
        pytest.param(
            [(1, 0, 0, 3, False), (1, 0, 7, 9, False), (1, 1, 0, 9, False)],
            [(0, 9)],
            id="two became one",
        ),
        pytest.param(
            [(1, 0, 3, 5, True), (1, 1, 0, 9, False)],
            [(0, 9), (3, 5)],
            id="a closed session stays within a later one",
        ),
        pytest.param(
            [(1, 0, 3, 5, False), (2, 1, 3, 5, True), (2, 2, 0, 9, False)],
            [(0, 9), (3, 5)],
            id="a session that closed as it was stays",
        ),
        pytest.param(
            [(1, 5, 0, 3, False), (2, None, 0, 9, False), (2, 1, 0, 12, False)],
            [(0, 12)],
            id="without a micro-batch comes before one of the same day",
        ),
        pytest.param(
            [(1, None, 0, 3, False), (1, None, 2, 3, False)],
            [(0, 3), (2, 3)],
            id="rows of one version say nothing of each other",
        ),
    ],
)
def test_an_open_session_within_a_newer_one_is_part_of_it(
    rows: list[tuple[int, int | None, int, int, bool]], current: list[tuple[int, int]]
) -> None:
    """Rule D2: sessions join, closed ones never change."""
    assert of_sessions(rows) == current
    assert of_sessions(rows[::-1]) == current


def test_no_rows_are_no_windows() -> None:
    for is_session in (True, False):
        found = current_windows(SCHEMA.empty_table(), WINDOW_KEY, of_sessions=is_session)
        assert found.num_rows == 0
