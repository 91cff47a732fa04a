"""The kernel of every kind of window, without Spark, against the oracle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

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
    RecordId,
    SessionDefinition,
    SlidingDefinition,
    TimeDefinition,
    keyed_windows,
)
from tests.support.spark_cases import PROPERTY, texts
from tests.support.strategies import (
    LARGE_GRACE_MS,
    ArrivalsOf,
    any_definitions,
    arrivals_of,
    forward_definitions,
    session_definitions,
    sliding_definitions,
    time_definitions,
    whole_inputs,
)
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.kernels.windows.find import LONGEST_RUN
from windows_pipeline.windows.arguments import MAX_INSTANT_MS
from windows_pipeline.windows.durations import MAX_DURATION_MS

KINDS: dict[str, Callable[[int, int], st.SearchStrategy[Any]]] = {
    "sliding": sliding_definitions,
    "forward": forward_definitions,
    "time": time_definitions,
    "session": session_definitions,
}
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


@pytest.mark.parametrize("kind", KINDS)
def test_windows_are_those_of_the_oracle(kind: str) -> None:
    """Rules A2 to A6, B2 to B8, C1, D1, D2 and E1, with up to three source partitions."""

    @PROPERTY
    @given(whole_inputs(KINDS[kind], source_partitions=3), CUTS, RANDOM)
    def holds(case: ArrivalsOf[Definition], cuts: list[int], random: Random) -> None:
        assert answer(case, {}, cuts=cuts, random=random) == expected(case, {})

    holds()


@pytest.mark.parametrize("kind", KINDS)
def test_every_aggregate_is_that_of_the_oracle(kind: str) -> None:
    """Rules A6, G1 and G2, to the bit, however records of one time and key are ordered."""

    @EVERY_FEW
    @given(whole_inputs(KINDS[kind]), CUTS, RANDOM)
    def holds(case: ArrivalsOf[Definition], cuts: list[int], random: Random) -> None:
        found = answer(case, EVERY_AGGREGATE, cuts=cuts, random=random)
        assert found == expected(case, EVERY_AGGREGATE)

    holds()


@PROPERTY
@given(whole_inputs(session_definitions, keys=("a",), source_partitions=3), CUTS, RANDOM)
def test_sessions_of_one_key_beyond_grace_are_those_of_the_oracle(
    case: ArrivalsOf[SessionDefinition], cuts: list[int], random: Random
) -> None:
    """Rule D2 where it is hardest: many records of a key that meet closed sessions."""
    hard = case._replace(definition=replace(case.definition, grace=case.definition.grace % 5))
    assert answer(hard, {}, cuts=cuts, random=random) == expected(hard, {})


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


@pytest.mark.parametrize("kind", KINDS)
def test_arrival_units_give_the_windows_that_they_changed_or_closed(kind: str) -> None:
    """Rules A2 to A5, D2 and E4: each arrival unit reads the records of all up to it."""

    @PROPERTY
    @given(arrivals_of(KINDS[kind], source_partitions=3), CUTS, RANDOM)
    def holds(case: ArrivalsOf[Definition], cuts: list[int], random: Random) -> None:
        found = windows_of(by_arrival_unit(case), SOME_AGGREGATES, cuts=cuts, random=random)
        assert texts(found) == texts(keyed_windows(*case, SOME_AGGREGATES))

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


def test_worked_example_of_kip_450_as_hopping_windows() -> None:
    """Rule C1: with a size of 10 and an advance of 1 there are 26 windows, not seven."""
    records = arriving(3, 7, 12, 19)
    found = windows_of({0: whole_input(records, TimeDefinition(10, 1, 50))}, {})
    assert sorted(spans(found)) == [
        (start, start + 10, sum(start <= time < start + 10 for time in (3, 7, 12, 19)))
        for start in range(-6, 20)
    ]


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


def test_a_session_grows_around_one_that_is_closed() -> None:
    """Rule D2: closed sessions never change, and what joins an open one is not late.

    With a gap of 5: 10 is a session that 16 closes; 11 joins 16; 7 joins 11 around it.
    """
    records = arriving(10, 16, 11, 7)
    found = windows_of({0: whole_input(records, SessionDefinition(5, 0))}, {})
    assert sorted((*span, row.closed) for row in found for span in spans([row])) == [
        (7, 16, 3, False),
        (10, 10, 1, True),
    ]


def test_a_source_partition_that_is_behind_is_merged_in_by_its_stream_time() -> None:
    """Rules A1 and D2: a record joins what others have made at a smaller stream time."""
    ahead, behind = arriving(10, 4), arriving(8, source_partition=1)
    alone = {0: whole_input(ahead, SessionDefinition(5, 0))}
    assert spans(windows_of(alone, {})) == [(10, 10, 1)]
    assert reasons_of(alone) == {0: {RecordId(0, 0, 1): "late"}}
    both = {0: whole_input(ahead + behind, SessionDefinition(5, 0))}
    assert spans(windows_of(both, {})) == [(4, 10, 3)]
    assert reasons_of(both) == {0: {}}


def test_silent_hopping_windows_go_from_the_first_record_to_the_close_time() -> None:
    """Of a key: each closed window after its first record's, inner and last ones."""
    records = arriving(3, 24) + arriving(41, first=2, key="other")
    definition = TimeDefinition(5, 5, 0, emit_empty=True)
    found = windows_of({0: whole_input(records, definition)}, {})
    counts = {row.start: row.record_count for row in found if row.key == "k"}
    assert counts == {0: 1, 5: 0, 10: 0, 15: 0, 20: 1, 25: 0, 30: 0, 35: 0}
    assert {row.start for row in found if row.key == "other"} == {40}


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
