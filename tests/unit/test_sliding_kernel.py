"""The sliding kernel, without Spark, against the oracle and against itself."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.oracle.windows import Record, SlidingDefinition, keyed_windows, late_records
from tests.support.radix_batches import cut_up, sorted_as_by_spark
from tests.support.spark_cases import (
    EVERY_FUNCTION,
    PROPERTY,
    aggregates_of,
    batches_of,
    run_kernel,
    texts,
)
from tests.support.strategies import Arrivals, arrivals
from windows_pipeline.aggregates import Aggregate, Function
from windows_pipeline.engine.window_kernel import WindowKernel
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.kernels.windows.chunk import ComputedDay
from windows_pipeline.tuning import TUNING, Tuning
from windows_pipeline.windows import SlidingWindows


def sliding_kernel(
    spec: SlidingWindows,
    aggregates: list[Aggregate],
    close_after_ms: int,
    tuning: Tuning = TUNING,
) -> WindowKernel:
    day = ComputedDay(spec, NEVER_MS, close_after_ms)
    return WindowKernel({0: day}, ["key"], [], aggregates, tuning=tuning)


CHUNK_ROWS = 20_000
"""Fewer than the default, so that several chunks are soon computed."""
CUTS = st.lists(st.integers(0, 200), max_size=6)


def arriving(*times: int, arrival_unit: int = 0, first: int = 0) -> list[Record]:
    """Records of key k in arrival order, each with its time as its values."""
    return [
        Record(arrival_unit, 0, first + i, "k", time, {"whole": time, "real": float(time)})
        for i, time in enumerate(times)
    ]


def case_of(records: Sequence[Record], definition: SlidingDefinition) -> Arrivals:
    arrival_units = max((record.arrival_unit for record in records), default=0) + 1
    return Arrivals(list(records), arrival_units, definition)


def test_worked_example_of_kip_450() -> None:
    """Rule B4: a@3 b@7 c@12 d@19 with a difference of 10 make seven windows."""
    answer = run_kernel(
        case_of(arriving(3, 7, 12, 19), SlidingDefinition(10, 50)), {"times": ("sum", "whole")}
    )
    assert sorted((row.start, row.end, row.values["times"]) for row in answer.windows) == [
        (-7, 3, 3),  # a
        (-3, 7, 3 + 7),  # a b
        (2, 12, 3 + 7 + 12),  # a b c
        (4, 14, 7 + 12),  # b c
        (8, 18, 12),  # c
        (9, 19, 12 + 19),  # c d
        (13, 23, 19),  # d
    ]


@PROPERTY
@given(arrivals(), CUTS, st.randoms(use_true_random=False))
def test_windows_and_late_records_are_those_of_the_oracle(
    case: Arrivals, cuts: list[int], random: Random
) -> None:
    """Rules A2 to A6, B2 to B8, E1, E4, G1 and G2, all arrival units at once, to the bit."""
    shuffled = case._replace(records=random.sample(case.records, len(case.records)))
    answer = run_kernel(shuffled, EVERY_FUNCTION, cuts=cuts)
    assert texts(answer.windows) == texts(keyed_windows(*case, EVERY_FUNCTION))
    assert sorted(answer.late) == late_records(*case)


@PROPERTY
@given(arrivals(), st.data())
def test_any_arrival_units_alone_give_their_rows_of_the_whole_run(
    case: Arrivals, data: st.DataObject
) -> None:
    """Rule E4: an arrival unit's rows are a function of the arrival units up to it."""
    arrival_units = data.draw(
        st.sets(st.integers(0, case.arrival_units - 1), min_size=1), label="units"
    )
    whole = run_kernel(case, EVERY_FUNCTION)
    part = run_kernel(case, EVERY_FUNCTION, arrival_units)
    assert texts(part.windows) == texts(
        row for row in whole.windows if row.arrival_unit in arrival_units
    )
    assert sorted(part.late) == sorted(
        row for row in whole.late if row.arrival_unit in arrival_units
    )


@PROPERTY
@given(arrivals(source_partitions=1), st.data())
def test_cutting_the_arrivals_otherwise_gives_the_same_finals_and_late_records(
    case: Arrivals, data: st.DataObject
) -> None:
    """Rules A1 and H1: of one source partition, arrival units are only the moment of listing."""
    steps = data.draw(
        st.lists(st.integers(0, 2), min_size=len(case.records), max_size=len(case.records)),
        label="steps",
    )
    recut = [
        Record(sum(steps[: i + 1]), r.source_partition, r.offset, r.key, r.event_time, r.values)
        for i, r in enumerate(case.records)
    ]

    def outcome(cut: Arrivals) -> tuple[list[str], list[tuple[int, str]]]:
        answer = run_kernel(cut, EVERY_FUNCTION)
        late = sorted((row.record.offset, row.reason) for row in answer.late)
        return texts(row[1:] for row in answer.windows if row.closed), late

    assert outcome(case_of(recut, case.definition)) == outcome(case)


def read_table(times: np.ndarray, keys: np.ndarray, values: np.ndarray) -> pa.Table:
    return pa.table(
        {
            "_computed_day": pa.array(np.zeros(len(times), np.int32)),
            "key": pa.array(keys),
            "_event_time_ms": pa.array(times),
            "_close_time_ms": pa.array(times - 1000),
            "_is_new": pa.array(np.ones(len(times), np.bool_)),
            "real": pa.array(values),
        }
    )


