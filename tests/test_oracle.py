"""The oracle against the contract's golden cases and against answers worked out by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from oracle import (
    LateRow,
    Number,
    Record,
    RecordId,
    SlidingDefinition,
    WindowRow,
    aggregate,
    alerts,
    close_time_after,
    close_times_met,
    episodes,
    final_windows,
    keyed_windows,
    late_records,
    left_start,
    reason_late,
    windows_after,
)
from strategies import Arrivals, arrivals

GOLDEN = Path(__file__).parent / "golden"
SLOW = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])

Case = dict[str, Any]
Bounds = tuple[str | None, int, int, tuple[int, ...]]
SUM = {"total": ("sum", "v")}


def read_cases(name: str) -> dict[str, Case]:
    lines = (GOLDEN / name).read_text(encoding="utf-8").splitlines()
    return {case["id"]: case for case in map(json.loads, lines)}


CONTRACT = read_cases("sliding_contract.jsonl")
KAFKA = read_cases("sliding_kafka.jsonl")
# A case without the clamp has its Kafka answer under the clamped case's name.
AGREEING = {
    name: KAFKA[name.removesuffix("-unclamped")]
    for name, case in CONTRACT.items()
    if case["agrees_with"] is not None
}


def definition_of(case: Case) -> SlidingDefinition:
    window = case["window"]
    return SlidingDefinition(
        window["time_difference_ms"], window["grace_ms"], window.get("first_window_start_ms")
    )


def records_of(case: Case) -> list[Record]:
    return [
        Record(0, r["partition"], r["offset"], r["key"], r["timestamp"], {"v": r["value"]})
        for r in case["input"]
    ]


def expected(windows: list[Case]) -> list[Bounds]:
    return sorted((w["key"], w["start"], w["end"], tuple(w["offsets"])) for w in windows)


def answered(case: Case, *closed: bool) -> list[Bounds]:
    """The oracle's windows that are closed or open, with offsets in offset order."""
    return sorted(
        (w.key, w.start, w.end, tuple(sorted(r.offset for r in w.records)))
        for w in windows_after(records_of(case), 0, definition_of(case))
        if w.closed in closed
    )


def arriving(*times: int, unit: int = 0, source_partition: int = 0, first: int = 0) -> list[Record]:
    """Records of key k in arrival order, each with its time as its value."""
    return [
        Record(unit, source_partition, first + i, "k", time, {"v": time})
        for i, time in enumerate(times)
    ]


def spans(rows: list[WindowRow]) -> list[tuple[int, int, int]]:
    return [(row.start, row.end, row.record_count) for row in rows]


def test_the_golden_cases_are_all_there() -> None:
    assert len(CONTRACT) == 120
    assert len(AGREEING) == 84


@pytest.mark.parametrize("case", CONTRACT.values(), ids=CONTRACT.keys())
def test_contract_case(case: Case) -> None:
    assert answered(case, True) == expected(case["final"])
    assert answered(case, False) == expected(case["open"])

    definition = definition_of(case)
    records = records_of(case)
    met = close_times_met(records, definition)
    late = [r.offset for r in records if reason_late(r, met[r.id], definition) == "late"]
    left_closed = [
        r.offset
        for r in records
        if left_start(r, definition) + definition.time_difference < met[r.id]
    ]
    assert late == case["dropped"]
    assert [offset for offset in left_closed if offset not in late] == case["partially_late"]


@pytest.mark.parametrize("name", AGREEING)
def test_kafka_gave_the_same_windows_where_the_contract_agrees(name: str) -> None:
    theirs = AGREEING[name]
    # At its default retention Kafka's store forgets a record of one case before its time.
    final = theirs.get("long_retention", {}).get("final", theirs["final"])
    assert answered(CONTRACT[name], True, False) == expected(final + theirs["open"])


def test_worked_example_of_kip_450() -> None:
    """Rule B4: a@3 b@7 c@12 d@19 with a difference of 10."""
    windows = windows_after(arriving(3, 7, 12, 19), 0, SlidingDefinition(10, 50))
    found = [(w.start, w.end, [r.event_time for r in w.records]) for w in windows]
    assert found[:4] == [(-7, 3, [3]), (-3, 7, [3, 7]), (2, 12, [3, 7, 12]), (4, 14, [7, 12])]
    assert found[4:] == [(8, 18, [12]), (9, 19, [12, 19]), (13, 23, [19])]


def test_a_window_closes_when_its_end_is_below_the_close_time() -> None:
    """Rule A4: stream time 30 less grace 5 is 25; the window that ends at 25 is open."""
    rows = keyed_windows(arriving(15, 14, 30), 1, SlidingDefinition(10, 5), SUM)
    closed = {row.end: row.closed for row in rows}
    assert closed == {14: True, 15: True, 25: False, 30: False}


