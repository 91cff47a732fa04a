"""Stream times, watermark and look-back follow from the arrival log alone (rules A2 to A4)."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.oracle.windows import (
    close_time_after,
    close_times_met,
)
from tests.support.spark_cases import (
    EVERY_FUNCTION,
    FIRST_DAY,
    PROPERTY,
    closings_of,
    day_of,
    kernel_answer,
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
        from_ms = close_time - spec_of(case.definition).look_back_ms
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
    closings = closings_of(timeline.arrival_units, case.definition.grace)
    whole, part = (
        kernel_answer(case.definition, closings, EVERY_FUNCTION, records_met(case, timeline, reads))
        for reads in (every, few)
    )
    assert texts(part.windows) == texts(whole.windows)
    assert sorted(part.late) == sorted(whole.late)
