"""The firings of each arrival unit, from what it reads of earlier ones (rules E2, E4, H1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import cycle
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.firing_cases import (
    Records,
    merged_in,
    policies,
    record_lists,
    spec_of,
    stream_times,
    trigger_of,
)
from tests.support.oracle.arrival import Record
from tests.support.oracle.definitions import (
    FixedDefinition,
    SlidingDefinition,
    TimeDefinition,
    is_closed,
)
from tests.support.oracle.firings import Policy, firings
from tests.support.radix_batches import with_sort_key
from tests.support.spark_cases import PROPERTY
from windows_pipeline.aggregates import FUNCTIONS, Aggregate
from windows_pipeline.arrival.merge import BEFORE_ALL, Merge, Position
from windows_pipeline.arrival.watermark import (
    LogRow,
    Read,
    Timeline,
    build_timeline,
    close_ms,
    reads_from,
)
from windows_pipeline.engine.firings.kernel import FiringKernel, FiringSpec
from windows_pipeline.engine.firings.watermark_steps import Advances
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.windows import SessionWindows, SlidingWindows, TimeWindows

FIRST_DAY = date(2026, 11, 1)
LISTED = Aggregate("listed", FUNCTIONS["collect_list"], "number")
ARRIVAL = ["merged_as", "arrival_unit", "source_partition", "number"]


def arrived(records: Records, partitions: Sequence[int], cuts: list[int]) -> list[Record]:
    """Records by their numbers as offsets; two equal cuts make an empty arrival unit."""
    return [
        Record(sum(cut <= number for cut in cuts), partition, number, key, time, {})
        for number, ((key, time), partition) in enumerate(
            zip(records, cycle(partitions), strict=False)
        )
    ]


def definition_of(policy: Policy, idle_after: int | None) -> FixedDefinition:
    grace = policy.lateness + policy.out_of_orderness
    if policy.difference:
        return SlidingDefinition(policy.difference, grace, idle_after=idle_after)
    return TimeDefinition(policy.size, policy.advance, grace, idle_after=idle_after)


def log_of(records: Sequence[Record], arrival_units: int) -> list[LogRow]:
    log = [
        LogRow(FIRST_DAY + timedelta(days=arrival_unit), None, None)
        for arrival_unit in range(arrival_units)
    ]
    return log + [
        LogRow(
            FIRST_DAY + timedelta(days=one.arrival_unit), str(one.source_partition), one.event_time
        )
        for one in records
    ]


def read(
    records: Sequence[Record],
    timeline: Timeline,
    merge: Merge,
    reads: list[Read],
    computed_day: int,
) -> list[dict[str, Any]]:
    """The merged records that `arrival_unit_firings` reads for an arrival unit."""
    from_ms = {(one.arrival_unit - FIRST_DAY).days: one.from_ms for one in reads}
    before, after = position_after(merge, computed_day - 1), position_after(merge, computed_day)
    resumed = {
        (part.arrival_unit, part.source_partition, part.position.stream_time_ms): (
            part.position.source_partition
        )
        for part in merge.resumed
    }
    rows = []
    for record, own_ms in zip(records, stream_times(records), strict=True):
        is_new = record.arrival_unit == computed_day
        if record.arrival_unit not in from_ms:
            continue
        if not is_new and record.event_time < from_ms[record.arrival_unit]:
            continue
        arrival_unit = timeline.arrival_units[record.arrival_unit]
        stream_time_ms = max(own_ms, arrival_unit.watermark_before_ms)
        partition = str(record.source_partition)
        merged_as = resumed.get((arrival_unit.day, partition, stream_time_ms), partition)
        position = Position(stream_time_ms, merged_as)
        if position <= after:
            row = {
                "_computed_day": computed_day,
                "key": record.key,
                "_event_time_ms": record.event_time,
            }
            row |= {
                "_stream_time_ms": stream_time_ms,
                "merged_as": merged_as,
                "arrival_unit": record.arrival_unit,
            }
            row |= {"source_partition": record.source_partition}
            row |= {"number": record.offset, "_is_new": is_new or position > before}
            rows.append(row)
    return rows


def position_after(merge: Merge, arrival_unit: int) -> Position:
    return merge.position_after.get(FIRST_DAY + timedelta(days=arrival_unit), BEFORE_ALL)


def fired(
    spec: SlidingWindows | TimeWindows,
    policy: Policy,
    rows: list[dict[str, Any]],
    *,
    with_earlier: bool = False,
) -> Iterator[Any]:
    """The kernel's firings of one computed day."""
    by_arrival = sorted(
        rows, key=lambda row: tuple(row[of] for of in ("_stream_time_ms", *ARRIVAL))
    )
    first: dict[int, dict[str, Any]] = {}
    for row in by_arrival:
        first.setdefault(row["_stream_time_ms"], row)
    advanced_ms = list(first.values())
    at = pa.Table.from_pylist([{name: row[name] for name in ARRIVAL} for row in advanced_ms])
    advances = Advances(
        np.array([*first], np.int64),
        np.array([row.get("_is_new", True) for row in advanced_ms], np.bool_),
        at,
    )
    by_key = sorted(by_arrival, key=lambda row: (row["key"] is not None, row["key"] or ""))
    day = rows[0]["_computed_day"]
    days = {day: FiringSpec(spec, trigger_of(policy))}
    kernel = FiringKernel(
        days, {day: advances}, ["key"], ARRIVAL, [LISTED], with_earlier=with_earlier
    )
    types = dict.fromkeys(by_key[0], pa.int64())
    types |= {"_computed_day": pa.int32(), "key": pa.string(), "_is_new": pa.bool_()}
    types["merged_as"] = pa.string()
    schema = pa.schema([(name, types[name]) for name in by_key[0]])
    whole = with_sort_key(pa.RecordBatch.from_pylist(by_key, schema), ["_computed_day", "key"])
    for batch in kernel(iter([whole])):
        for row in batch.to_pylist():
            ids = (row["_window_start_ms"], row["_window_end_ms"], row["firing_id"], row["reason"])
            held = (row["_stream_time_ms"], tuple(sorted(row["listed"])), row["is_final"])
            yield row["_after_number"], row["key"], *ids, row["cause"], *held


