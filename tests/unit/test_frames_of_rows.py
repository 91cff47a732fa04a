"""Several frames around each row in one definition: the file, the kernel, the mistakes (F2, F5)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.oracle.rows import Row, RowsAround, window_of
from tests.support.pipeline_texts import FLIGHTS, line_of, load_text, problems_of, table_definition
from tests.support.radix_batches import with_sort_key
from tests.support.row_cases import SCHEMA
from windows_pipeline.aggregates import FUNCTIONS, Aggregate, parse_aggregate
from windows_pipeline.config import definition_changes
from windows_pipeline.engine.row_kernel import RowKernel
from windows_pipeline.windows import GracedRows, SeveralRows, SlideRows
from windows_pipeline.windows.frames.bounds import FrameUnit

HOUR = 3_600_000
RANGE, ROWS = FrameUnit.RANGE, FrameUnit.ROWS
PLAIN = re.sub(r"    (emit_empty|alerts|  disruption|      when|      severity).*\n", "", FLIGHTS)
HEAD, TAIL = PLAIN.split("    aggregates:\n")
FRAMES = "{last_3: {preceding: 3 rows}, hour: {preceding: 1 hour, following: 5 minutes}}"
AGGREGATES = {"mean": "avg(dep_delay) over hour", "flights": "count() over last_3"}


def text_of(frames: str, aggregates: dict[str, str], kind: str = "slide_rows") -> str:
    head = re.sub(r"kind: sliding *(#.*)?\n    time_difference: 60 minutes", f"kind: {kind}", HEAD)
    fields = f"    frames: {frames}\n" if frames else ""
    lines = "".join(f"      {name}: {text}\n" for name, text in aggregates.items())
    return f"{head}{fields}    aggregates:\n{lines}"


def test_frames_have_names_that_aggregates_choose(tmp_path: Path) -> None:
    """Rule F5: as SQL's OVER with named windows."""
    pipeline = load_text(tmp_path, text_of(FRAMES, AGGREGATES))
    windows = pipeline.windows["hourly"]
    last_3, hour = (
        SlideRows(unit=ROWS, back=3),
        SlideRows(unit=RANGE, back=HOUR, ahead=HOUR // 12),
    )
    spec = GracedRows(SeveralRows((("last_3", last_3), ("hour", hour))), 6 * HOUR)
    assert windows.spec == spec
    assert hash(windows.spec) == hash(spec)
    assert [(each.name, each.over, str(each)) for each in windows.aggregate_list] == [
        ("mean", "hour", "avg(dep_delay) over hour"),
        ("flights", "last_3", "count(*) over last_3"),
    ]
    assert windows.result_columns(pipeline.source)["flights"] == "bigint"


def test_a_row_is_in_its_window() -> None:
    """Rule F5: the window is between the outermost bounds of each unit, and holds its row."""
    frames = (
        *(("a", SlideRows(unit=RANGE, back=-2, ahead=5)), ("b", SlideRows(unit=ROWS, back=4))),
        *(("c", SlideRows(unit=RANGE, back=7, ahead=-3)), ("d", SlideRows(unit=ROWS, back=None))),
    )
    last_4, near = SlideRows(unit=ROWS, back=4), SlideRows(unit=RANGE, back=7, ahead=5)
    assert SeveralRows(frames).outer_on("ts") == (
        near.on("ts"),
        SlideRows(unit=ROWS, back=None).on("ts"),
    )
    at_row = SlideRows(unit=RANGE, back=0, ahead=5)
    assert SeveralRows(frames[:1]).outer_on("ts") == (at_row.on("ts"),)
    assert SeveralRows(frames[1:2]).outer_on("ts") == (last_4.on("ts"),)
    with pytest.raises(ValueError, match="frames: must name at least one frame"):
        SeveralRows(())
    with pytest.raises(ValueError, match="starts the frame after the row"):
        SeveralRows((("a", SlideRows(unit=ROWS, back=-1)),))


def test_an_aggregates_frame_is_part_of_the_definition(tmp_path: Path) -> None:
    """Rule H1: equal frames give equal texts, and files with one frame have the texts they had."""
    pipeline = load_text(tmp_path, text_of(FRAMES, AGGREGATES))
    before = table_definition(pipeline, "hourly", "final_windows")
    alike = FRAMES.replace("1 hour", "60 minutes").replace("3 rows", "3 ROWS, following: 0 rows")
    same = load_text(tmp_path, text_of(alike, AGGREGATES))
    assert table_definition(same, "hourly", "final_windows") == before
    other = {"mean": "avg(dep_delay) over last_3", "flights": "count() over hour"}
    changed = table_definition(
        load_text(tmp_path, text_of(FRAMES, other)), "hourly", "final_windows"
    )
    assert definition_changes(before, changed) == [
        "windows.hourly.aggregates.flights: was 'count(*) over last_3', is 'count(*) over hour'",
        (
            "windows.hourly.aggregates.mean: was 'avg(dep_delay) over hour', is "
            "'avg(dep_delay) over last_3'"
        ),
    ]
    single = text_of("", {"mean": "avg(dep_delay)"}, "slide_rows\n    preceding: 1 hour")
    fields = table_definition(load_text(tmp_path, single), "hourly", "final_windows")
    assert {
        name for name in fields if ".hourly.frames" in name or " over " in fields[name]
    } == set()
    assert fields["windows.hourly.following"] == "0 seconds"


@pytest.mark.parametrize(
    ("frames", "aggregates", "field", "words"),
    [
        (
            FRAMES,
            {**AGGREGATES, "more": "sum(dep_delay)"},
            "aggregates.more",
            (
                "'sum(dep_delay)' names no frame; write 'sum(dep_delay) over last_3', with one of "
                "last_3, hour"
            ),
        ),
        (
            FRAMES,
            {**AGGREGATES, "more": "sum(dep_delay) over houre"},
            "aggregates.more",
            (
                "'sum(dep_delay) over houre' is over 'houre', which is not a frame of these "
                "windows; did you mean 'hour'?"
            ),
        ),
        (
            "",
            {"more": "sum(dep_delay) over hour"},
            "aggregates.more",
            (
                "is over the frame 'hour', and these windows name no frames; leave 'over hour' "
                "out, or use kind: slide_rows with 'frames: {hour: {preceding: 1 hour}}'"
            ),
        ),
        (
            FRAMES,
            {**AGGREGATES, "more": "avg(dep_delay) over hour where dep_delay > 3"},
            "aggregates.more",
            (
                "has its condition after the frame; write 'avg(dep_delay) where dep_delay > 3 over "
                "hour'"
            ),
        ),
        (
            FRAMES,
            {"mean": AGGREGATES["mean"]},
            "frames.last_3",
            (
                "'last_3' has no aggregate; write one, as in 'count() over last_3', or remove the "
                "frame"
            ),
        ),
        (
            "{}",
            {"mean": "avg(dep_delay) over hour"},
            "frames",
            "names no frame; write one, as in 'frames: {hour: {preceding: 1 hou",
        ),
        (
            "[]",
            {"mean": "avg(dep_delay)"},
            "frames",
            "is a list; write 'frames:' with 'name: {preceding: 1 hour}' lines",
        ),
        (
            "{hour: 1}",
            {"n": "count() over hour"},
            "frames.hour",
            "write 'hour: {preceding: 1 hour}",
        ),
        (
            "{hour: {preceding: 1 hour, following: 5 rows}}",
            {"n": "count() over hour"},
            "frames.hour.following",
            "'5 rows' must have the unit of preceding: '1 hour'",
        ),
        (
            "{hour: {before: 1 hour}}",
            {"n": "count() over hour"},
            "frames.hour.before",
            "'before' is not a field here; remove it; the fields are preceding, following",
        ),
    ],
)
def test_a_mistake_has_file_line_value_and_fix(
    tmp_path: Path, frames: str, aggregates: dict[str, str], field: str, words: str
) -> None:
    kind = "slide_rows" if frames else "slide_rows\n    preceding: 1 hour"
    text = text_of(frames, aggregates, kind)
    (problem,) = problems_of(tmp_path, text)
    named = field.split(".")
    line = line_of(text, "frames: " if named[0] == "frames" else f"{named[1]}: ")
    assert problem.startswith(f"{tmp_path / 'flights.yaml'}:{line}: windows.hourly.{field}: ")
    assert words in problem


def test_a_single_frame_beside_several_is_refused(tmp_path: Path) -> None:
    text = text_of(FRAMES, AGGREGATES, "slide_rows\n    preceding: 9 hours")
    (problem,) = problems_of(tmp_path, text)
    assert problem == (
        f"{tmp_path / 'flights.yaml'}:{line_of(text, 'preceding: 9')}: windows.hourly.preceding: "
        "'9 hours' is of a single frame, and 'frames' names several; move it into one of them"
    )


@pytest.mark.parametrize("kind", ["tumbling\n    size: 1 hour", "session_rows\n    gap: 1 hour"])
def test_other_kinds_have_no_frames(tmp_path: Path, kind: str) -> None:
    problems = problems_of(tmp_path, text_of(FRAMES, AGGREGATES, kind))
    assert [
        problem.partition(": windows.hourly.")[2].partition(":")[0] for problem in problems
    ] == ["frames"]
    (problem,) = problems_of(tmp_path, text_of("", {"n": "count() over hour"}, kind))
    assert "windows.hourly.aggregates.n: 'count() over hour' is over the frame 'hour'" in problem


def test_over_is_read_where_frames_may_be() -> None:
    """Rule G1: after a condition, too; SQL's own texts have none."""
    condition = parse_aggregate("x", "count(*) where s = 'a over b' OVER hour", frames=True)
    assert (condition.over, condition.condition) == ("hour", "s = 'a over b'")
    quoted = parse_aggregate("x", "count(*) where s = 'a over b'", frames=True)
    assert (quoted.over, quoted.condition) == (None, "s = 'a over b'")
    assert parse_aggregate("x", "percentile(v, 0.5) over w", frames=True).percentage == 0.5
    for text in ("count()", "count(*)"):
        assert parse_aggregate("x", f"{text} over w", frames=True).function is FUNCTIONS["count"]
        with pytest.raises(ValueError, match="every result already has the number of records"):
            parse_aggregate("x", text, frames=True)
    with pytest.raises(ValueError, match="is not an aggregate"):
        parse_aggregate("x", "sum(v) over w")


def test_the_kernel_computes_each_aggregate_over_its_frames() -> None:
    """Rule F2: in one pass, as the oracle does each alone; failures in the aggregates' order."""
    rows = [
        Row(key, time, arrival, {"whole": value})
        for arrival, (key, time, value) in enumerate(
            [
                *(("a", 0, 1), ("a", 0, 2), ("a", 3, None), ("a", 4, 5), ("a", 11, 7)),
                *(("b", -3, 2**62), ("b", -3, 2**62), ("b", 1, 1), ("b", 9, 4)),
            ]
        )
    ]
    frames = {
        "near": RowsAround(is_range=True, back=3, ahead=1),
        "rows": RowsAround(is_range=False, back=1, ahead=1),
        "before": RowsAround(is_range=False, back=None, ahead=-1),
    }
    windows: dict[str, SlideRows] = {
        name: SlideRows(
            unit=RANGE if each.is_range else ROWS,
            back=each.back,
            ahead=each.ahead,
            time_column="_event_time_ms",
        )
        for name, each in frames.items()
    }
    aggregates = [Aggregate(name, FUNCTIONS["sum"], "whole", over=name) for name in frames]
    kernel = RowKernel(
        {0: windows["near"]},
        ["key"],
        aggregates,
        ["arrival"],
        ["arrival"],
        frames=[(windows[name],) for name in frames],
        with_failed=True,
    )
    columns: dict[str, list[Any]] = {"_computed_day": [0] * len(rows), "real": [0.0] * len(rows)}
    columns |= {"counted": [None] * len(rows)}
    columns |= {"key": [row.key for row in rows], "whole": [row.values["whole"] for row in rows]}
    columns |= {"_event_time_ms": [row.time for row in rows]}
    columns |= {"arrival": [row.arrival for row in rows]}
    batch = with_sort_key(pa.RecordBatch.from_pydict(columns, SCHEMA), ["_computed_day", "key"])
    found = [row for made in kernel(iter([batch])) for row in made.to_pylist()]
    for row, result in zip(rows, found, strict=True):
        wanted: list[Any] = []
        for frame in frames.values():
            values = [each.values["whole"] for each in window_of(row, rows, frame).rows]
            known = [value for value in values if value is not None]
            wanted.append(sum(known) if known else None)
        fails = [name for name, value in zip(frames, wanted, strict=True) if (value or 0) >= 2**63]
        shown = [None if (value or 0) >= 2**63 else value for value in wanted]
        assert [result[f"result_{number}"] for number in range(3)] == shown, row
        assert result["failed"] == fails, row
    assert any(result["failed"] == ["near", "rows"] for result in found)
