"""Random firings through the compiled code and through the oracle, in one form."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from tests.support.oracle.arrival import Position, Record, frontier_after
from tests.support.oracle.definitions import Definition
from tests.support.oracle.firings import Firing, Key, Policy
from windows_pipeline.engine.firings.watermark_steps import Advances
from windows_pipeline.kernels.firings.find import Arrived, find_firings
from windows_pipeline.kernels.firings.window_state import FiringReason
from windows_pipeline.kernels.time import END_OF_INPUT_MS
from windows_pipeline.tuning import TUNING, Tuning
from windows_pipeline.windows import FiringWindows, SessionWindows, SlidingWindows, TimeWindows
from windows_pipeline.windows.firing.triggers import Trigger

Records = Sequence[tuple[Key, int]]


def spec_of(policy: Policy) -> FiringWindows:
    grace_ms = policy.out_of_orderness + policy.lateness
    if policy.difference:
        first = policy.first_start
        return SlidingWindows(policy.difference, grace_ms, first, policy.emit_empty)
    if policy.gap:
        return SessionWindows(policy.gap, grace_ms)
    return TimeWindows(policy.size, policy.advance, grace_ms)


def trigger_of(policy: Policy) -> Trigger:
    return Trigger(
        early_every_records=policy.every_n or None,
        early_every_ms=policy.interval or None,
        late=policy.late,
        discards=policy.discarding,
        out_of_orderness_ms=policy.out_of_orderness,
        as_in_flink=policy.as_in_flink,
        also_final=policy.final and not policy.final_only,
    )


def advances_of(times: np.ndarray, grid_ms: int, *, input_ends: bool) -> Advances:
    """The watermark advances of one partition's records, by the records' numbers."""
    stream_time = np.maximum.accumulate(times)
    first = np.unique(stream_time // grid_ms, return_index=True)[1]
    numbers = [int(number) for number in first]
    advanced_ms = stream_time[first]
    if input_ends:
        advanced_ms, numbers = np.append(advanced_ms, END_OF_INPUT_MS), [*numbers, None]  # type: ignore[list-item]
    at = pa.table({"offset": pa.array(numbers, pa.int64())})
    return Advances(advanced_ms, np.ones(len(advanced_ms), np.bool_), at)


def arrived_of(
    records: Records, policy: Policy, grid_ms: int = 1
) -> tuple[Arrived, Advances, list[Key], np.ndarray]:
    """The records by key as the engine takes them, the advances, the keys, and their numbers."""
    times = np.array([time for _, time in records], np.int64)
    advances = advances_of(times, grid_ms, input_ends=policy.input_ends)
    keys = sorted({key for key, _ in records}, key=lambda key: (key is not None, key or ""))
    of_key = [[n for n, (k, _) in enumerate(records) if k == key] for key in keys]
    number = np.array([n for numbers in of_key for n in numbers], np.int64)
    stream_time = np.maximum.accumulate(times)[number]
    arrived = Arrived(
        np.cumsum([0, *map(len, of_key)]),
        times[number],
        stream_time,
        advances.entry(stream_time, pa.table({"offset": number})),
        advances.stream_time_ms,
    )
    return arrived, advances, keys, number


def fired(
    records: Records, policy: Policy, grid_ms: int = 1, tuning: Tuning = TUNING
) -> list[Firing]:
    """The engine's firings."""
    arrived, advances, keys, number = arrived_of(records, policy, grid_ms)
    found: list[Firing] = []
    spec, trigger = spec_of(policy), trigger_of(policy)
    for part in find_firings(spec, trigger, arrived, tuning=tuning):
        windows = part.panes.windows
        for f in range(len(part.id)):
            chain = part.panes.starts[windows.group[f]]
            shown = windows.enter_order[chain : windows.entered[f]]
            shown = shown[shown >= windows.left[f]]
            after = int(part.after[f])
            met = (advances.stream_time_ms if part.by_advance[f] else arrived.stream_time_ms)[after]
            last = bool(met == END_OF_INPUT_MS)
            at = advances.at["offset"][after].as_py() if part.by_advance[f] else int(number[after])
            found.append(
                Firing(
                    keys[part.group[f]],
                    int(part.start_ms[f]),
                    int(part.end_ms[f]),
                    int(part.id[f]),
                    FiringReason(part.reason[f]).name,
                    "stream time" if part.by_advance[f] else "record",
                    at,
                    np.inf if last else int(met),
                    bool(part.is_final[f]),
                    tuple(sorted(number[part.record[shown]].tolist())),
                )
            )
    return sorted(found, key=lambda f: (f.key is not None, f.key or "", *f[1:4]))


