"""Specifications of row windows, and the checks of their arguments (rule F3), without Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError

import pytest

from windows_pipeline.windows import (
    CURRENT_RANGE,
    CURRENT_ROW,
    UNBOUNDED_RANGE,
    UNBOUNDED_ROW,
    GracedRows,
    RowWindow,
    SessionRows,
    SlideRows,
    TumbleRows,
    rows,
)
from windows_pipeline.windows.frames.bounds import FrameUnit
from windows_pipeline.windows.frames.validator import require_distinct_aliases, require_fitting

RANGE = SlideRows.preceding("10 ms").on("ts")
ROWS = SlideRows.preceding(rows(2))
TUMBLE = TumbleRows.over("10 ms").on("ts").alias("w")
COLUMNS = ["user", "ts", "at", "amount"]


def test_equal_frames_are_equal_however_they_are_written() -> None:
    assert SlideRows.preceding(rows(0)) == SlideRows.preceding(CURRENT_ROW)
    assert SlideRows.preceding("0 ms").following(CURRENT_RANGE) == SlideRows.preceding("0 ms")
    assert SlideRows.preceding("1 hour") == SlideRows.preceding("60 minutes")
    assert SlideRows.preceding(rows(1)) != SlideRows.preceding("1 ms")
    assert len({RANGE, SlideRows.preceding("10 ms").on("ts"), TUMBLE}) == 2


def test_a_bound_may_be_unbounded_or_on_the_other_side_of_the_row() -> None:
    """Rule F2."""
    assert SlideRows.preceding(UNBOUNDED_ROW).following(rows(2)).back is None
    assert SlideRows.preceding("5 ms").following(UNBOUNDED_RANGE).ahead is None
    assert (RANGE.following("-2 ms").back, RANGE.following("-2 ms").ahead) == (10, -2)
    assert SlideRows.following("10 ms") == SlideRows.preceding(CURRENT_RANGE).following("10 ms")
    assert SlideRows.following(rows(3)) == SlideRows.preceding(CURRENT_ROW).following(rows(3))
    later = SlideRows.preceding(rows(-1)).following(rows(3))
    assert (later.back, later.ahead) == (-1, 3)


def test_is_frozen_and_its_text_has_the_values() -> None:
    with pytest.raises(FrozenInstanceError):
        RANGE.back = 3  # type: ignore[misc]
    assert repr(SessionRows.with_gap("1 second").on("ts").alias("w")) == (
        "SessionRows(time_column='ts', name='w', gap_ms=1000)"
    )


MADE: dict[str, tuple[Callable[[], object], str]] = {
    "mixed": (
        lambda: SlideRows.preceding("10 minutes").following(rows(5)),
        r"following: rows\(5\) must have the unit of preceding: '10 minutes'; pass both as",
    ),
    "ends before it starts": (
        lambda: SlideRows.preceding("5 ms").following("-6 ms"),
        "following: the frame starts '-5 milliseconds' after the row and ends '-6 milli",
    ),
    "starts after the row, no end, graced": (
        lambda: GracedRows(SlideRows.preceding(rows(-3)), 0),
        r"preceding: rows\(-3\) starts the frame after the row.*\.following\(rows\(3\)\)",
    ),
    "no bound": (lambda: SlideRows.preceding("soon"), "preceding: 'soon' is not a duration"),
    "part of a row": (lambda: rows(1.5), "rows: 1.5 is not a whole"),  # type: ignore[arg-type]
    "a size of zero": (lambda: TumbleRows.over("0 ms"), "size: '0 seconds' must be above zero"),
    "no rows": (lambda: TumbleRows.over(rows(0)), r"size: rows\(0\) must be above zero"),
    "a session by rows": (
        lambda: SessionRows.with_gap(rows(5)),  # type: ignore[arg-type]
        r"gap: rows\(5\) counts rows",
    ),
    "half a millisecond": (
        lambda: SlideRows(unit=FrameUnit.RANGE, back=1.5),  # type: ignore[arg-type]
        "bound: 1.5 is not a whole number",
    ),
    "a bound too far": (
        lambda: SlideRows(unit=FrameUnit.ROWS, back=None, ahead=2**53 + 1),
        f"bound: {2**53 + 1} is too far",
    ),
    "no name": (lambda: RANGE.alias(""), "alias: '' is not a name"),
    "no column": (lambda: RANGE.on(3), "on: 3 is not a name"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("make", "message"), MADE.values(), ids=MADE)
def test_a_wrong_argument_is_refused_by_the_constructor(
    make: Callable[[], object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def fit(
    window: RowWindow,
    *results: str,
    columns: list[str] = COLUMNS,
    by: tuple[str, ...] = ("user",),
    arrival: tuple[str, ...] = ("at",),
) -> None:
    require_fitting(window, columns, by, arrival, results)


REFUSED: dict[str, tuple[Callable[[], None], str]] = {
    "a range without a time": (
        lambda: fit(SlideRows.preceding("5 ms").alias("w")),
        r"SlideRows 'w': a window by time needs a time column; name it with .on\('ts'\)",
    ),
    "a start after the row without an end": (
        lambda: fit(SlideRows.preceding(rows(-1)).alias("w")),
        r"SlideRows 'w': preceding: rows\(-1\) starts the frame after the row",
    ),
    "an unknown time": (
        lambda: fit(RANGE.on("rowtime")),
        "SlideRows: the time column 'rowtime' is not a column; use one of user, ts, at, amount",
    ),
    "an unknown key": (
        lambda: fit(RANGE, by=("id",)),
        "by: 'id' is not a column; use one of user, ts, at, amount",
    ),
    "an unknown arrival": (
        lambda: fit(ROWS, arrival=("offset",)),
        "arrival: 'offset' is not a column; use one of user",
    ),
    "rows without arrival": (
        lambda: fit(ROWS.on("ts"), arrival=()),
        "SlideRows: this window orders rows of one time by arrival; name the arrival column with",
    ),
    "blocks without arrival": (
        lambda: fit(TumbleRows.over(rows(5)), arrival=()),
        "TumbleRows: this window counts rows in the order of arrival; name the arrival column",
    ),
    "an alias that hides a column": (
        lambda: fit(TUMBLE.alias("Amount")),
        "TumbleRows 'Amount': the alias hides the column of that name; use another alias",
    ),
    "a result that hides a column": (
        lambda: fit(TUMBLE, "amount"),
        "TumbleRows 'w': the result 'amount' hides a column or another result; rename it",
    ),
    "a result that hides the alias": (lambda: fit(TUMBLE, "W"), "the result 'W' hides"),
    "a column twice": (
        lambda: fit(TUMBLE, columns=[*COLUMNS, "TS"]),
        "column 'ts' occurs twice; rename one of them",
    ),
    "a duplicate alias": (
        lambda: require_distinct_aliases([TUMBLE, ROWS.alias("W")]),
        "SlideRows 'W': another window has the same alias; use different aliases",
    ),
    "one of several without alias": (
        lambda: require_distinct_aliases([TUMBLE, ROWS]),
        r"SlideRows: each of several windows needs a name; add .alias\('w'\)",
    ),
    "no window": (
        lambda: require_distinct_aliases([]),
        "windows: must hold at least one window, not none",
    ),
}


@pytest.mark.parametrize(("check", "message"), REFUSED.values(), ids=REFUSED)
def test_a_window_must_fit_the_columns(check: Callable[[], None], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check()


def test_frames_by_time_need_no_arrival() -> None:
    """Rule F2: rows of one time are peers, whatever the order of their arrival."""
    fit(RANGE, "n", arrival=())
