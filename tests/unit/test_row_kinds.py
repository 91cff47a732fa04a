"""Row windows and count windows in a pipeline's file: their specifications and their errors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.pipeline_texts import FLIGHTS, load_text, problems_of, table_definition
from windows_pipeline.windows import (
    CountWindows,
    GracedRows,
    RowWindow,
    SessionRows,
    SlideRows,
    TumbleRows,
)
from windows_pipeline.windows.frames.bounds import FrameUnit

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
    "kind: slide_rows\n    following: 10 minutes": SlideRows(unit=RANGE, back=0, ahead=10 * MINUTE),
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
    "kind: slide_rows\n    preceding: Unbounded  Rows": SlideRows(unit=ROWS, back=None),
    "kind: tumble_rows\n    size: 3 Rows": TumbleRows(unit=ROWS, size=3),
    "kind: count\n    size: 4\n    advance: 2\n    short_first: true": CountWindows(4, 2, True),
}
BROKEN = [
    (
        "kind: slide_rows",
        "preceding",
        (
            "is missing, and so is following; write 'preceding: ...', how far before the row the "
            "frame starts, or 'following: ...', how far after it the frame ends, or both"
        ),
    ),
    (
        "kind: slide_rows\n    following: -2 rows",
        "following",
        "'-2 rows' leaves the frame empty: it ends before it starts, and a bound that is left out",
    ),
    ("kind: slide_rows\n    preceding: 5 cows", "preceding", "'5 cows' has an unknown unit 'cows'"),
    (
        "kind: slide_rows\n    preceding: 5 ms\n    following: unbounded",
        "following",
        (
            "'unbounded' must be bounded in a pipeline: with later records to come, no row would "
            "ever be final; write a duration or a number of rows"
        ),
    ),
    (
        "kind: slide_rows\n    preceding: 5 rows\n    following: 1 minute",
        "following",
        "'1 minute' must have the unit of preceding: '5 rows'; write both as durations or both",
    ),
    (
        "kind: slide_rows\n    preceding: 1 row\n    following: -2 rows",
        "following",
        "'-2 rows' leaves the frame empty: it ends before it starts",
    ),
    (
        "kind: slide_rows\n    preceding: -1 row",
        "preceding",
        "'-1 row' leaves the frame empty",
    ),
    (
        "kind: slide_rows\n    preceding: 99999999999 rows",
        "preceding",
        "'99999999999 rows' is too many rows; write at most 1000000000 rows",
    ),
    ("kind: tumble_rows\n    size: 0 rows", "size", "'0 rows' must be above zero; write at least"),
    ("kind: session_rows\n    gap: 5 rows", "gap", "'5 rows' counts rows, but a session ends"),
    ("kind: session_rows\n    gap: 0 ms", "gap", "'0 ms' must be above zero"),
    ("kind: count", "size", "is missing; write 'size: 5 rows' in windows.hourly"),
    ("kind: count\n    size: 0", "size", "'0' is not a number of records; write a whole number"),
    ("kind: count\n    size: 1.5", "size", "'1.5' is not a number of records; write a whole num"),
    ("kind: count\n    size: 5\n    advance: 0 rows", "advance", "'0 rows' is not a number of"),
    ("kind: tumble_rows\n    size: 1.5", "size", "'1.5' has no unit; write a duration such as"),
    (
        f"kind: slide_rows\n    preceding: {'9' * 1_900} rows",
        "preceding",
        "is too many rows; write at most 1000000000 rows",
    ),
    (
        "kind: count\n    size: 2\n    advance: 3",
        "advance",
        "'3' must be at most the size, 2: records between two windows would be in no window and",
    ),
    ("kind: rows", "kind", "'rows' is not a known kind of window"),
    (
        "kind: tumble_rows\n    size: 5 ms\n    partial_results: true",
        "partial_results",
        "'true' must be false or left out for windows of rows: every record would add a version",
    ),
    (
        "kind: count\n    size: 5\n    trigger: {early_every: 5 ms}",
        "trigger",
        (
            "'count' windows have one result for each row, the final one, and cannot fire earlier; "
            "write 'trigger: {final: true}', or use kind: hopping or tumbling"
        ),
    ),
]
BY_ARRIVAL = [kind for kind in WRITTEN if re.search("size: (5 rows|7|3 Rows)|: count", kind)]


def of_kind(fields: str) -> str:
    """Returns the flights pipeline with windows of another kind."""
    text = re.sub(r"    emit_empty: true.*\n", "", FLIGHTS)
    return re.sub(r"kind: sliding *(#.*)?\n    time_difference: 60 minutes", fields, text)


@pytest.mark.parametrize("fields", WRITTEN)
def test_windows_of_rows_have_their_specification_and_key(tmp_path: Path, fields: str) -> None:
    """Rules F1, F2, F5: tables hold final rows only, each with the columns that identify it."""
    hourly = load_text(tmp_path, of_kind(fields)).windows["hourly"]
    assert hourly.spec == GracedRows(WRITTEN[fields], 360 * MINUTE)
    assert set(hourly.alerts) == {"disruption", "quiet"}
    assert hourly.partial_results is False
    assert hourly.window_key[-4:] == (
        "event_time",
        "record_arrival_unit",
        "source_partition",
        "offset",
    )


@pytest.mark.parametrize(("fields", "field", "words"), BROKEN)
def test_an_error_has_the_field_the_value_and_the_fix(
    tmp_path: Path, fields: str, field: str, words: str
) -> None:
    """Rule F3."""
    (problem,) = problems_of(tmp_path, of_kind(fields))
    assert f": windows.hourly.{field}: " in problem
    assert words in problem


@pytest.mark.parametrize("fields", WRITTEN)
def test_windows_by_arrival_need_one_order_of_arrival(tmp_path: Path, fields: str) -> None:
    """Rules A1, F5: several source partitions have no such order."""
    text = of_kind(fields)
    text = text.replace("  arrival: landed_at", "  source_partition: carrier\n  arrival: landed_at")
    if fields not in BY_ARRIVAL:
        assert load_text(tmp_path, text).source.has_several_partitions
        return
    (problem,) = problems_of(tmp_path, text)
    assert ": windows.hourly.kind: " in problem
    assert "needs one order of arrival, which several source partitions do not have" in problem


@pytest.mark.parametrize("fields", ["kind: count\n    size: 5", "kind: session\n    gap: 1 hour"])
def test_windows_by_arrival_need_a_topic_of_one_partition(tmp_path: Path, fields: str) -> None:
    """Rules A1, D2, F5: several partitions have no order of arrival in common."""
    topic = "format: kafka\n  kafka: {servers: 'a:9', topic: flights}"
    text = of_kind(fields).replace("format: jsonl", topic).replace("  arrival: landed_at\n", "")
    text = re.sub(r"  path: data/flights.*\n", "", text)
    (problem,) = problems_of(tmp_path, text)
    assert ": windows.hourly.kind: " in problem
    assert "write 'partitions: one' under kafka if the topic has one partition, or use" in problem
    one = text.replace("topic: flights}", "topic: flights, partitions: one}")
    assert not load_text(tmp_path, one).source.has_several_partitions


def test_a_result_cannot_have_the_name_of_a_column_of_the_row_key(tmp_path: Path) -> None:
    text = of_kind("kind: count\n    size: 5").replace("avg_dep_delay:", "offset:")
    text = text.replace("avg_dep_delay", "offset")
    (problem,) = problems_of(tmp_path, text)
    words = "'offset' is the name of a column that identifies a row"
    assert f"windows.hourly.aggregates.offset: {words}" in problem


EQUAL = [
    (
        "kind: slide_rows\n    preceding: 60 minutes",
        "kind: slide_rows\n    preceding: 1 hour\n    following: 0 ms",
    ),
    (
        "kind: slide_rows\n    following: 60 minutes",
        "kind: slide_rows\n    preceding: 0 ms\n    following: 1 hour",
    ),
    ("kind: count\n    size: 5", "kind: count\n    size: 5\n    advance: 5"),
    ("kind: count\n    size: 5", "kind: count\n    size: '5 rows'\n    advance: 5 rows"),
    ("kind: tumble_rows\n    size: 5 rows", "kind: tumble_rows\n    size: 5"),
]


@pytest.mark.parametrize(("first", "second"), EQUAL)
def test_equal_windows_have_equal_definitions(tmp_path: Path, first: str, second: str) -> None:
    different = first.replace("5", "6").replace("1", "2").replace("60", "61")
    definitions = [
        table_definition(load_text(tmp_path, of_kind(fields)), "hourly", "final_windows")
        for fields in (first, second, different)
    ]
    assert definitions[0] == definitions[1] != definitions[2]
