"""`WindowStore` and `fetch` on tables of real runs: streams, corrections and maintenance."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.oracle.windows import (
    Definition,
    Record,
    SessionDefinition,
    SlidingDefinition,
    TimeDefinition,
    windows_after,
)
from tests.support.small_project import HEADER, SmallProject
from windows_pipeline.query import WindowStore
from windows_pipeline.query.registration import register_tables
from windows_pipeline.query.stored_window import FoundWindows
from windows_pipeline.streaming import run_stream

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MS = timedelta(milliseconds=1)
GRACE = 20
COMMON = {"grace": f"{GRACE} ms", "aggregates": {"total": "sum(v)"}}
KINDS: Mapping[str, Mapping[str, object]] = {
    "w": {"kind": "tumbling", "size": "10 ms", **COMMON},
    "slides": {"kind": "sliding", "time_difference": "10 ms", **COMMON},
    "sessions": {"kind": "session", "gap": "10 ms", **COMMON},
}
DEFINITIONS: Mapping[str, Definition] = {
    "w": TimeDefinition(10, 10, GRACE),
    "slides": SlidingDefinition(10, GRACE),
    "sessions": SessionDefinition(10, GRACE),
}
FEW = ("w", "sessions")
"""One that fetch asks for, and one that sessions does."""
# Sessions of `a` that grow, join and close; a late record; and one of the time before 1970.
ARRIVAL_UNITS = (
    (("a", 5), ("b", -40), ("a", 30), ("a", 12)),
    (("a", 22), ("b", 60), ("a", 55)),
    (("a", 1), ("b", 75), ("a", 80), ("a", 64)),
)
Bounds = list[tuple[int, int, int, bool]]


def records(arrival_units: Sequence[Sequence[tuple[str, int]]]) -> list[Record]:
    listed = [
        (arrival_unit, each)
        for arrival_unit, of_arrival_unit in enumerate(arrival_units)
        for each in of_arrival_unit
    ]
    return [
        Record(arrival_unit, 0, offset, key, time, {})
        for offset, (arrival_unit, (key, time)) in enumerate(listed)
    ]


def lines(arrival_unit: Sequence[tuple[str, int]]) -> str:
    return HEADER + "".join(f"{key},{time},1\n" for key, time in arrival_unit)


def store(project: SmallProject, name: str, table: str = "current") -> WindowStore:
    return WindowStore(project.pipeline, name, project.settings.warehouse, table)  # type: ignore[arg-type]


def bounds(found: FoundWindows) -> Bounds:
    assert all(window.watermark is not None for window in found)
    return [
        ((each.start - EPOCH) // MS, (each.end - EPOCH) // MS, each.record_count, each.closed)
        for each in found
    ]


def of_key(project: SmallProject, name: str, key: str, table: str = "current") -> Bounds:
    opened = store(project, name, table)
    return bounds(opened.sessions(key) if name == "sessions" else opened.fetch(key))


def standing(arrival_units: Sequence[Sequence[tuple[str, int]]], name: str, key: str) -> Bounds:
    found = windows_after(records(arrival_units), len(arrival_units) - 1, DEFINITIONS[name])
    return sorted(
        (each.start, each.end, len(each.records), each.closed) for each in found if each.key == key
    )


def declared(project: SmallProject, others: Sequence[str], **source: Any) -> None:
    project.declare(KINDS["w"], others={name: KINDS[name] for name in others}, **source)


def named_in_sql(
    project: SmallProject, spark: SparkSession, names: Sequence[str]
) -> dict[str, list[tuple[str, int, int, int, bool]]]:
    """The current windows of each definition, by the views that `register` makes."""
    register_tables(spark, project.pipeline, project.settings.warehouse)
    columns = "key, unix_millis(window_start), unix_millis(window_end), record_count, closed"
    found = {
        name: spark.table(f"p.{name}_current_windows").selectExpr(*columns.split(", ")).collect()
        for name in names
    }
    spark.sql("DROP SCHEMA p CASCADE")
    return {name: sorted(map(tuple, rows)) for name, rows in found.items()}


@pytest.mark.parametrize(
    "names", [FEW, pytest.param(tuple(KINDS), marks=pytest.mark.long)], ids=["few", "all"]
)
def test_the_windows_of_a_stream_are_found_as_they_stand(
    project: SmallProject, spark: SparkSession, names: Sequence[str]
) -> None:
    """Rule E4, after each micro-batch; `maintain` changes no answer."""
    declared(project, names[1:], max_per_batch=1)
    for turn, arrival_unit in enumerate(ARRIVAL_UNITS):
        # Two micro-batches are of one day.
        project.land((1, 1, 2)[turn], lines(arrival_unit), f"{turn}.csv", turn)
    found: list[dict[tuple[str, str], Bounds]] = []
    asked = [(name, key) for name in names for key in ("a", "b")]
    run_stream(
        spark,
        project.source,
        project.settings,
        on_batch=lambda _: found.append({one: of_key(project, *one) for one in asked}),
    )
    assert found == [
        {one: standing(ARRIVAL_UNITS[: number + 1], *one) for one in asked}
        for number in range(len(ARRIVAL_UNITS))
    ]
    assert named_in_sql(project, spark, names) == {
        name: sorted(
            (key, *window) for key in ("a", "b") for window in standing(ARRIVAL_UNITS, name, key)
        )
        for name in names
    }
    before = store(project, "sessions")
    status, said = project.call("maintain", "p")
    assert status == 0, said
    after = store(project, "sessions")
    assert after.version > before.version
    assert bounds(after.sessions("a")) == standing(ARRIVAL_UNITS, "sessions", "a")
    assert bounds(before.sessions("a")) == standing(ARRIVAL_UNITS, "sessions", "a")
    status, said = project.call("fetch", "p", "a", "--windows", "sessions", "--open", "--json")
    starts = [each["window_start"] for each in json.loads(said)]
    assert (status, len(starts)) == (0, len(standing(ARRIVAL_UNITS, "sessions", "a")))
    assert starts == sorted(starts)


def test_corrected_windows_are_found_with_their_correction(project: SmallProject) -> None:
    """Rule E1: the final result is the corrected one; an older version answers as before."""
    declared(project, FEW[1:])
    for number, arrival_unit in enumerate(ARRIVAL_UNITS):
        project.land(1 + number, lines(arrival_unit))
    status, said = project.ingest("run")
    assert status in (0, 1), said
    for name in FEW:
        for key in ("a", "b"):
            assert of_key(project, name, key) == standing(ARRIVAL_UNITS, name, key)
            closed = [window for window in standing(ARRIVAL_UNITS, name, key) if window[3]]
            assert of_key(project, name, key, "final") == closed
    before = store(project, "w", "final")
    mended = (ARRIVAL_UNITS[0][1:], *ARRIVAL_UNITS[1:])  # a@5 is gone
    project.land(1, lines(mended[0]))
    project.call("run", "p", "--from", "2026-11-01", "--to", "2026-11-01")
    asked = ("correct", "p", "--from", "2026-11-01", "--cause", "a record was wrong")
    status, said = project.call(*asked)
    assert status == 0, said
    for name in FEW:
        assert of_key(project, name, "a") == standing(mended, name, "a")
        closed = [window for window in standing(mended, name, "a") if window[3]]
        assert of_key(project, name, "a", "final") == closed
    assert (0, 10, 1, True) in bounds(before.fetch("a"))
    (correction,) = store(project, "w", "final").history("a", EPOCH).corrections
    assert (correction.number, correction.change, correction.cause) == (
        1, "retracted", "a record was wrong"
    )  # fmt: skip
    assert correction.arrival_unit == date(2026, 11, 1)
