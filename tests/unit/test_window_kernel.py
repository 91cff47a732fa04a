"""The kernel of every kind of window, without Spark, against the oracle."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.cases import KINDS as GOLDEN_KINDS
from tests.support.cases import Case, batch_of, definition_of, read_cases
from tests.support.hand_written import arriving, spans
from tests.support.kernels import (
    DOUBLE,
    EVERY_AGGREGATE,
    NONE_AT_ALL,
    STRUCT,
    TWO_COLUMNS,
    Asked,
    Keys,
    ReadRecord,
    by_arrival_unit,
    reasons_of,
    runs_of,
    whole_input,
    windows_of,
    windows_of_run,
)
from tests.support.oracle.windows import (
    Aggregates,
    Definition,
    ForwardDefinition,
    Record,
    SessionDefinition,
    SlidingDefinition,
    TimeDefinition,
    keyed_windows,
)
from tests.support.radix_batches import sorted_as_by_spark
from tests.support.spark_cases import PROPERTY, texts
from tests.support.strategies import (
    LARGE_GRACE_MS,
    OF_KIND,
    ArrivalsOf,
    any_definitions,
    arrivals_of,
    whole_inputs,
)
from windows_pipeline.aggregates import FUNCTIONS, Aggregate
from windows_pipeline.engine.window_kernel import WindowKernel
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.kernels.windows.chunk import ComputedDay, event_times
from windows_pipeline.kernels.windows.hopping import LONGEST_RUN
from windows_pipeline.tuning import Tuning
from windows_pipeline.windows import SlidingWindows
from windows_pipeline.windows.arguments import MAX_INSTANT_MS
from windows_pipeline.windows.durations import MAX_DURATION_MS

# One that enters and leaves, one that depends on order, and one that costs nothing.
SOME_AGGREGATES: Aggregates = {
    name: EVERY_AGGREGATE[name] for name in ("sum of real", "collect_list of name", "max of whole")
}
CUTS = st.lists(st.integers(0, 200), max_size=6)
CONTRACT = {
    id_: case for kind in GOLDEN_KINDS for id_, case in read_cases("contract", kind).items()
}
RANDOM = st.integers(0, 999).map(Random)
EVERY_FEW = settings(PROPERTY, max_examples=100)


def answer(case: ArrivalsOf[Any], aggregates: Aggregates, **more: Any) -> list[str]:
    """The kernel's windows of one arrival unit."""
    return texts(windows_of({0: whole_input(case.records, case.definition)}, aggregates, **more))


def expected(case: ArrivalsOf[Any], aggregates: Aggregates) -> list[str]:
    """The oracle's windows."""
    return texts(keyed_windows(*case, aggregates))


@pytest.mark.parametrize("kind", OF_KIND)
def test_windows_are_those_of_the_oracle(kind: str) -> None:
    """Rules A2 to A6, B2 to B8, C1, D1, D2 and E1, with up to three source partitions."""

    @PROPERTY
    @given(whole_inputs(OF_KIND[kind], source_partitions=3), CUTS, RANDOM)
    def holds(case: ArrivalsOf[Definition], cuts: list[int], random: Random) -> None:
        assert answer(case, {}, cuts=cuts, random=random) == expected(case, {})

    holds()


@pytest.mark.parametrize("kind", OF_KIND)
def test_every_aggregate_is_that_of_the_oracle(kind: str) -> None:
    """Rules A6, G1 and G2, to the bit, however records of one time and key are ordered."""

    @EVERY_FEW
    @given(whole_inputs(OF_KIND[kind]), CUTS, RANDOM)
    def holds(case: ArrivalsOf[Definition], cuts: list[int], random: Random) -> None:
        found = answer(case, EVERY_AGGREGATE, cuts=cuts, random=random)
        assert found == expected(case, EVERY_AGGREGATE)

    holds()


