"""Several frames around each row in one definition: by days, as a stream, rebuilt (F5, H1)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

import pytest

from tests.support.oracle.arrival_unit_rows import FramesRow, final_rows_of_frames
from tests.support.oracle.rows import RowsAround
from tests.support.oracle.windows import Record
from tests.support.small_project import SmallProject
from tests.support.stored_rows import named_rows

COLUMNS = {"k": "string", "t": "bigint", "v": "double"}
HEADER = "k,t,v\n"
GRACE = 6
FRAMES: dict[str, dict[str, RowsAround]] = {
    "w": {
        "near": RowsAround(is_range=True, back=10, ahead=4),
        "last_3": RowsAround(is_range=False, back=3, ahead=0),
        "next": RowsAround(is_range=False, back=-1, ahead=2),
    },
    "times": {
        "before": RowsAround(is_range=True, back=12, ahead=-2),
        "around": RowsAround(is_range=True, back=3, ahead=3),
    },
    "counted": {
        "so_far": RowsAround(is_range=False, back=None, ahead=0),
        "ahead": RowsAround(is_range=False, back=0, ahead=1),
    },
}
FEW = ("w",)
ARRIVAL_UNITS = 2
A_DAY = 20


def bound(distance: int | None, *, is_range: bool) -> str:
    if distance is None:
        return "unbounded" if is_range else "unbounded rows"
    return f"{distance} ms" if is_range else f"{distance} rows"


def fields_of(name: str) -> dict[str, Any]:
    """A definition as the file has it: for each frame a sum, a count and a conditional count."""
    frames = {
        frame: {
            "preceding": bound(each.back, is_range=each.is_range),
            "following": bound(each.ahead, is_range=each.is_range),
        }
        for frame, each in FRAMES[name].items()
    }
    aggregates = {}
    for frame in frames:
        aggregates[f"sum_{frame}"] = f"sum(v) over {frame}"
        aggregates[f"rows_{frame}"] = f"count() over {frame}"
        aggregates[f"large_{frame}"] = f"count() where v * 2 > 6 over {frame}"
    first = next(iter(frames))
    return {
        "kind": "slide_rows",
        "grace": f"{GRACE} ms",
        "frames": frames,
        "aggregates": aggregates,
        "alerts": {"busy": {"when": f"rows_{first} > 2", "severity": f"sum_{first}"}},
    }


def declare(project: SmallProject, names: Sequence[str], **source: object) -> None:
    first, *others = names
    of_others = {name: fields_of(name) for name in others}
    project.declare(fields_of(first), COLUMNS, of_others, None, **source)


def arrived() -> list[Record]:
    """Records of two keys in three arrival units: late ones, and several of one time."""
    random = Random(11)
    records, time = [], 0
    for arrival_unit in range(ARRIVAL_UNITS):
        for offset in range(A_DAY):
            time += random.choice((0, 0, 1, 2, 4))
            of_key = time - random.choice((0, 0, 0, 1, 3, 9))
            value = float(random.randrange(9))
            records.append(
                Record(arrival_unit, 0, offset, random.choice("ab"), of_key, {"v": value})
            )
    return records


def text_of(records: Sequence[Record]) -> str:
    lines = (f"{each.key},{each.event_time},{each.values['v']}\n" for each in records)
    return HEADER + "".join(lines)


def ms(instant: Any) -> int | None:
    return None if instant is None else round(instant.timestamp() * 1000)


def wanted_row(found: FramesRow) -> tuple[Any, ...]:
    times = [each.event_time for each in found.held]
    of_frames = []
    for held in found.frames.values():
        values: list[Any] = [each.values["v"] for each in held]
        large = sum(value * 2 > 6 for value in values)
        of_frames += [sum(values) if values else None, len(values), large]
    row = found.row
    return (
        *(
            found.arrival_unit,
            row.key,
            row.event_time,
            row.arrival_unit,
            row.offset,
            found.start,
            found.end,
        ),
        *(len(times), min(times), max(times), *of_frames),
    )


def found_rows(project: SmallProject, name: str) -> list[tuple[Any, ...]]:
    project.name = name
    return sorted(
        (
            *(row["arrival_unit"].day - 1, row["key"], ms(row["event_time"])),
            *(row["record_arrival_unit"].day - 1, row["offset"]),
            *(ms(row["window_start"]), ms(row["window_end"]), row["record_count"]),
            *(ms(row["first_event_time"]), ms(row["last_event_time"])),
            *(row[aggregate] for aggregate in fields_of(name)["aggregates"]),
        )
        for row in named_rows(project.windows.final_windows)
    )


@pytest.mark.parametrize(
    "names", [FEW, pytest.param(tuple(FRAMES), marks=pytest.mark.long)], ids=["few", "all"]
)
def test_each_frame_is_the_oracles(
    project: SmallProject, tmp_path: Path, names: Sequence[str]
) -> None:
    """Rules F2, F5, H1: days one by one, a stream cut at random; all checks pass.

    The long case is rebuilt, too: tests/pipeline/test_pipeline_rows.py runs days of rows at once.
    """
    streamed = SmallProject(tmp_path / "q", project.base, project.capfd, project.monkeypatch)
    declare(project, names)
    declare(streamed, names, max_per_batch=1)
    records = arrived()
    cut = SystemRandom().randrange(1, A_DAY)
    for arrival_unit in range(ARRIVAL_UNITS):
        of_arrival_unit = [each for each in records if each.arrival_unit == arrival_unit]
        project.land(arrival_unit + 1, text_of(of_arrival_unit))
        status, said = project.ingest("run")
        assert status == 0, said
        pieces = (of_arrival_unit[:cut], of_arrival_unit[cut:])
        for number, piece in enumerate(pieces if arrival_unit == 0 else [of_arrival_unit]):
            turn = 2 * arrival_unit + number
            streamed.land(arrival_unit + 1, text_of(piece), f"{number}.csv", turn)
    status, said = streamed.ingest("stream")
    assert status == 0, said
    for name in names:
        wanted = final_rows_of_frames(records, ARRIVAL_UNITS, FRAMES[name], GRACE)
        assert {each.arrival_unit for each in wanted} == set(range(ARRIVAL_UNITS)), name
        assert found_rows(project, name) == sorted(map(wanted_row, wanted)), name
    by_days = project.results_of(names)
    assert streamed.results_of(names) == by_days, cut
    assert all(by_days[f"{name}/alerts"] for name in names)
    for each in () if names == FEW else (project, streamed):
        status, said = each.call("rebuild", "p", "--from", "keyed_windows")
        assert status == 0, said
        assert each.results_of(names) == by_days
    status, said = project.call("check", "p")
    assert status == 0, said