def test_each_unit_lists_what_it_changed_or_closed() -> None:
    """Rule E4: unit 1 adds to [10, 20] and makes others; unit 2 is empty; unit 3 closes."""
    records = arriving(20) + arriving(15, unit=1, first=1) + arriving(100, unit=3, first=2)
    rows = keyed_windows(records, 4, SlidingDefinition(10, 5), SUM)
    found = [(row.unit, row.start, row.values["total"]) for row in rows]
    assert found[:4] == [(0, 10, 20), (1, 5, 15), (1, 10, 35), (1, 16, 20)]
    assert found[4:] == [(3, 5, 15), (3, 10, 35), (3, 16, 20), (3, 90, 100)]
    assert [row.start for row in rows if row.closed] == [5, 10, 16]


def test_each_silence_gives_one_empty_window_once_it_is_closed() -> None:
    """Rule B8: silences after 0 and after 45; that after 90 is still open."""
    records = arriving(0, 40, 45, 90)
    definition = SlidingDefinition(10, 0, emit_empty=True)
    rows = final_windows(records, 1, definition, {"n": ("count", "v"), **SUM})
    assert spans(rows[:3]) == [(-10, 0, 1), (1, 11, 0), (30, 40, 1)]
    assert spans(rows[3:]) == [(35, 45, 2), (41, 51, 1), (46, 56, 0)]
    empty = rows[1]
    assert (empty.first_event_time, empty.last_event_time) == (None, None)
    assert empty.values == {"n": 0, "total": None}


def test_an_empty_window_is_a_row_of_the_unit_that_closes_it() -> None:
    """Rules B8 and E4: while [1, 11] is open it is no row, for it may still be filled."""
    definition = SlidingDefinition(10, 5, emit_empty=True)
    silent = arriving(0) + arriving(16, unit=1, first=1) + arriving(17, unit=2, first=2)
    rows = keyed_windows(silent, 3, definition, SUM)
    assert [(r.unit, r.start, r.closed) for r in rows if r.record_count == 0] == [(2, 1, True)]

    filled = [*silent[:2], *arriving(11, unit=2, first=2), *arriving(99, unit=3, first=3)]
    rows = keyed_windows(filled, 4, definition, SUM)
    assert [(r.unit, r.start) for r in rows if r.record_count == 0] == [(3, 17)]


def test_partly_late_record_counts_where_others_make_the_window() -> None:
    """Rule B5: 95 meets C = 100, so only windows that end at 100 or later take it."""
    rows = keyed_windows(arriving(90, 100, 95), 1, SlidingDefinition(10, 0), SUM)
    assert spans(rows) == [(80, 90, 1), (90, 100, 3), (91, 101, 2), (96, 106, 1)]


def test_partly_late_record_that_no_window_counts_is_listed_when_its_last_window_closes() -> None:
    """Rules A5 and B5: b's 95 is alone in its key and its left window was closed."""
    lone = Record(1, 0, 1, "b", 95, {"v": 1})
    records = [*arriving(100), lone, *arriving(105, unit=2, first=2)]
    records += arriving(106, unit=3, first=3)
    definition = SlidingDefinition(10, 0)
    # Its last window would end at 105, which is closed only after 106.
    assert late_records(records, 4, definition) == [LateRow(3, lone.id, "uncounted")]
    assert late_records(records[:3], 3, definition) == []

    rescued = [*records[:2], Record(2, 0, 2, "b", 105, {"v": 1}), *records[3:]]
    assert late_records(rescued, 4, definition) == []
    finals = final_windows(rescued, 4, definition, SUM)
    assert [(r.key, r.start, r.record_count) for r in finals if r.key == "b"] == [("b", 95, 2)]


def test_silence_after_a_partly_late_record_that_no_window_counts() -> None:
    """Rules B5 and B8: it makes its right window, which stays empty and is given when asked."""
    lone = Record(0, 0, 1, "b", 95, {"v": 1})
    records = [*arriving(100), lone, *arriving(200, first=2)]
    rows = final_windows(records, 1, SlidingDefinition(10, 0, emit_empty=True), SUM)
    assert spans([row for row in rows if row.key == "b"]) == [(96, 106, 0)]


