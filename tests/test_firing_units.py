"""The firings that each unit brings, from what it reads of earlier ones (rules E2, E4, H1)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from engine_runs import PROPERTY
from firing_runs import Records, policies, record_lists, spec_of, trigger_of
from oracle_firings import Policy, firings
from windows_pipeline.aggregates import Aggregate, Function
from windows_pipeline.engine.firing_kernel import FiringKernel, FiringTarget
from windows_pipeline.engine.rises import Rises
from windows_pipeline.engine.timeline import (
    NEVER_MS,
    Arrival,
    Read,
    build_timeline,
    close_ms,
    reads_from,
)
from windows_pipeline.engine.unit_windows import reach_ms
from windows_pipeline.windows import TimeWindows

FIRST_DAY = date(2026, 11, 1)
LISTED = Aggregate("listed", Function.COLLECT_LIST, "number")
ARRIVAL = ["unit", "number"]


def units_of(records: Records, cuts: list[int]) -> list[int]:
    """The unit of each record; cuts at one place make an empty unit."""
    return [sum(cut <= number for cut in cuts) for number in range(len(records))]


def read(
    records: Records, units: list[int], reads: list[Read], target: int
) -> list[dict[str, Any]]:
    """What the pipeline reads for a unit, with the stream time that each record met."""
    from_ms = {(one.unit - FIRST_DAY).days: one.from_ms for one in reads}
    rows = []
    stream_time = NEVER_MS
    for number, (key, time) in enumerate(records):
        stream_time = max(stream_time, time)
        unit = units[number]
        if unit in from_ms and (unit == target or time >= from_ms[unit]):
            row = {"target": target, "key": key, "event_time_ms": time, "unit": unit}
            row |= {"stream_time_ms": stream_time, "number": number, "is_new": unit == target}
            rows.append(row)
    return rows


def fired(spec: TimeWindows, policy: Policy, rows: list[dict[str, Any]]) -> Iterator[Any]:
    """The kernel's firings of one target."""
    by_arrival = sorted(rows, key=lambda row: (row["stream_time_ms"], row["unit"], row["number"]))
    first: dict[int, dict[str, Any]] = {}
    for row in by_arrival:
        first.setdefault(row["stream_time_ms"], row)
    risen = list(first.values())
    at = pa.Table.from_pylist([{name: row[name] for name in ARRIVAL} for row in risen])
    rises = Rises(
        np.array([*first], np.int64),
        np.array([row.get("is_new", True) for row in risen], np.bool_),
        at,
    )
    by_key = sorted(by_arrival, key=lambda row: (row["key"] is not None, row["key"] or ""))
    target = FiringTarget(spec, trigger_of(policy))
    number = rows[0]["target"]
    kernel = FiringKernel({number: target}, {number: rises}, ["key"], ARRIVAL, [LISTED])
    types = dict.fromkeys(by_key[0], pa.int64())
    types |= {"target": pa.int32(), "key": pa.string(), "is_new": pa.bool_()}
    schema = pa.schema([(name, types[name]) for name in by_key[0]])
    for batch in kernel(iter([pa.RecordBatch.from_pylist(by_key, schema)])):
        for row in batch.to_pylist():
            ids = (row["window_start_ms"], row["window_end_ms"], row["firing_id"], row["reason"])
            held = (tuple(sorted(row["listed"])), row["is_final"])
            yield row["after_unit"], row["after_number"], row["key"], *ids, row["cause"], *held


@given(
    record_lists(),
    policies().filter(lambda policy: not policy.gap and not policy.as_in_flink),
    st.lists(st.integers(0, 40), max_size=4).map(sorted),
)
@PROPERTY
def test_each_unit_tells_its_own(records: Records, policy: Policy, cuts: list[int]) -> None:
    """Numbers go on; asked for the earlier ones too, those of windows that were open are there."""
    policy = policy._replace(input_ends=False)
    spec = spec_of(policy)
    assert isinstance(spec, TimeWindows)
    units = units_of(records, cuts)
    expected = [
        (units[f.after], f.after, f.key, f.start, f.end, f.id, f.reason,
         "RECORD" if f.cause == "record" else "STREAM_TIME", f.records, f.is_final)
        for f in firings(records, policy)
        if f.after is not None
    ]  # fmt: skip
    log = [
        Arrival(
            FIRST_DAY + timedelta(days=unit),
            "0" if unit in units else None,
            max((t for (_, t), of in zip(records, units, strict=True) if of == unit), default=None),
        )
        for unit in range(len(cuts) + 1)
    ]
    timeline = build_timeline(log, FIRST_DAY)
    for unit in timeline.units:
        target = (unit.day - FIRST_DAY).days
        close_before_ms = close_ms(unit.in_force_before_ms, spec.close_delay_ms)
        from_ms = max(close_before_ms - reach_ms(spec), NEVER_MS)
        rows = read(records, units, reads_from(timeline, {unit.day: from_ms}), target)
        own = [row for row in expected if row[0] == target]
        assert sorted(fired(spec, policy, rows) if rows else [], key=repr) == sorted(own, key=repr)
        for row in rows:
            del row["is_new"]
        every = fired(spec, policy, rows) if rows else []
        still_open = [row for row in every if row[4] > close_before_ms]
        so_far = [row for row in expected if row[0] <= target and row[4] > close_before_ms]
        assert sorted(still_open, key=repr) == sorted(so_far, key=repr)