@given(
    record_lists(),
    policies().filter(lambda policy: not policy.gap and not policy.as_in_flink),
    st.lists(st.integers(0, 12) | st.integers(0, 40), max_size=4).map(sorted),
    st.just([0]) | st.lists(st.integers(0, 2), min_size=2, max_size=7),
    st.none() | st.integers(1, 20),
)
# Source partition 0 is new, and behind what partition 1 has merged.
@example(
    [("a", 5), ("a", 3), ("a", 9)], Policy(10, 10, lateness=5, every_n=1), [1, 2], [1, 0, 0], None
)
# Partition 0 resumes at the position of 1, and before the records of 1 in that arrival unit.
@example(
    [(None, 0), (None, 2), (None, 2), ("b", 2), ("b", 2)],
    Policy(difference=1, every_n=1),
    [2],
    [0, 1],
    1,
)
# And once more, now that it has reached the position of 1 itself.
@example(
    [(None, 0), (None, 2), (None, 2), ("b", 2), ("b", 2)],
    Policy(difference=1, every_n=1),
    [2, 3],
    [0, 1],
    1,
)
# A window that has fired closes in an arrival unit that has no record of it.
@example(
    [(None, 0), (None, 1), (None, 2)], Policy(difference=1, lateness=1, late=False), [2], [0], None
)
# Discarding panes that are empty at a tick are no firings, and take no number.
@example(
    [(None, 0), (None, 1), (None, 2), (None, 3)],
    Policy(difference=1, interval=1, discarding=True, late=False),
    [3],
    [0],
    None,
)
# A late record makes a window to its right that has passed, and is not in it.
@example([(None, 5), (None, 20), (None, 3)], Policy(difference=2, lateness=30), [2], [0], None)
@PROPERTY
def test_each_arrival_unit_has_its_own_firings(
    records: Records,
    policy: Policy,
    cuts: list[int],
    partitions: list[int],
    idle_after: int | None,
) -> None:
    """Numbers continue; with_earlier returns those of windows that fire or close.

    Rules A1, A4: with several source partitions, an arrival unit has the firings of what it merged.
    """
    policy = policy._replace(input_ends=False)
    spec = spec_of(policy)
    assert not isinstance(spec, SessionWindows)
    arrival_units = len(cuts) + 1
    came = arrived(records, partitions, cuts)
    definition = definition_of(policy, idle_after)
    merged = merged_in(came, arrival_units, definition)
    in_order = [(record.key, record.event_time) for _, record in merged]
    numbers = [record.offset for _, record in merged]
    expected = [
        (merged[f.after][0], (numbers[f.after], f.key, f.start, f.end, f.id, f.reason,
         "RECORD" if f.cause == "record" else "STREAM_TIME", f.stream_time,
         tuple(sorted(numbers[record] for record in f.records)), f.is_final))
        for f in firings(in_order, policy)
        if f.after is not None
    ]  # fmt: skip
    log = log_of(came, arrival_units)
    timeline = build_timeline(log, FIRST_DAY, idle_after)
    merge = Merge(idle_after).after(log)
    for arrival_unit in timeline.arrival_units:
        computed_day = (arrival_unit.day - FIRST_DAY).days
        assert position_after(merge, computed_day).stream_time_ms == arrival_unit.watermark_after_ms
        close_before_ms = close_ms(arrival_unit.watermark_before_ms, spec.close_delay_ms)
        from_ms = max(close_before_ms - spec.look_back_ms, NEVER_MS)
        reads = reads_from(timeline, {arrival_unit.day: from_ms})
        rows = read(came, timeline, merge, reads, computed_day)
        own = [row for of, row in expected if of == computed_day]
        assert sorted(fired(spec, policy, rows) if rows else [], key=repr) == sorted(own, key=repr)
        every = list(fired(spec, policy, rows, with_earlier=True)) if rows else []
        close_after_ms = close_ms(arrival_unit.watermark_after_ms, spec.close_delay_ms)
        so_far = {
            row
            for of, row in expected
            if of <= computed_day and not is_closed(row[3], close_before_ms, definition)
        }
        fires = {row[1:4] for row in own}
        asked = {
            row
            for row in so_far
            if row[1:4] in fires or is_closed(row[3], close_after_ms, definition)
        }
        still_open = [row for row in every if not is_closed(row[3], close_before_ms, definition)]
        assert len(set(still_open)) == len(still_open)
        assert asked <= set(still_open) <= so_far


@given(record_lists(), st.lists(st.integers(0, 2), min_size=1, max_size=7), st.data())
@PROPERTY
def test_the_merge_is_the_same_whatever_the_arrival_units_are(
    records: Records, partitions: list[int], data: st.DataObject
) -> None:
    """Rules A1, H1: of source partitions that are all there at first, and none idle."""
    first = [(f"{partition}", min(time for _, time in records)) for partition in (0, 1, 2)]
    every = [*first, *records]
    at = [0, 1, 2, *partitions]
    cuts = sorted(data.draw(st.lists(st.integers(3, len(every)), max_size=4)))
    definition = TimeDefinition(size=1, advance=1, grace=0)

    def order(cuts: list[int]) -> list[int]:
        came = arrived(every, at[:3] + list(_taken(at[3:], len(records))), cuts)
        return [record.offset for _, record in merged_in(came, len(cuts) + 1, definition)]

    assert order(cuts) == order([])


def _taken(values: Sequence[int], number: int) -> Iterator[int]:
    return (value for value, _ in zip(cycle(values), range(number), strict=False))
