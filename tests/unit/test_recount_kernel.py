"""The recount of windows, without Spark, against plain Python that looks at each record."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.support.radix_batches import cut_up_by_group
from tests.support.spark_cases import PROPERTY, texts
from windows_pipeline.checks.recounts.kernel import window_recount
from windows_pipeline.checks.recounts.shards import IS_OWN, SHARD
from windows_pipeline.kernels.groups import CHUNK_ROWS
from windows_pipeline.windows import ForwardSlidingWindows, SlidingWindows

SCHEMA = pa.schema(
    [
        ("_computed_day", pa.int32()),
        ("key", pa.string()),
        ("_event_time_ms", pa.int64()),
        ("_close_time_ms", pa.int64()),
        ("_is_new", pa.bool_()),
        ("is_window", pa.bool_()),
        ("_window_start_ms", pa.int64()),
        ("_window_end_ms", pa.int64()),
        ("_first_event_time_ms", pa.int64()),
        ("_last_event_time_ms", pa.int64()),
        ("record_count", pa.int64()),
        ("closed", pa.bool_()),
        (SHARD, pa.int64()),
        (IS_OWN, pa.bool_()),
    ]
)
GROUP = ["_computed_day", "key", SHARD]
WINDOW_COLUMNS = [
    "_computed_day",
    "key",
    *SCHEMA.names[SCHEMA.names.index("_window_start_ms") : -2],
]
RECORD_COLUMNS = ["_computed_day", "key", "_event_time_ms", "_close_time_ms"]

# A group's number and milliseconds this far apart do not fit 64 bits together.
BASES_MS = (0, -1000, 2**61)
POSITIONS = st.integers(0, 12)

Row = dict[str, Any]
Group = tuple[int, str | None]


class RecountCase(NamedTuple):
    """Right and wrong windows, and records that are not late."""

    spec: SlidingWindows
    records: list[Row]
    windows: list[Row]


def in_time(row: Row, spec: SlidingWindows) -> bool:
    """Whether a record is neither late nor outside every window (rule A5)."""
    last_end = row["_event_time_ms"] + spec.time_difference_ms
    first = spec.first_window_start_ms
    return (row["_close_time_ms"] is None or last_end >= row["_close_time_ms"]) and (
        first is None or row["_event_time_ms"] >= first
    )


@st.composite
def cases(draw: st.DrawFn) -> RecountCase:
    """Cases with few instants, so that bounds coincide, and with repeated and missing windows."""
    difference = draw(st.integers(1, 6))
    base = st.sampled_from(draw(st.sampled_from((BASES_MS, BASES_MS[:1]))))
    instants = st.builds(int.__add__, base, POSITIONS)
    spec = SlidingWindows(difference, 0, draw(st.none() | POSITIONS))
    keys = st.sampled_from(draw(st.sampled_from((("a",), ("a", "b", None)))))
    group = {"_computed_day": st.integers(0, draw(st.integers(0, 1))), "key": keys}
    record = st.builds(
        lambda behind, **row: {
            **row,
            "_close_time_ms": None if behind is None else row["_event_time_ms"] + behind,
            "is_window": False,
        },
        behind=st.none() | st.integers(-3, difference),
        _event_time_ms=instants,
        _is_new=st.booleans(),
        **group,
    )
    window = st.builds(
        lambda **row: {**row, "is_window": True},
        _window_start_ms=instants,
        _window_end_ms=st.builds(int.__add__, instants, st.sampled_from((0, difference + 1))),
        _first_event_time_ms=st.none() | instants,
        _last_event_time_ms=st.none() | instants,
        record_count=st.integers(0, 9),
        closed=st.booleans(),
        **group,
    )
    least = draw(st.integers(0, 15))
    records = draw(st.lists(record, min_size=least, max_size=25))
    windows = draw(st.lists(window, min_size=least, max_size=25))
    return RecountCase(spec, [row for row in records if in_time(row, spec)], windows)


def group_of(row: Row) -> Group:
    return row["_computed_day"], row["key"]


def left_end(record: Row, spec: SlidingWindows) -> int:
    """The end of a record's left window (rules B3, B6)."""
    time_ms: int = record["_event_time_ms"]
    first = spec.first_window_start_ms
    return time_ms if first is None else max(time_ms, first + spec.time_difference_ms)


