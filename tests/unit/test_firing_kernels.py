"""The firings of windows against the oracle, and the oracle against Flink's own (rule E2)."""

from __future__ import annotations

import math
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.cases import Case, read_cases
from tests.support.firing_cases import (
    Records,
    arrived_of,
    fired,
    policies,
    record_lists,
    spec_of,
    trigger_of,
)
from tests.support.oracle.firings import Firing, Policy, firings
from tests.support.oracle.windows import Record, SlidingDefinition, windows_after
from tests.support.spark_cases import PROPERTY
from windows_pipeline.kernels.firings.find import Firings, find_firings
from windows_pipeline.kernels.firings.windows import NewInput
from windows_pipeline.tuning import Tuning
from windows_pipeline.windows import SessionWindows, SlidingWindows, TimeWindows
from windows_pipeline.windows.firing.triggers import Trigger
from windows_pipeline.windows.firing.triggers import trigger_of as trigger_from_fields

FLINK = read_cases("flink", "firings")
HOUR = TimeWindows.of_size_and_grace("1 hour", "5 minutes")
SLIDING = SlidingWindows.of_time_difference_and_grace("1 second", "1 second")


def policy_of(case: Case) -> Policy:
    window = case["window"]
    size = window.get("size_ms", 0)
    return Policy(
        size,
        window.get("advance_ms", size),
        window.get("gap_ms", 0),
        window["allowed_lateness_ms"],
        case["out_of_orderness_ms"],
        window["early"].get("n", 0),
        window["early"].get("interval_ms", 0),
        discarding=window["purge"],
        as_in_flink=True,
        input_ends=True,
    )


def in_flinks_words(case: Case, firing: Firing, stream_times: list[int]) -> dict[str, Any]:
    """Watermark: stream time less out-of-orderness less 1, as the record before left it."""
    by_record = firing.cause == "record"
    watermark: int | str | None = "end"
    if firing.after is not None:
        met = firing.after - by_record
        watermark = stream_times[met] - case["out_of_orderness_ms"] - 1 if met >= 0 else None
    return {
        "after": firing.after,
        "key": firing.key,
        "start": firing.start,
        "end": firing.end,
        "id": firing.id,
        "reason": firing.reason,
        "watermark": watermark,
        "cause": "record" if by_record else "watermark",
        "offsets": list(firing.records),
    }


@pytest.mark.parametrize("name", FLINK)
def test_the_oracle_fires_as_flink_does(name: str) -> None:
    """Rules 1 to 3 and 12 to 16 of Flink's cases."""
    case = FLINK[name]
    records = [(r["key"] if case["keyed"] else None, r["timestamp"]) for r in case["input"]]
    stream_times = [max(time for _, time in records[: n + 1]) for n in range(len(records))]
    found = firings(records, policy_of(case))
    found_rows = [in_flinks_words(case, firing, stream_times) for firing in found]
    assert sorted(found_rows, key=repr) == sorted(case["firings"], key=repr)


@settings(PROPERTY, max_examples=200)
@given(records=record_lists(), policy=policies())
def test_the_engine_fires_as_the_oracle_does(records: Records, policy: Policy) -> None:
    """Rule E2, for windows and triggers of every kind."""
    assert fired(records, policy) == firings(records, policy)


@settings(PROPERTY, max_examples=100)
@given(records=record_lists(), policy=policies(), unit=st.integers(2, 6))
def test_one_watermark_advance_in_each_multiple_is_enough(
    records: Records, policy: Policy, unit: int
) -> None:
    """Where sizes, graces and intervals are multiples, only the first advance in each matters."""
    coarse = policy._replace(
        size=max(policy.size, 1) * unit,
        advance=max(policy.advance, 1) * unit,
        gap=0,
        difference=0,
        lateness=policy.lateness * unit,
        out_of_orderness=policy.out_of_orderness * unit,
        interval=policy.interval * unit,
        as_in_flink=False,
    )
    assert fired(records, coarse, grid_ms=unit) == firings(records, coarse)


@settings(PROPERTY, max_examples=100)
@given(records=record_lists(), policy=policies().filter(lambda policy: not policy.gap))
def test_windows_may_be_fired_in_parts(records: Records, policy: Policy) -> None:
    """However few records a part has."""
    assert fired(records, policy, tuning=Tuning(part_records=3)) == firings(records, policy)


