"""The windows as they stand now follow from all rows of keyed_windows (rules D2, E4)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest

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
    found = current_windows(pa.Table.from_pylist(listed, SCHEMA), WINDOW_KEY, may_grow=True)
    return [
        ((row["window_start"] - EPOCH) // timedelta(milliseconds=1),
         (row["window_end"] - EPOCH) // timedelta(milliseconds=1))
        for row in found.to_pylist()
    ]  # fmt: skip


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
    for may_grow in (True, False):
        found = current_windows(SCHEMA.empty_table(), WINDOW_KEY, may_grow=may_grow)
        assert found.num_rows == 0
