"""Stream times, watermark and look-back follow from the arrival log alone (rules A2 to A4)."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.oracle.windows import (
    Record,
    SlidingDefinition,
    close_time_after,
    close_times_met,
)
from tests.support.spark_cases import (
    EVERY_FUNCTION,
    FIRST_DAY,
    PROPERTY,
    answer_from,
    day_of,
    log_of,
    look_back,
    reads_of,
    records_met,
    spec_of,
    texts,
    timeline_of,
)
from tests.support.strategies import Arrivals, arrivals
from windows_pipeline.arrival.watermark import LogRow, Read, Timeline, build_timeline, close_ms
from windows_pipeline.incremental.windows import lookback_ms
from windows_pipeline.kernels.time import NEVER_MS


def scan(rows: list[tuple[int, str | None, int | None]], idle_after: int | None = None) -> Timeline:
    """The timeline of rows of arrival unit, source partition and largest event time."""
    log = [LogRow(day_of(arrival_unit), partition, time) for arrival_unit, partition, time in rows]
    return build_timeline(log, FIRST_DAY, idle_after)


def watermark(timeline: Timeline) -> list[int]:
    return [arrival_unit.watermark_after_ms for arrival_unit in timeline.arrival_units]


@PROPERTY
@given(arrivals(source_partitions=3), st.randoms(use_true_random=False))
def test_close_times_are_those_of_the_oracle(case: Arrivals, random: Random) -> None:
    """Rules A2 to A4: the close time after each arrival unit, and of each record on arrival."""
    records, arrival_units, definition = case
    log = log_of(records, arrival_units)
    random.shuffle(log)
    timeline = build_timeline(log, FIRST_DAY, definition.idle_after)
    for number, arrival_unit in enumerate(timeline.arrival_units):
        before = close_time_after(records, number - 1, definition)
        after = close_time_after(records, number, definition)
        assert close_ms(arrival_unit.watermark_before_ms, definition.grace) == max(before, NEVER_MS)
        assert close_ms(arrival_unit.watermark_after_ms, definition.grace) == max(after, NEVER_MS)
    own = [
        Read(arrival_unit.day, arrival_unit.day, NEVER_MS)
        for arrival_unit in timeline.arrival_units
    ]
    met = {read.record.id: read.close_time_ms for read in records_met(case, timeline, own)}
    assert met == close_times_met(records, definition)


@PROPERTY
@given(arrivals(source_partitions=3))
def test_the_watermark_never_falls(case: Arrivals) -> None:
    """Rule A4: whichever source partitions fall idle or resume."""
    timeline = timeline_of(case)
    closed = watermark(timeline)
    assert closed == sorted(closed)
    assert [arrival_unit.watermark_before_ms for arrival_unit in timeline.arrival_units] == [
        NEVER_MS,
        *closed[:-1],
    ]


def test_nothing_closes_past_a_missing_arrival_unit() -> None:
    """Rule A2: arrival units after the missing one count only once it has arrived."""
    rows: list[tuple[int, str | None, int | None]] = [(0, "0", 10), (1, "0", 20), (3, "0", 99)]
    timeline = scan(rows)
    assert watermark(timeline) == [10, 20]
    assert timeline.arrival_unit(day_of(1)) is timeline.arrival_units[1]
    for past in (day_of(2), day_of(3), day_of(4), FIRST_DAY - timedelta(days=1)):
        assert timeline.arrival_unit(past) is None
    assert look_back(timeline, [day_of(2), day_of(3)], 20, 5) == []
    assert watermark(scan([*rows, (2, None, None)])) == [10, 20, 20, 99]


def test_without_the_first_arrival_unit_there_is_no_timeline() -> None:
    timeline = scan([(1, "0", 10)])
    assert timeline.arrival_units == ()
    assert timeline.arrival_unit(FIRST_DAY) is None
    assert look_back(timeline, [FIRST_DAY, day_of(1)], 20, 5) == []


def test_the_slowest_active_source_partition_bounds_the_watermark() -> None:
    """Rule A4: exactly `idle_after` behind is not idle; a resumed partition reopens nothing."""
    rows: list[tuple[int, str | None, int | None]] = [
        (0, "slow", 10),
        (0, "fast", 50),
        (1, "fast", 60),
        (2, "slow", 30),
        (3, "slow", 62),
        (3, "fast", 70),
    ]
    assert watermark(scan(rows)) == [10, 10, 30, 62]
    assert watermark(scan(rows, idle_after=50)) == [10, 10, 30, 62]
    assert watermark(scan(rows, idle_after=40)) == [10, 60, 60, 62]
    assert watermark(scan(rows, idle_after=0)) == [50, 60, 60, 70]
    assert scan(rows).arrival_units[2].stream_time_before_ms == {"slow": 10, "fast": 60}


def test_an_earlier_event_time_does_not_set_stream_time_back() -> None:
    """Rule A2."""
    timeline = scan([(0, "0", 50), (1, "0", 20), (2, "0", 60)])
    assert watermark(timeline) == [50, 50, 60]
    assert [arrival_unit.max_event_time_ms for arrival_unit in timeline.arrival_units] == [
        50,
        20,
        60,
    ]


def test_before_any_record_nothing_is_closed() -> None:
    """Rule A3: NEVER_MS less grace stays NEVER_MS."""
    timeline = scan([(0, None, None), (1, "0", 5)])
    assert watermark(timeline) == [NEVER_MS, 5]
    assert (close_ms(NEVER_MS, 7), close_ms(5, 7)) == (NEVER_MS, -2)


def test_look_back_skips_arrival_units_whose_records_are_too_early() -> None:
    """Day 4 closes at 100 - 5, so it reads the arrival units with a record at 95 - 20 or later."""
    timeline = scan([(0, "0", 74), (1, "0", 75), (2, "0", 20), (3, "0", 100), (4, "0", 101)])
    assert look_back(timeline, [day_of(4)], 20, 5) == [
        Read(day_of(4), day_of(4), 75),
        Read(day_of(4), day_of(3), 75),
        Read(day_of(4), day_of(1), 75),
    ]


@PROPERTY
@given(arrivals())
def test_look_back_reads_the_arrival_units_that_matter_and_no_others(case: Arrivals) -> None:
    """Rule E4: the computed day, and each earlier arrival unit with a record from `from_ms` on."""
    timeline = timeline_of(case)
    reads = reads_of(case, timeline, range(case.arrival_units))
    found = {(read.computed_day, read.arrival_unit) for read in reads}
    assert len(found) == len(reads)
    wanted = {(arrival_unit.day, arrival_unit.day) for arrival_unit in timeline.arrival_units}
    for computed in timeline.arrival_units:
        close_time = close_ms(computed.watermark_before_ms, case.definition.grace)
        from_ms = close_time - lookback_ms(spec_of(case.definition))
        wanted |= {
            (computed.day, day_of(record.arrival_unit))
            for record in case.records
            if day_of(record.arrival_unit) < computed.day and record.event_time >= from_ms
        }
    with_records = {day_of(record.arrival_unit) for record in case.records}
    assert {(t, u) for t, u in found if t == u or u in with_records} == wanted


@settings(PROPERTY, max_examples=200)
@given(arrivals())
def test_records_before_the_look_back_change_nothing(case: Arrivals) -> None:
    """Rules A5, B5, B8 and E4: reading every earlier record gives the same results."""
    timeline = timeline_of(case)
    days = [arrival_unit.day for arrival_unit in timeline.arrival_units]
    every = [Read(computed, day, NEVER_MS) for computed in days for day in days if day <= computed]
    few = reads_of(case, timeline, range(case.arrival_units))
    whole = answer_from(case, EVERY_FUNCTION, records_met(case, timeline, every))
    part = answer_from(case, EVERY_FUNCTION, records_met(case, timeline, few))
    assert texts(part.windows) == texts(whole.windows)
    assert sorted(part.late) == sorted(whole.late)


def test_a_record_two_differences_before_the_close_time_matters() -> None:
    """Rule A5: b's record at 80 makes [81, 91], which counts b's record at 90."""
    records = [
        Record(0, 0, 0, "b", 80, {"whole": 1, "real": None}),
        Record(0, 0, 1, "a", 91, {"whole": 1, "real": None}),
        Record(0, 0, 2, "b", 90, {"whole": 1, "real": None}),  # its left window is closed
        Record(1, 0, 3, "a", 100, {"whole": 1, "real": None}),
        Record(2, 0, 4, "a", 120, {"whole": 1, "real": None}),
    ]
    case = Arrivals(records, 3, SlidingDefinition(time_difference=10, grace=0))
    timeline = timeline_of(case)
    assert timeline.arrival_units[2].watermark_before_ms == 100
    short = look_back(timeline, [day_of(2)], 19, 0)
    answer = answer_from(case, {}, records_met(case, timeline, short))
    assert [row.record.offset for row in answer.late] == [
        2
    ]  # wrong: a look-back of 19 is 1 ms too short
    enough = reads_of(case, timeline, [2])
    assert answer_from(case, {}, records_met(case, timeline, enough)).late == []