def test_a_partition_larger_than_a_chunk_gives_what_its_keys_give_alone() -> None:
    """Rule G2: chunks, and batches that cut a key, leave no trace; key 0 fills a chunk."""
    random = np.random.default_rng(450)
    rows = 2 * CHUNK_ROWS

    keys = np.where(random.random(rows) < 0.6, 0, random.integers(1, 40, rows))
    values = random.normal(size=rows) * 10.0 ** random.integers(-9, 16, rows)
    table = read_table(random.integers(0, 10**6, rows), keys, values)
    aggregates = [
        Aggregate(f.value, f, "real", 0.95 if f is Function.PERCENTILE else None) for f in Function
    ]
    tuning = Tuning(chunk_rows=CHUNK_ROWS)
    kernel = sliding_kernel(SlidingWindows(600, 1000), aggregates, 10**6, tuning)

    def answer(part: pa.Table) -> pa.Table:
        (whole,) = part.combine_chunks().to_batches()
        ordered = sorted_as_by_spark(whole, np.array(part["key"]) // 3)
        batches = pa.Table.from_batches([ordered]).to_batches(max_chunksize=1_007)
        windows = pa.Table.from_batches(kernel(iter(batches)))
        return windows.sort_by([("key", "ascending"), ("_window_end_ms", "ascending")])

    together = answer(table)
    apart = [answer(table.filter(pc.equal(table["key"], key))) for key in range(40)]
    assert together.num_rows > rows
    assert together.equals(pa.concat_tables(apart))


def test_a_sum_forgets_what_has_left() -> None:
    """Rule G2: 1e16, 1, 1, 1 with the first gone is 3."""
    records = [
        Record(0, 0, i, "k", i, {"real": value}) for i, value in enumerate((1e16, 1.0, 1.0, 1.0))
    ]
    answer = run_kernel(case_of(records, SlidingDefinition(3, 50)), {"total": ("sum", "real")})
    sums = {row.start: row.values["total"] for row in answer.windows}
    # 1e16 + 3 lies halfway between two doubles: the even one is 1e16 + 4.
    assert (sums[0], sums[1]) == (1e16 + 4, 3.0)


@settings(PROPERTY, max_examples=100)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=7))
@example([2**53 + 1, 2**53 + 2, 2**53 + 3])
@example([2**62, 1, 2])
def test_the_mean_of_large_integers_is_rounded_once(values: list[int]) -> None:
    """Rule G2: Python divides whole numbers exactly, then rounds."""
    records = [Record(0, 0, i, "k", 0, {"whole": v, "real": None}) for i, v in enumerate(values)]
    answer = run_kernel(case_of(records, SlidingDefinition(3, 50)), {"mean": ("avg", "whole")})
    assert [row.values["mean"] for row in answer.windows] == [sum(values) / len(values)]


def test_an_overflowing_sum_names_aggregate_key_and_window() -> None:
    """Rule G2: overflow is an error, never a wrapped number; 2**63 is one too many."""
    records = [
        Record(0, 0, i, "key of the sum", 100 + i, {"whole": value, "real": None})
        for i, value in enumerate([2**62, 2**62 - 1, 1])
    ]
    case = case_of(records, SlidingDefinition(10, 50))
    message = r"sum\(whole\) overflows bigint .* key 'key of the sum' from 92 to 102 \(ms\)"
    with pytest.raises(ArithmeticError, match=message):
        run_kernel(case, {"total": ("sum", "whole")})


def test_the_smallest_and_the_largest_sum_are_no_overflow() -> None:
    """Rule G2: -2**63 and 2**63 - 1 fit, also where a sum passes through larger ones."""
    for values in ([-(2**62), -(2**62)], [2**62, 2**62, -1], [2**63 - 1]):
        records = [Record(0, 0, i, "k", 0, {"whole": v}) for i, v in enumerate(values)]
        answer = run_kernel(case_of(records, SlidingDefinition(3, 50)), {"t": ("sum", "whole")})
        assert [row.values["t"] for row in answer.windows] == [sum(values)]


def test_count_takes_a_column_of_any_type() -> None:
    """Rule G1: a count looks only for nulls."""
    records = pa.record_batch(
        {
            "_computed_day": pa.array([0, 0, 0], pa.int32()),
            "key": ["k", "k", "k"],
            "_event_time_ms": [1, 1, 2],
            "_close_time_ms": pa.array([None, -9, -9], pa.int64()),
            "_is_new": [True, True, True],
            "carrier": ["UA", None, "AA"],
        }
    )
    count = [Aggregate("carriers", Function.COUNT, "carrier")]
    kernel = sliding_kernel(SlidingWindows(10, 50), count, -48)
    (batch,) = kernel(cut_up(records, ["key"], []))
    assert batch.select(["_window_end_ms", "carriers"]).to_pylist() == [
        {"_window_end_ms": 1, "carriers": 1},
        {"_window_end_ms": 2, "carriers": 2},
        {"_window_end_ms": 12, "carriers": 1},
    ]


def test_a_partition_without_records_gives_no_windows() -> None:
    """What Spark's empty partitions look like."""
    kernel = WindowKernel({}, ["key"], [], aggregates_of(EVERY_FUNCTION))
    assert list(kernel(iter([]))) == []
    assert list(kernel(batches_of([], [0]))) == []