def test_wholly_late_and_uncovered_records_are_listed_where_they_arrive() -> None:
    """Rules A5 and B6; 89 + 10 is below C = 100, 90 + 10 is not, and 4 is below the clamp."""
    records = arriving(4, 100) + arriving(89, 90, 3, unit=1, first=2)
    assert late_records(records, 2, SlidingDefinition(10, 0, first_window_start=5)) == [
        LateRow(0, RecordId(0, 0, 0), "uncovered"),
        LateRow(1, RecordId(1, 0, 2), "late"),
        LateRow(1, RecordId(1, 0, 4), "uncovered"),
    ]


def test_no_window_starts_below_the_clamp() -> None:
    """Rule B6: records before 100 + 10 share [100, 110] as their left window."""
    records = arriving(99, 100, 104, 110, 111)
    windows = windows_after(records, 0, SlidingDefinition(10, 50, first_window_start=100))
    found = [(w.start, [r.event_time for r in w.records]) for w in windows]
    assert found[:2] == [(100, [100, 104, 110]), (101, [104, 110, 111])]
    assert found[2:] == [(105, [110, 111]), (111, [111])]


def test_the_slowest_partition_holds_the_close_time_back_unless_idle() -> None:
    """Rule A4: partition 1 stands at 10 while partition 0 goes on to 100."""
    records = arriving(0) + arriving(10, source_partition=1) + arriving(100, unit=1, first=1)
    assert close_time_after(records, 0, SlidingDefinition(10, 5)) == -5
    assert close_time_after(records, 1, SlidingDefinition(10, 5)) == 5
    assert close_time_after(records, 1, SlidingDefinition(10, 5, idle_after=90)) == 5
    assert close_time_after(records, 1, SlidingDefinition(10, 5, idle_after=89)) == 95


def test_a_partition_that_wakes_finds_closed_windows_closed() -> None:
    """Rule A4: its C is what was in force at its unit's start, and closing is monotone."""
    records = arriving(0) + arriving(0, source_partition=1)
    records += arriving(100, unit=1, first=1)
    woken = arriving(50, 96, unit=2, source_partition=1, first=1)
    definition = SlidingDefinition(10, 0, idle_after=20)
    met = close_times_met(records + woken, definition)
    assert [met[record.id] for record in woken] == [100, 100]
    assert late_records(records + woken, 3, definition) == [LateRow(2, woken[0].id, "late")]
    assert close_time_after(records + woken, 2, definition) == 100


def test_stream_time_is_of_the_partition_not_of_the_key() -> None:
    """Rule A2: key b's 100 closes key k's windows, another partition's 100 does not."""
    ahead = Record(0, 0, 0, "b", 100, {"v": 1})
    late = arriving(50, first=1)
    elsewhere = arriving(50, source_partition=1)
    definition = SlidingDefinition(10, 0)
    assert late_records([ahead, *late], 1, definition) == [LateRow(0, late[0].id, "late")]
    assert late_records([ahead, *elsewhere], 1, definition) == []


@pytest.mark.parametrize(
    ("function", "values", "result"),
    [
        ("count", [1, None, 2], 2),
        ("count", [None], 0),
        ("sum", [None], None),
        ("avg", [], None),
        ("min", [None, None], None),
        ("sum", [2**53, 1], 2**53 + 1),
        ("sum", [1e16, 1.0, 1.0, 1.0, -1e16], 3.0),
        ("sum", [0.1] * 10, 1.0),
        ("sum", [1e308, 1e308, -1e308], 1e308),
        ("sum", [1e308, 1e308], math.inf),
        ("sum", [math.inf, -1e308], math.inf),
        ("sum", [math.inf, -math.inf], math.nan),
        ("sum", [math.nan, 1.0], math.nan),
        ("avg", [1, 2], 1.5),
        ("avg", [1.0, None, 2.0], 1.5),
        ("sum", [-0.0], 0.0),
        ("max", [-0.0], 0.0),
        ("min", [math.nan, math.inf], math.inf),
        ("max", [math.nan, math.inf], math.nan),
        ("max", [-1.0, None], -1.0),
    ],
)
def test_aggregate(function: str, values: list[Number | None], result: Number | None) -> None:
    """Rules A6, G1 and G2; what has one right answer, whatever the order."""
    for ordered in (values, values[::-1]):
        assert repr(aggregate(function, ordered)) == repr(
            result
        )  # tells NaN, 1 from 1.0, 0.0 from -0.0


def final_row(key: str, end: int, severity: float | None) -> WindowRow:
    return WindowRow(0, key, end - 10, end, end, end, 1, {"worst": severity}, True)