def is_partly_late(record: Row, spec: SlidingWindows) -> bool:
    """Whether a record's left window was closed when it arrived (rule B5)."""
    close_ms = record["_close_time_ms"]
    return close_ms is not None and left_end(record, spec) < close_ms


def counts_in(record: Row, end_ms: int, spec: SlidingWindows) -> bool:
    """Whether a record counts in the window with an end (rules A5, B2, B5, B6)."""
    close_ms = record["_close_time_ms"]
    first = spec.first_window_start_ms
    start_ms = end_ms - spec.time_difference_ms
    return (
        start_ms <= record["_event_time_ms"] <= end_ms
        and (close_ms is None or end_ms >= close_ms)
        and (first is None or start_ms >= first)
    )


def expected_recount(window: Row, case: RecountCase) -> Row:
    """The recount of a window, with the exact first event time."""
    spec, end_ms = case.spec, window["_window_end_ms"]
    records = [record for record in case.records if group_of(record) == group_of(window)]
    times = [record["_event_time_ms"] for record in records if counts_in(record, end_ms, spec)]
    # Near: it may be in a window with this end, or in one that ended just before.
    near = [
        record
        for record in records
        if is_partly_late(record, spec)
        and left_end(record, spec) <= end_ms
        and record["_event_time_ms"] + spec.time_difference_ms + 1 >= end_ms
    ]
    start_ms = end_ms - spec.time_difference_ms
    return {
        "recount": len(times),
        "recount_first_ms": min(times, default=None),
        "recount_last_ms": max(times, default=None),
        "departed_on_bound": any(record["_event_time_ms"] == start_ms - 1 for record in records),
        "near_partly_late": len(near),
        "same_end": sum(
            other["_window_end_ms"] == end_ms and group_of(other) == group_of(window)
            for other in case.windows
        ),
    }


def stored_records(window: Row) -> tuple[Any, ...]:
    names = ("_first_event_time_ms", "_last_event_time_ms", "record_count")
    return (*group_of(window), *[window[name] for name in names])


def overlap(one: Row, other: Row, spec: SlidingWindows) -> bool:
    """Whether two windows have an instant in common."""
    between_ms: int = one["_window_end_ms"] - other["_window_end_ms"]
    return abs(between_ms) <= spec.time_difference_ms


def is_held(record: Row, case: RecountCase) -> bool:
    return any(
        counts_in(record, window["_window_end_ms"], case.spec)
        for window in case.windows
        if group_of(window) == group_of(record)
    )


def recount_of(
    case: RecountCase,
    cuts: Sequence[int] = (),
    chunk_rows: int = CHUNK_ROWS,
    shard_ms: int | None = None,
) -> list[Row]:
    """The kernel's rows for a case that is cut into time shards and batches."""
    rows = [part for row in [*case.records, *case.windows] for part in parts(row, case, shard_ms)]
    batches = cut_up_by_group(pa.RecordBatch.from_pylist(rows, SCHEMA), GROUP, cuts)
    return [
        row for batch in window_recount(case.spec, chunk_rows)(batches) for row in batch.to_pylist()
    ]