@EVERY_FEW
@given(st.lists(whole_inputs(any_definitions), max_size=5), CUTS, RANDOM)
def test_one_input_has_computed_days_of_several_windows(
    cases: list[ArrivalsOf[Definition]], cuts: list[int], random: Random
) -> None:
    """Each computed day has its own windows and close times, also for the same keys."""
    asked = {number: whole_input(*case[::2]) for number, case in enumerate(cases)}
    found = windows_of(asked, SOME_AGGREGATES, cuts=cuts, random=random)
    assert texts(found) == texts(
        row._replace(arrival_unit=number)
        for number, case in enumerate(cases)
        for row in keyed_windows(*case, SOME_AGGREGATES)
    )


@pytest.mark.parametrize("keys", [DOUBLE, TWO_COLUMNS, STRUCT], ids=["NaN", "columns", "struct"])
def test_keys_are_of_any_type(keys: Keys) -> None:
    """Rule A6: a null is a value, also in one of several key columns or in a struct's field."""

    @EVERY_FEW
    @given(whole_inputs(any_definitions), CUTS)
    def holds(case: ArrivalsOf[Definition], cuts: list[int]) -> None:
        found = answer(case, SOME_AGGREGATES, keys=keys, cuts=cuts)
        assert found == expected(case, SOME_AGGREGATES)

    holds()


@EVERY_FEW
@given(whole_inputs(any_definitions), CUTS)
def test_without_close_times_every_record_is_on_time(
    case: ArrivalsOf[Definition], cuts: list[int]
) -> None:
    """As with a grace so long that no window closes."""
    records, _, definition = case
    asked = whole_input(records, definition)
    reads = [read._replace(close_time_ms=None) for read in asked.reads]
    untimed = {0: asked._replace(reads=reads, close_after_ms=NEVER_MS)}
    calm = case._replace(definition=replace(definition, grace=LARGE_GRACE_MS**2))
    assert texts(windows_of(untimed, SOME_AGGREGATES, cuts=cuts)) == expected(calm, SOME_AGGREGATES)


@EVERY_FEW
@given(whole_inputs(any_definitions, keys=(None,)), CUTS)
def test_without_a_key_all_records_are_one_group(
    case: ArrivalsOf[Definition], cuts: list[int]
) -> None:
    """Windows over all records."""
    found = answer(case, SOME_AGGREGATES, keys=NONE_AT_ALL, cuts=cuts)
    assert found == expected(case, SOME_AGGREGATES)


@pytest.mark.parametrize("kind", OF_KIND)
def test_arrival_units_give_the_windows_that_they_changed_or_closed(kind: str) -> None:
    """Rules A2 to A5, D2 and E4: each reads the records of all up to it, whichever are computed."""

    @PROPERTY
    @given(
        arrivals_of(OF_KIND[kind], source_partitions=3), CUTS, RANDOM, st.sets(st.integers(0, 3))
    )
    def holds(
        case: ArrivalsOf[Definition], cuts: list[int], random: Random, left_out: set[int]
    ) -> None:
        asked = {n: of for n, of in by_arrival_unit(case).items() if n not in left_out}
        found = windows_of(asked, SOME_AGGREGATES, cuts=cuts, random=random)
        wanted = keyed_windows(*case, SOME_AGGREGATES)
        assert texts(found) == texts(row for row in wanted if row.arrival_unit in asked)

    holds()


@pytest.mark.parametrize("case", CONTRACT.values(), ids=CONTRACT)
def test_contract_case(case: Case) -> None:
    """Every golden case of the contract."""
    batch = [Record(0, *each, values={"whole": each.offset}) for each in batch_of(case)]
    definition = definition_of(case["window"], case["window"]["grace_ms"])
    asked = {0: whole_input(batch, definition)}
    rows = windows_of(asked, {"offsets": ("collect_list", "whole")})
    for name, closed in (("final", True), ("open", False)):
        found = [
            (str(row.key), row.start, row.end, sorted(row.values["offsets"]))
            for row in rows
            if row.closed == closed
        ]
        wanted = [(str(w["key"]), w["start"], w["end"], w["offsets"]) for w in case[name]]
        assert sorted(found) == sorted(wanted)
    reasons = reasons_of(asked)[0]
    assert sorted(r.offset for r, why in reasons.items() if why == "late") == case["dropped"]