def stream_times(records: Sequence[Record]) -> list[int]:
    """Rule A2: of each record's own source partition."""
    so_far: dict[int, int] = {}
    found = []
    for record in records:
        known = so_far.get(record.source_partition, record.event_time)
        so_far[record.source_partition] = max(known, record.event_time)
        found.append(so_far[record.source_partition])
    return found


def merged_in(
    records: Sequence[Record], arrival_units: int, definition: Definition
) -> list[tuple[int, Record]]:
    """Rules A1, A4: records in the order of the merge, each with the arrival unit that merged it.

    A record of a source partition that resumes meets at least the watermark, and does
    not come before records that are merged already.
    """
    after = [
        frontier_after(records, arrival_unit, definition)
        for arrival_unit in range(-1, arrival_units)
    ]
    placed = []
    for record, stream_time in zip(records, stream_times(records), strict=True):
        before = after[record.arrival_unit]
        own = Position(max(stream_time, before.stream_time), record.source_partition)
        position = max(own, before)
        held = (
            arrival_unit
            for arrival_unit in range(record.arrival_unit, arrival_units)
            if position <= after[arrival_unit + 1]
        )
        arrival_unit = next(held, None)
        if arrival_unit is not None:
            placed.append((position, record.id, arrival_unit, record))
    return [
        (arrival_unit, record)
        for *_, arrival_unit, record in sorted(placed, key=lambda row: row[:2])
    ]


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Any policy of any kind of window."""
    kind = draw(st.sampled_from(["time", "session", "sliding"]))
    early = draw(st.sampled_from(["none", "n", "interval"]))
    is_time, is_sliding = kind == "time", kind == "sliding"
    return Policy(
        size=draw(st.integers(1, 20)) if is_time else 0,
        advance=draw(st.integers(1, 12)) if is_time else 0,
        gap=draw(st.integers(1, 10)) if kind == "session" else 0,
        difference=draw(st.integers(1, 12)) if is_sliding else 0,
        first_start=draw(st.none() | st.integers(-20, 20)) if is_sliding else None,
        emit_empty=is_sliding and draw(st.booleans()),
        lateness=draw(st.sampled_from([0, 1, 5, 30])),
        out_of_orderness=draw(st.sampled_from([0, 0, 1, 5, 20])),
        every_n=draw(st.integers(1, 4)) if early == "n" else 0,
        interval=draw(st.integers(1, 12)) if early == "interval" else 0,
        late=draw(st.booleans()),
        discarding=draw(st.booleans()),
        as_in_flink=not is_sliding and draw(st.booleans()),
        input_ends=draw(st.booleans()),
    )


def record_lists() -> st.SearchStrategy[list[tuple[Key, int]]]:
    """Records about in order, of few keys, some far behind or ahead."""
    jumps = st.integers(-4, 6) | st.integers(-40, 40)
    return st.lists(
        st.tuples(st.sampled_from([None, "a", "b"]), jumps), min_size=1, max_size=40
    ).map(_walked)


def _walked(steps: list[tuple[Key, int]]) -> list[tuple[Key, int]]:
    records, now = [], 0
    for key, step in steps:
        now = max(now, now + step)
        records.append((key, now + min(step, 0)))
    return records