@settings(PROPERTY, max_examples=100)
@given(records=record_lists(), policy=policies().filter(lambda policy: policy.difference > 0))
def test_the_last_firing_of_a_sliding_window_is_the_window(
    records: Records, policy: Policy
) -> None:
    """Rules A5, B3 to B6, B8, E1, E2: fired at each record, the oracle's windows, no others."""
    every = policy._replace(every_n=1, interval=0, late=True, discarding=False, input_ends=False)
    last = {(f.key, f.start, f.end): f.records for f in fired(records, every)}
    definition = SlidingDefinition(
        policy.difference,
        policy.lateness + policy.out_of_orderness,
        policy.first_start,
        policy.emit_empty,
    )
    came = [Record(0, 0, number, *record, {}) for number, record in enumerate(records)]
    assert last == {
        (window.key, window.start, window.end): tuple(
            sorted(record.offset for record in window.records)
        )
        for window in windows_after(came, 0, definition)
    }


def copies_and_firings(records: Records, policy: Policy) -> tuple[int, int]:
    """How often records stand in panes, and how many firings show them."""
    parts = list(find_firings(spec_of(policy), trigger_of(policy), arrived_of(records, policy)[0]))
    return sum(len(part.record) for part in parts), sum(len(part.id) for part in parts)


@pytest.mark.parametrize("length", [10, 100, 1_000])
@pytest.mark.parametrize("panes", ["accumulating", "discarding"])
def test_windows_that_overlap_share_their_panes(length: int, panes: str) -> None:
    """Rule E2: the cost grows with the firings, not with the records in each window."""
    in_order = [("a", second) for second in range(3_000)]
    sliding = Policy(difference=length, discarding=panes == "discarding")
    hopping = sliding._replace(difference=0, size=10 * length, advance=length)
    for policy in (sliding, hopping):
        stand, fired_ = copies_and_firings(in_order, policy)
        assert stand <= len(in_order)
        assert fired_ <= 2 * len(in_order)
    # Every tenth record comes half a window late, in grace: a few copies for each firing.
    late = [("a", time - length // 2 if time % 10 == 3 else time) for _, time in in_order]
    for policy in (sliding, hopping):
        stand, fired_ = copies_and_firings(late, policy._replace(lateness=length))
        assert stand <= len(late) + 2 * fired_
    # All records of a key are behind, within the grace: their windows have passed already.
    behind = [("b", 2 * len(in_order)), *in_order]
    stand, fired_ = copies_and_firings(behind, sliding._replace(lateness=10**6, late=False))
    assert stand <= fired_
    ticks = sliding._replace(interval=length)
    stand, fired_ = copies_and_firings(in_order, ticks)
    assert stand <= 3 * len(in_order) <= 3 * fired_


def test_a_micro_batch_fills_the_panes_that_it_fires() -> None:
    """Rules E2, H1: windows that wait for their grace to end are not fired again."""
    records = [("a", second) for second in range(3_000)]
    waiting = Policy(difference=100, lateness=10**6)
    hopping = waiting._replace(difference=0, size=100, advance=10)
    for policy in (waiting, hopping, waiting._replace(interval=50), hopping._replace(interval=50)):
        arrived = arrived_of(records, policy)[0]
        is_new = np.arange(len(records)) >= len(records) - 10
        new = NewInput(is_new, is_new, with_earlier=False)
        spec, trigger = spec_of(policy), trigger_of(policy)
        parts = list(find_firings(spec, trigger, arrived, new))
        every = list(find_firings(spec, trigger, arrived))
        assert sum(len(part.record) for part in parts) <= 250
        assert _after(parts, is_new) == _after(every, is_new) != []


def _after(parts: list[Firings], is_new: np.ndarray) -> list[tuple[int, ...]]:
    """The firings after new input: window, number, reason, and the input they come after."""
    rows = (zip(p.start_ms, p.id, p.reason, p.by_advance, p.after, strict=True) for p in parts)
    return sorted(tuple(map(int, row)) for row in chain.from_iterable(rows) if is_new[row[-1]])


def summary(records: Records, policy: Policy) -> list[tuple[object, ...]]:
    """Of each firing its id, reason, stream time, and how many records it shows."""
    return [(f.id, f.reason, f.stream_time, len(f.records)) for f in fired(records, policy)]


def test_a_sliding_window_fires_from_the_record_that_makes_it() -> None:
    """Rules B3, E2: with what came before, which it counts; it need not hold that record."""
    sliding = Policy(difference=10, lateness=5, every_n=2)
    records = [("a", 12), ("b", 13), ("a", 8), ("a", 14), ("b", 20)]
    found: dict[int, list[object]] = {}
    for f in fired(records, sliding):
        if f.key == "a":
            found.setdefault(f.start, []).append((f.reason, f.cause, f.after, f.records))
    assert found[-2] == [("ON_TIME", "record", 2, (2,))]
    # The one to the right of a@8 has a@12 by then, and fires at two.
    assert found[9] == [
        ("EARLY", "record", 3, (0, 3)),
        ("ON_TIME", "stream time", 4, (0, 3)),
    ]
    assert found[4][0] == ("EARLY", "record", 3, (0, 2, 3))
    every = [f.after for f in fired(records, sliding._replace(every_n=1)) if f.start == 9]
    assert every == [2, 3, 4]


def test_a_silence_fires_when_it_closes() -> None:
    """Rules B8, E2: once, with an empty pane."""
    silent = Policy(difference=10, lateness=5, emit_empty=True)
    records = [("a", 1), ("b", 5), ("b", 17), ("b", 18)]
    found = [f for f in fired(records, silent) if f.key == "a"]
    assert [(*f[1:5], f.after, f.is_final, f.records) for f in found] == [
        (-9, 1, 0, "ON_TIME", 1, False, (0,)),
        (2, 12, 0, "ON_TIME", 3, True, ()),
    ]


def test_stream_time_that_passes_several_ticks_fires_once() -> None:
    """Here; Flink's trigger fires at each, past the end too (rule 16 of its cases)."""
    records = [("a", 1), ("a", 12), ("a", 45)]
    windows = Policy(size=20, advance=20, interval=5)
    first = [row for row in summary(records, windows) if row[2] != math.inf]
    assert first == [(0, "EARLY", 12, 2), (1, "ON_TIME", 45, 2)]
    assert [reason for _, reason, _, _ in summary(records, windows._replace(as_in_flink=True))] == [
        "EARLY",
        "EARLY",
        "ON_TIME",
        "LATE",
    ]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Trigger.at_window_end().early_every_n(0),
            "early_every_records: must be an int above zero, not 0",
        ),
        (lambda: Trigger.at_window_end().early_every("0 seconds"), "early_every: '0 seconds'"),
        (lambda: Trigger.at_window_end().early_every("1 second").early_every_n(2), "not both"),
        (lambda: Trigger.until_window_closes().discarding(), "start from Trigger.at_window_end"),
        (
            lambda: Trigger.at_window_end().with_out_of_orderness("-1 second"),
            "must not be negative",
        ),
        (lambda: Trigger(late=1), "late: must be True or False, not 1"),  # type: ignore[arg-type]
        (
            lambda: Trigger.at_window_end().discarding().with_final(),
            "with_final: a final firing shows all records .* cannot go with discarding",
        ),
        (lambda: Trigger.until_window_closes().with_final(), "start from Trigger.at_window_end"),
        (
            lambda: trigger_from_fields("1 hour", final=True, panes="discarding"),
            "panes: 'discarding' does not go with final",
        ),
        (
            lambda: trigger_from_fields(final=True, out_of_orderness="5 ms"),
            "out_of_orderness: '5 ms' has no effect, because these windows fire only as they close",
        ),
        (
            lambda: Trigger().fitted(SlidingWindows.of("1 second").grace("1 second")),
            "ForwardSlidingWindows fire only when they close",
        ),
        (
            lambda: Trigger().following_flink().fitted(SLIDING),
            "following_flink cannot apply to SlidingWindows",
        ),
        (
            lambda: Trigger().fitted(
                TimeWindows.of_size_with_no_grace("1 second", emit_empty=True)
            ),
            "emit_empty adds windows without records",
        ),
        (
            lambda: Trigger().with_out_of_orderness("1 hour").fitted(HOUR),
            "out_of_orderness of '1 hour' is above the windows' grace of '5 minutes'",
        ),
    ],
)
def test_what_a_trigger_refuses(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_trigger_is_a_value() -> None:
    trigger = Trigger.at_window_end().early_every("15 minutes").discarding().without_late()
    assert trigger == Trigger(early_every_ms=900_000, late=False, discards=True)
    assert trigger.fitted(HOUR) is HOUR
    assert trigger.fitted(SLIDING) is SLIDING
    sessions = SessionWindows.of_inactivity_gap_with_no_grace("1 second")
    assert Trigger.at_window_end().early_every_update().fitted(sessions) is sessions