@pytest.mark.parametrize("advance_ms", [1, 10, 100, 1000])
def test_a_record_costs_two_rows_however_many_windows_hold_it(advance_ms: int) -> None:
    """Rule C2: windows between an entry and the next change are one run, which is filled once."""
    times = (0, 1500, 9000)
    runs = runs_of({0: whole_input(arriving(*times), TimeDefinition(1000, advance_ms, 0))})
    assert len(runs) <= 2 * len(times) + 1  # one is cut where the close time lies
    assert sum(len(windows_of_run(run)) for run in runs) == 3 * 1000 // advance_ms


def test_a_run_too_long_for_spark_comes_in_parts() -> None:
    """Of 200,000 windows that hold one record, and 150,000 silent ones before the next."""
    times, size_ms = (0, 350_000), 200_000
    definition = TimeDefinition(size_ms, 1, 0, emit_empty=True)
    asked = {0: whole_input(arriving(*times), definition)}
    assert max(len(windows_of_run(run)) for run in runs_of(asked)) == LONGEST_RUN
    assert sorted(spans(windows_of(asked, {}))) == [
        (start, start + size_ms, sum(start <= time < start + size_ms for time in times))
        for start in range(1 - size_ms, times[-1] + 1)
    ]


def test_silent_windows_that_are_no_results_cost_nothing() -> None:
    """Windows that are open between two records, and those that earlier arrival units closed."""
    far_ms = 2**60
    definition = TimeDefinition(1, 1, 0, emit_empty=True)
    records = arriving(0, far_ms) + arriving(0, source_partition=1)
    still_open = {0: whole_input(records, definition)}
    assert spans(windows_of(still_open, {})) == [(0, 1, 2), (far_ms, far_ms + 1, 1)]
    closed_before = {
        0: whole_input(arriving(0, far_ms), definition)._replace(close_before_ms=far_ms - 2)
    }
    assert spans(windows_of(closed_before, {})) == [
        (far_ms - 2, far_ms - 1, 0),
        (far_ms - 1, far_ms, 0),
        (far_ms, far_ms + 1, 1),
    ]


@pytest.mark.parametrize(
    "definition",
    [
        SlidingDefinition(MAX_DURATION_MS, MAX_DURATION_MS, emit_empty=True),
        SlidingDefinition(MAX_DURATION_MS, 0, first_window_start=-MAX_INSTANT_MS),
        SlidingDefinition(MAX_DURATION_MS, 0, first_window_start=MAX_INSTANT_MS),
        ForwardDefinition(MAX_DURATION_MS, MAX_DURATION_MS),
        TimeDefinition(MAX_DURATION_MS, MAX_DURATION_MS, MAX_DURATION_MS),
        TimeDefinition(1, MAX_DURATION_MS, 0, first_window_start=-MAX_INSTANT_MS, emit_empty=True),
        TimeDefinition(MAX_DURATION_MS, MAX_DURATION_MS - 1, 0, first_window_start=MAX_INSTANT_MS),
        SessionDefinition(MAX_DURATION_MS, MAX_DURATION_MS),
    ],
    ids=str,
)
def test_the_furthest_times_and_the_longest_windows_do_not_overflow(definition: Definition) -> None:
    """The largest specifications and times fit 64 bits."""
    times = (-MAX_INSTANT_MS, -1, 0, MAX_INSTANT_MS - 2, MAX_INSTANT_MS, 5, -MAX_INSTANT_MS + 1)
    case = ArrivalsOf(arriving(*times), 1, definition)
    assert answer(case, {}) == expected(case, {})
    asked = whole_input(*case[::2])
    untimed = [read._replace(close_time_ms=None) for read in asked.reads]
    calm = case._replace(definition=replace(definition, grace=2**70))
    asked = asked._replace(reads=untimed, close_after_ms=NEVER_MS)
    assert texts(windows_of({0: asked}, {})) == expected(calm, {})


