"""Row windows and count windows in a pipeline's file: what they say, and what stops at load."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.pipeline_texts import FLIGHTS, load_text, problems_of
from windows_pipeline.config import table_definition
from windows_pipeline.windows import (
    CountWindows,
    GracedRows,
    RowWindow,
    SessionRows,
    SlideRows,
    TumbleRows,
)
from windows_pipeline.windows.row_bounds import FrameUnit

MINUTE = 60_000
RANGE, ROWS = FrameUnit.RANGE, FrameUnit.ROWS
WRITTEN: dict[str, RowWindow | CountWindows] = {
    "kind: slide_rows\n    preceding: 1 hour": SlideRows(unit=RANGE, back=60 * MINUTE),
    "kind: slide_rows\n    preceding: 5 rows\n    following: 1 row": SlideRows(
        unit=ROWS, back=5, ahead=1
    ),
    "kind: slide_rows\n    preceding: 10 minutes\n    following: -1 minute": SlideRows(
        unit=RANGE, back=10 * MINUTE, ahead=-MINUTE
    ),
    "kind: slide_rows\n    preceding: -2 rows\n    following: 2 rows": SlideRows(
        unit=ROWS, back=-2, ahead=2
    ),
    "kind: slide_rows\n    preceding: -0 rows": SlideRows(unit=ROWS, back=0),
    "kind: slide_rows\n    preceding: unbounded": SlideRows(unit=RANGE, back=None),
    "kind: slide_rows\n    preceding: unbounded rows\n    following: 0 rows": SlideRows(
        unit=ROWS, back=None
    ),
    "kind: tumble_rows\n    size: 1 hour": TumbleRows(unit=RANGE, size=60 * MINUTE),
    "kind: tumble_rows\n    size: 5 rows": TumbleRows(unit=ROWS, size=5),
    "kind: session_rows\n    gap: 30 minutes": SessionRows(gap_ms=30 * MINUTE),
    "kind: count\n    size: 100": CountWindows(100, 100),
    "kind: count\n    size: 7 rows\n    advance: 1 row": CountWindows(7, 1),
    "kind: tumble_rows\n    size: 7": TumbleRows(unit=ROWS, size=7),
    "kind: count\n    size: 4\n    advance: 2\n    short_first: true": CountWindows(4, 2, True),
}
BROKEN = [
    ("kind: slide_rows", "preceding", "write 'preceding: ...' in windows.hourly"),
    ("kind: slide_rows\n    preceding: 5", "preceding", "'5' has no unit; write a duration"),
    ("kind: slide_rows\n    preceding: 5 cows", "preceding", "'5 cows' has an unknown unit 'cows'"),
    (
        "kind: slide_rows\n    preceding: 5 ms\n    following: unbounded",
        "following",
        "'unbounded' has no place in a pipeline: records go on, so no row would ever be final",
    ),
    (
        "kind: slide_rows\n    preceding: 5 rows\n    following: 1 minute",
        "following",
        "'1 minute' does not go with preceding: '5 rows'; write both as durations or both",
    ),
    (
        "kind: slide_rows\n    preceding: 1 row\n    following: -2 rows",
        "following",
        "'-2 rows' ends the frame before it starts (preceding: '1 row'), so it holds nothing",
    ),
    (
        "kind: slide_rows\n    preceding: -1 row",
        "preceding",
        "without 'following', so it holds nothing; write 'following: 1 row' or more too",
    ),
    (
        "kind: slide_rows\n    preceding: -10 minutes",
        "preceding",
        "'-10 minutes' starts the frame after the row",
    ),
    (
        "kind: slide_rows\n    preceding: -1 row\n    following: 0 rows",
        "following",
        "'0 rows' ends the frame before it starts (preceding: '-1 row'), so it holds nothing",
    ),
    (
        "kind: slide_rows\n    preceding: 99999999999 rows",
        "preceding",
        "'99999999999 rows' is too many; take at most 1000000000 rows",
    ),
    ("kind: tumble_rows\n    size: 0 rows", "size", "'0 rows' must be above zero; write at least"),
    ("kind: tumble_rows\n    size: -1 minute", "size", "'-1 minute' must be above zero"),
    ("kind: tumble_rows\n    size: unbounded", "size", "'unbounded' is no duration"),
    ("kind: session_rows\n    gap: 5 rows", "gap", "'5 rows' counts rows, but a session ends"),
    ("kind: session_rows\n    gap: 0 ms", "gap", "'0 ms' must be above zero"),
    ("kind: count\n    size: 0", "size", "'0' is no number of records; write a whole one"),
    ("kind: count\n    size: 5 minutes", "size", "'5 minutes' is no number of records"),
    ("kind: count\n    size: 1.5", "size", "'1.5' is no number of records; write a whole one"),
    ("kind: count\n    size: true", "size", "'true' is no number of records"),
    ("kind: count\n    size: -5 rows", "size", "'-5 rows' is no number of records"),
    ("kind: count\n    size: 5\n    advance: 0 rows", "advance", "'0 rows' is no number of"),
    ("kind: count\n    size: 9223372036854775807 rows", "size", "is no number of records"),
    ("kind: tumble_rows\n    size: 0", "size", "'0' must be above zero; write at least"),
    ("kind: tumble_rows\n    size: 1.5", "size", "'1.5' has no unit; write a duration such as"),
    ("kind: tumble_rows\n    size: true", "size", "'true' has no unit; write a duration such as"),
    ("kind: tumble_rows\n    size: 9223372036854775807", "size", "is too many; take at most"),
    (
        "kind: slide_rows\n    preceding: 9223372036854775807 rows",
        "preceding",
        "'9223372036854775807 rows' is too many; take at most 1000000000 rows",
    ),
    (
        "kind: count\n    size: 2\n    advance: 3",
        "advance",
        "'3' is above the size, 2: the records between would be in no window and in no table",
    ),
    ("kind: rows", "kind", "'rows' is not known"),
    (
        "kind: tumble_rows\n    size: 5 ms\n    partial_results: true",
        "partial_results",
        "'true' would keep a version of each row for every record that comes near it",
    ),
    (
        "kind: count\n    size: 5\n    trigger: {early_every: 5 ms}",
        "trigger",
        "'count' windows are rows, each of which has one result, its final one; leave trigger out",
    ),
]
BY_ARRIVAL = [kind for kind in WRITTEN if re.search("size: (5 rows|7)|: count", kind)]


def of_kind(fields: str) -> str:
    """The flights with windows of another kind."""
    text = re.sub(r"    emit_empty: true.*\n", "", FLIGHTS)
    return re.sub(r"kind: sliding *(#.*)?\n    time_difference: 60 minutes", fields, text)


@pytest.mark.parametrize("fields", WRITTEN)
def test_rows_are_named(tmp_path: Path, fields: str) -> None:
    """Rules F1, F2, F5: only final rows are kept, by what names a row."""
    hourly = load_text(tmp_path, of_kind(fields)).windows["hourly"]
    assert hourly.spec == GracedRows(WRITTEN[fields], 360 * MINUTE)
    assert set(hourly.alerts) == {"disruption", "quiet"}
    assert hourly.partial_results is False
    assert hourly.named_by[-4:] == (
        "event_time",
        "record_arrival_unit",
        "source_partition",
        "offset",
    )


@pytest.mark.parametrize(("fields", "field", "words"), BROKEN)
def test_a_mistake_is_told(tmp_path: Path, fields: str, field: str, words: str) -> None:
    """Rule F3: with the field, the value and the cure."""
    (problem,) = problems_of(tmp_path, of_kind(fields))
    assert f": windows.hourly.{field}: " in problem
    assert words in problem


@pytest.mark.parametrize("fields", WRITTEN)
def test_what_goes_by_arrival_needs_one_order_of_it(tmp_path: Path, fields: str) -> None:
    """Rules A1, F5: of several source partitions one may bring what came before."""
    text = of_kind(fields)
    text = text.replace("  arrival: landed_at", "  source_partition: carrier\n  arrival: landed_at")
    if fields not in BY_ARRIVAL:
        assert load_text(tmp_path, text).source.has_several_partitions
        return
    (problem,) = problems_of(tmp_path, text)
    assert ": windows.hourly.kind: " in problem
    assert "goes by the order of arrival; several source partitions have no one order" in problem


def test_a_result_does_not_hide_what_names_a_row(tmp_path: Path) -> None:
    text = of_kind("kind: count\n    size: 5").replace("avg_dep_delay:", "offset:")
    text = text.replace("avg_dep_delay", "offset")
    (problem,) = problems_of(tmp_path, text)
    assert "windows.hourly.aggregates.offset: 'offset' is a column that names a row" in problem


ALIKE = [
    (
        "kind: slide_rows\n    preceding: 60 minutes",
        "kind: slide_rows\n    preceding: 1 hour\n    following: 0 ms",
    ),
    (
        "kind: slide_rows\n    preceding: -1 rows\n    following: 1 row",
        "kind: slide_rows\n    preceding: -1 row\n    following: +1 row",
    ),
    ("kind: count\n    size: 5", "kind: count\n    size: 5\n    advance: 5"),
    ("kind: count\n    size: 5", "kind: count\n    size: 5 rows\n    advance: '5'"),
    ("kind: count\n    size: 5", "kind: count\n    size: '5 rows'\n    advance: 5 rows"),
    ("kind: tumble_rows\n    size: 5 rows", "kind: tumble_rows\n    size: 5"),
    ("kind: tumble_rows\n    size: 5 rows", "kind: tumble_rows\n    size: '5'"),
]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_a_definition_is_one_however_it_is_written(tmp_path: Path, one: str, other: str) -> None:
    definitions = [
        table_definition(load_text(tmp_path, of_kind(fields)), "hourly", "final_windows")
        for fields in (one, other, one.replace("5", "6").replace("1", "2").replace("60", "61"))
    ]
    assert definitions[0] == definitions[1] != definitions[2]