def parts(row: Row, case: RecountCase, shard_ms: int | None) -> list[Row]:
    """Copies of a row for the time shards that need it; its own shard is the one it ends in."""
    difference = case.spec.time_difference_ms
    own = row["_window_end_ms"] if row["is_window"] else row["_event_time_ms"] + difference
    if shard_ms is None or own is None:
        return [{**row, SHARD: 0, IS_OWN: True}]
    if row["is_window"]:
        others = [own - difference - 1, own + difference + 1]
    else:
        further = difference + 1 if is_partly_late(row, case.spec) else 0
        others = [row["_event_time_ms"] - further, own + 1 + further]
    numbers = {instant // shard_ms for instant in [own, *others]}
    return [{**row, SHARD: number, IS_OWN: number == own // shard_ms} for number in numbers]


def only(row: Row, names: Iterable[str]) -> Row:
    return {name: row[name] for name in names}


@PROPERTY
@given(
    cases(),
    st.lists(st.integers(0, 50), max_size=6),
    st.integers(1, 60),
    st.none() | st.integers(1, 9),
    st.randoms(use_true_random=False),
)
def test_windows_and_new_records_are_recounted_within_their_key(
    case: RecountCase, cuts: list[int], chunk_rows: int, longer_ms: int | None, random: Random
) -> None:
    """Rules A5, B2, B4 to B6: in any order of rows, with any batches and time shards."""
    reach_ms = case.spec.time_difference_ms + 1
    shard_ms = None if longer_ms is None else 3 * reach_ms + longer_ms
    shuffled = RecountCase(
        case.spec,
        random.sample(case.records, len(case.records)),
        random.sample(case.windows, len(case.windows)),
    )
    rows = recount_of(shuffled, cuts, chunk_rows, shard_ms)

    recounted = []
    by_records: defaultdict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if not row["is_window"]:
            continue
        expected = expected_recount(row, case)
        if row["near_partly_late"] and row["recount"]:
            # Near a partly late record, recount_first_ms is only a lower bound.
            assert row["recount_first_ms"] <= expected["recount_first_ms"]
            expected["recount_first_ms"] = row["recount_first_ms"]
        assert only(row, expected) == expected
        recounted.append(only(row, WINDOW_COLUMNS))
        by_records[stored_records(row)].append(row)
    wanted = [only(window, WINDOW_COLUMNS) for window in case.windows]
    assert texts(recounted) == texts(wanted)

    # Rule B4: windows of the same records are counted unless a partly late record is near.
    for alike in by_records.values():
        clear = [row for row in alike if row["near_partly_late"] == 0 and row["record_count"] > 0]
        for row in alike:
            if row not in clear:
                assert row["same_records"] is None
                continue
            # Windows further apart than their length cannot hold the same records.
            seen = [other for other in clear if shard_ms is None or overlap(row, other, case.spec)]
            assert len(seen) <= row["same_records"] <= len(clear)

    new = [record for record in case.records if record["_is_new"]]
    held = [record for record in new if is_held(record, case)]
    of_records = [row for row in rows if not row["is_window"]]
    unheld = [only(row, RECORD_COLUMNS) for row in of_records if row["counted"] is None]
    wanted = [only(record, RECORD_COLUMNS) for record in new if record not in held]
    assert texts(unheld) == texts(wanted)
    counted: Counter[Group] = Counter()
    for row in of_records:
        counted[group_of(row)] += row["counted"] or 0
    assert counted == {
        group_of(record): sum(group_of(other) == group_of(record) for other in held)
        for record in new
    }


@PROPERTY
@given(cases().filter(lambda case: case.spec.first_window_start_ms is None))
def test_forward_windows_hold_what_sliding_windows_of_their_bounds_hold(case: RecountCase) -> None:
    """Rules B2, B7: both count a record from its own time, or its close time, to a length later."""
    rows = [part for row in [*case.records, *case.windows] for part in parts(row, case, None)]
    found = []
    for spec in (case.spec, ForwardSlidingWindows(case.spec.time_difference_ms)):
        batches = cut_up_by_group(pa.RecordBatch.from_pylist(rows, SCHEMA), GROUP, ())
        kernel = window_recount(spec)
        found.append(texts(row for batch in kernel(batches) for row in batch.to_pylist()))
    assert found[0] == found[1]


def test_a_window_without_an_end_holds_no_record() -> None:
    """A broken row raises no error, and does not change the recount of the others."""
    record = {
        "_computed_day": 0, "key": "a", "_event_time_ms": 5, "_close_time_ms": 1,
        "_is_new": True, "is_window": False,
    }  # fmt: skip
    whole = {"_computed_day": 0, "key": "a", "is_window": True, "_window_end_ms": 5}
    rows = recount_of(
        RecountCase(SlidingWindows(3, 0), [record], [{**whole, "_window_end_ms": None}])
    )
    assert [(row["is_window"], row["recount"], row["counted"]) for row in rows] == [
        (True, 0, None),
        (False, None, None),
        (False, None, 0),
    ]
    rows = recount_of(
        RecountCase(SlidingWindows(3, 0), [record], [{**whole, "_window_end_ms": None}, whole])
    )
    assert [(row["_window_end_ms"], row["recount"], row["counted"]) for row in rows] == [
        (None, 0, None),
        (5, 1, None),
        (None, None, 1),
    ]


def test_an_empty_partition_gives_no_rows() -> None:
    """Spark passes no batches for an empty partition."""
    assert list(window_recount(SlidingWindows(10, 0))(iter([]))) == []
    assert recount_of(RecountCase(SlidingWindows(10, 0), [], [])) == []