@pytest.mark.parametrize("time_ms", [MAX_INSTANT_MS + 1, -MAX_INSTANT_MS - 1, 2**63 - 1, -(2**63)])
def test_times_beyond_the_range_are_refused(time_ms: int) -> None:
    read = ReadRecord(arriving(time_ms)[0], close_time_ms=None, merged_as=0)
    with pytest.raises(ValueError, match=f"must be within .* ms of 1970, not {time_ms} ms"):
        windows_of({0: Asked(ForwardDefinition(1, 0), [read], NEVER_MS, NEVER_MS)}, {})


CHUNK_ROWS = 20_000
"""Fewer than the default, so that several chunks are soon computed."""


def test_a_partition_larger_than_a_chunk_gives_what_its_keys_give_alone() -> None:
    """Rule G2: chunks, and batches that cut a key, leave no trace; key 0 fills a chunk."""
    random = np.random.default_rng(450)
    rows = 2 * CHUNK_ROWS
    times_ms = random.integers(0, 10**6, rows)
    table = pa.table(
        {
            "_computed_day": np.zeros(rows, np.int32),
            "key": np.where(random.random(rows) < 0.6, 0, random.integers(1, 40, rows)),
            "_event_time_ms": times_ms,
            "_close_time_ms": times_ms - 1000,
            "_is_new": np.ones(rows, np.bool_),
            "real": random.normal(size=rows) * 10.0 ** random.integers(-9, 16, rows),
        }
    )
    aggregates = [
        Aggregate(f.name, f, "real", 0.95 if f.second else None)
        for f in FUNCTIONS.values()
        if f.takes.fits("double")
    ]
    days = {0: ComputedDay(SlidingWindows(600, 1000), NEVER_MS, 10**6)}
    tuning = Tuning(chunk_rows=CHUNK_ROWS)
    kernel = WindowKernel(days, ["key"], [], aggregates, tuning=tuning)

    def windows(part: pa.Table) -> pa.Table:
        (whole,) = part.combine_chunks().to_batches()
        ordered = sorted_as_by_spark(whole, np.array(part["key"]) // 3)
        batches = pa.Table.from_batches([ordered]).to_batches(max_chunksize=1_007)
        found = pa.Table.from_batches(kernel(iter(batches)))
        return found.sort_by([("key", "ascending"), ("_window_end_ms", "ascending")])

    together = windows(table)
    apart = [windows(table.filter(pc.equal(table["key"], key))) for key in range(40)]
    assert together.num_rows > rows
    assert together.equals(pa.concat_tables(apart))


def test_an_overflowing_sum_names_aggregate_key_and_window() -> None:
    """Rule G2: overflow is an error, never a wrapped number; 2**63 is one too many."""
    records = [
        Record(0, 0, number, "key of the sum", 100 + number, {"whole": value})
        for number, value in enumerate([2**62, 2**62 - 1, 1])
    ]
    asked = {0: whole_input(records, SlidingDefinition(10, 50))}
    message = r"sum\(whole\) overflows bigint .* key 'key of the sum' from 92 to 102 \(ms\)"
    with pytest.raises(ArithmeticError, match=message):
        windows_of(asked, {"total": ("sum", "whole")})


@pytest.mark.parametrize(
    ("time_ms", "words"),
    [(None, "must not be null, but is in 1 records"), (2**62, "must be within .* ms of 1970")],
)
def test_an_event_time_that_is_none_is_refused(time_ms: int | None, words: str) -> None:
    """Rule A6."""
    table = pa.table({"_event_time_ms": pa.array([0, time_ms], pa.int64())})
    with pytest.raises(ValueError, match=words):
        event_times(table)