def test_overlapping_breaking_windows_are_one_episode() -> None:
    """Rule E5, inclusive bounds: a window that starts on the last end still overlaps."""
    rows = [
        final_row("a", 10, 1.0),
        final_row("a", 20, 5.0),  # starts on 10
        final_row("a", 25, -1.0),  # does not break
        final_row("a", 30, 5.0),  # starts on 20
        final_row("a", 41, None),  # starts on 31
        final_row("b", 42, 2.0),
    ]
    found = alerts(
        rows[::-1], lambda row: row.values["worst"] != -1.0, lambda row: row.values["worst"]
    )
    of_a = [(a.end, a.episode) for a in found if a.key == "a"]
    assert of_a == [(10, 0), (20, 0), (30, 0), (41, 31)]
    storms = episodes(found)
    assert {e.episode: e.alerts for e in storms} == {0: 3, 31: 1, 32: 1}
    first = storms[0]
    assert (first.first.end, first.last.end, first.worst.end) == (10, 30, 20)


def test_worst_window_takes_null_as_least_and_nan_as_most() -> None:
    """Rules E5 and G1: Spark's order."""
    rows = [final_row("a", end, s) for end, s in enumerate([None, math.inf, math.nan, 1.0])]
    (storm,) = episodes(alerts(rows, lambda _: True, lambda row: row.values["worst"]))
    assert storm.worst.end == 2


@SLOW
@given(arrivals())
def test_every_record_is_counted_or_listed_once_all_is_closed(case: Arrivals) -> None:
    """Rule A5: ingested = counted + late + uncovered + uncounted, each record in one of them."""
    records, units, definition = case
    assume(records)
    times = [record.event_time for record in records]
    end = max(times) + definition.grace + definition.time_difference + 1
    partitions = {record.source_partition for record in records}
    closers = [Record(units, p, 10**6, "closer", end, {}) for p in sorted(partitions)]
    everything = [*records, *closers]
    late = late_records(everything, units + 1, definition)
    listed = [row.record for row in late if row.record.unit < units]
    windows = windows_after(everything, units, definition)
    counted = {record.id for window in windows if window.closed for record in window.records}
    assert len(listed) == len(set(listed))
    assert sorted([*counted, *listed]) == sorted(record.id for record in records)


@SLOW
@given(arrivals())
def test_a_final_window_never_changes(case: Arrivals) -> None:
    """Rules A4, E1 and E4: final in exactly one unit, and the same ever after."""
    records, units, definition = case
    finals = final_windows(records, units, definition, {})
    assert len({(row.key, row.start) for row in finals}) == len(finals)
    at_the_end = windows_after(records, units - 1, definition)
    assert sorted((row.end, row.start, row.record_count) for row in finals) == sorted(
        (w.end, w.start, len(w.records)) for w in at_the_end if w.closed
    )


@SLOW
@given(arrivals())
def test_each_distinct_record_set_has_one_window_while_nothing_is_late(case: Arrivals) -> None:
    """Rule B4, against every start that can hold a record; only with times close together."""
    records, units, definition = case
    times = [record.event_time for record in records]
    assume(records and max(times) - min(times) < 100)  # each millisecond is tried
    calm = SlidingDefinition(definition.time_difference, 10**12)
    width = calm.time_difference
    sets = {
        (
            key,
            tuple(r.id for r in records if r.key == key and start <= r.event_time <= start + width),
        )
        for key in {record.key for record in records}
        for start in range(min(times) - width, max(times) + 1)
    }
    windows = windows_after(records, units - 1, calm)
    found = [(window.key, tuple(record.id for record in window.records)) for window in windows]
    assert len(found) == len(set(found))
    assert set(found) == {each for each in sets if each[1]}


@SLOW
@given(arrivals(source_partitions=1), st.data())
def test_cutting_the_arrivals_otherwise_changes_nothing(
    case: Arrivals, data: st.DataObject
) -> None:
    """Rules A1 and H1: of one source partition, the units are only the moment of listing."""
    records, _, definition = case
    steps = data.draw(
        st.lists(st.integers(0, 2), min_size=len(records), max_size=len(records)), label="cuts"
    )
    recut = [
        Record(sum(steps[: i + 1]), r.source_partition, r.offset, r.key, r.event_time, r.values)
        for i, r in enumerate(records)
    ]
    aggregates = {"n": ("count", "real"), "total": ("sum", "whole")}

    def outcome(cut: list[Record]) -> tuple[set[object], set[object]]:
        units = max((record.unit for record in cut), default=0) + 1
        finals = final_windows(cut, units, definition, aggregates)
        return (
            {(*row[1:7], *row.values.values()) for row in finals},
            {(row.record.offset, row.reason) for row in late_records(cut, units, definition)},
        )

    assert outcome(recut) == outcome(records)
