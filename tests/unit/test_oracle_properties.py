"""What rules promise of any arrivals and windows, of the oracle."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.support.oracle.definitions import close_delay
from tests.support.oracle.windows import (
    Definition,
    Record,
    SessionDefinition,
    SlidingDefinition,
    TimeDefinition,
    Window,
    late_records,
    windows_after,
)
from tests.support.strategies import (
    Arrivals,
    ArrivalsOf,
    any_definitions,
    arrivals,
    arrivals_of,
    session_definitions,
    time_definitions,
)

SLOW = settings(
    deadline=None, print_blob=True, max_examples=100, suppress_health_check=[HealthCheck.too_slow]
)
ALL_ON_TIME_MS = 10**12
# Half of them sessions of few keys: only there a record may change what others make.
ANY = arrivals_of(any_definitions, source_partitions=3) | arrivals_of(
    session_definitions, keys=("a", "b"), source_partitions=3
)

Name = tuple[int, int]
Held = tuple[str | None, int, int, tuple[Name, ...]]


def name_of(record: Record) -> Name:
    """Identifies a record also where the same arrivals are cut otherwise."""
    return (record.source_partition, record.offset)


def held(windows: list[Window], *, closed: bool = True) -> set[Held]:
    """The closed windows with their records."""
    return {
        (w.key, w.start, w.end, tuple(sorted(map(name_of, w.records))))
        for w in windows
        if w.closed == closed
    }


def closed_by_more(records: list[Record], definition: Definition) -> list[Record]:
    """The records, and in an arrival unit of their own such that close every window of them."""
    latest = max(record.event_time for record in records)
    if not isinstance(definition, SessionDefinition):
        last = definition.last_window(latest)
        latest = latest if last is None else last.end
    end = latest + close_delay(definition) + 2
    arrival_unit = max(record.arrival_unit for record in records) + 1
    partitions = sorted({record.source_partition for record in records})
    return [*records, *(Record(arrival_unit, p, 10**6, "closer", end, {}) for p in partitions)]


@SLOW
@given(ANY)
def test_every_record_is_counted_or_listed_once_all_is_closed(case: ArrivalsOf[Definition]) -> None:
    """Rule A5: ingested = counted + late + outside + partly late, each record in one of them."""
    records, _, definition = case
    assume(records)
    everything = closed_by_more(records, definition)
    arrival_units = everything[-1].arrival_unit + 1
    late = late_records(everything, arrival_units, definition)
    listed = [row.record for row in late if row.record.arrival_unit < arrival_units - 1]
    windows = windows_after(everything, arrival_units - 1, definition)
    counted = {record.id for window in windows if window.closed for record in window.records}
    assert len(listed) == len(set(listed))
    assert sorted([*counted, *listed]) == sorted(record.id for record in records)


@SLOW
@given(ANY)
def test_a_final_window_never_changes(case: ArrivalsOf[Definition]) -> None:
    """Rules A4, D2, E1 and E4: whatever comes, from whichever source partition."""
    records, arrival_units, definition = case
    finals = [
        held(windows_after(records, arrival_unit, definition))
        for arrival_unit in range(arrival_units)
    ]
    for earlier, later in pairwise(finals):
        assert earlier <= later
    bounds = [window[:3] for window in finals[-1]]
    assert len(bounds) == len(set(bounds))


@SLOW
@given(ANY)
def test_what_is_listed_is_in_no_window_ever(case: ArrivalsOf[Definition]) -> None:
    """Rules A5 and E4: from the arrival unit on in which it is listed."""
    records, arrival_units, definition = case
    late = late_records(records, arrival_units, definition)
    for arrival_unit in range(arrival_units):
        windows = windows_after(records, arrival_unit, definition)
        counted = {record.id for window in windows for record in window.records}
        assert counted.isdisjoint(row.record for row in late if row.arrival_unit <= arrival_unit)


@st.composite
def cuts(draw: st.DrawFn, records: list[Record]) -> list[Record]:
    """The same records in other arrival units; the first has every source partition."""
    arrival_units: dict[int, int] = {}
    recut = []
    for record in records:
        step = draw(st.integers(0, 2)) if record.source_partition in arrival_units else 0
        arrival_unit = arrival_units.get(record.source_partition, 0) + step
        arrival_units[record.source_partition] = arrival_unit
        recut.append(replace(record, arrival_unit=arrival_unit))
    return recut


@SLOW
@given(ANY, st.data())
def test_cutting_the_arrivals_otherwise_changes_nothing(
    case: ArrivalsOf[Definition], data: st.DataObject
) -> None:
    """Rules A1 and H1: with no idle or new partition, arrival units only say where rows stand."""
    records, _, definition = case
    assume(records)
    definition = replace(definition, idle_after=None)

    def outcome(cut: list[Record]) -> tuple[set[Held], set[Held], set[tuple[Name, str]]]:
        everything = closed_by_more(cut, definition)
        arrival_units = everything[-1].arrival_unit + 1
        names = {record.id: name_of(record) for record in everything}
        windows = windows_after(everything, arrival_units - 1, definition)
        late = late_records(everything, arrival_units, definition)
        return (
            held(windows),
            held(windows, closed=False),
            {(names[row.record], row.reason) for row in late},
        )

    first, second = data.draw(cuts(records), label="a cut"), data.draw(cuts(records), label="b cut")
    assert outcome(first) == outcome(second)


@SLOW
@given(arrivals())
def test_each_distinct_record_set_has_one_window_while_nothing_is_late(case: Arrivals) -> None:
    """Rule B4, against every start that can hold a record; only with times close together."""
    records, arrival_units, definition = case
    times = [record.event_time for record in records]
    assume(records and max(times) - min(times) < 100)  # each millisecond is tried
    calm = SlidingDefinition(definition.time_difference, ALL_ON_TIME_MS)
    width = calm.time_difference
    of_key = {key: [r for r in records if r.key == key] for key in {r.key for r in records}}
    sets = {
        (key, tuple(r.id for r in own if start <= r.event_time <= start + width))
        for key, own in of_key.items()
        for start in range(min(times) - width, max(times) + 1)
    }
    windows = windows_after(records, arrival_units - 1, calm)
    found = [(window.key, tuple(record.id for record in window.records)) for window in windows]
    assert len(found) == len(set(found))
    assert set(found) == {each for each in sets if each[1]}


@SLOW
@given(arrivals_of(time_definitions))
def test_every_multiple_of_the_advance_starts_a_window(case: ArrivalsOf[TimeDefinition]) -> None:
    """Rule C1, against every start that can hold a record; only with times close together."""
    records, arrival_units, definition = case
    times = [record.event_time for record in records]
    assume(records and max(times) - min(times) < 100)
    calm = TimeDefinition(definition.size, definition.advance, ALL_ON_TIME_MS)
    wanted = set()
    for key in {record.key for record in records}:
        for start in range(min(times) - calm.size, max(times) + 1):
            if start % calm.advance:
                continue
            inside = [
                name_of(r)
                for r in records
                if r.key == key and start <= r.event_time < start + calm.size
            ]
            if inside:
                wanted.add((key, start, start + calm.size, tuple(sorted(inside))))
    assert held(windows_after(records, arrival_units - 1, calm), closed=False) == wanted


@SLOW
@given(arrivals_of(session_definitions))
def test_on_time_sessions_are_runs_without_a_longer_gap(
    case: ArrivalsOf[SessionDefinition],
) -> None:
    """Rule D1, against the records in order of event time."""
    records, arrival_units, definition = case
    calm = SessionDefinition(definition.gap, ALL_ON_TIME_MS)
    wanted = set()
    for key in {record.key for record in records}:
        runs: list[list[Record]] = []
        for record in sorted(
            (r for r in records if r.key == key), key=lambda each: each.event_time
        ):
            if runs and record.event_time - runs[-1][-1].event_time <= calm.gap:
                runs[-1].append(record)
            else:
                runs.append([record])
        wanted |= {
            (key, run[0].event_time, run[-1].event_time, tuple(sorted(map(name_of, run))))
            for run in runs
        }
    assert held(windows_after(records, arrival_units - 1, calm), closed=False) == wanted
