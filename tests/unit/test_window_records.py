"""The records of a final window are found without Spark, as the oracle counts them."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.oracle.arrival import close_times_met
from tests.support.oracle.windows import (
    Record,
    SlidingDefinition,
    Window,
    keyed_windows,
    windows_after,
)
from tests.support.pipeline_texts import load_text, of_definition
from tests.support.strategies import (
    ArrivalsOf,
    arrivals_of,
    forward_definitions,
    session_definitions,
    sliding_definitions,
    time_definitions,
)
from tests.support.written_tables import write_rows
from windows_pipeline.config import Pipeline
from windows_pipeline.query import WindowStore
from windows_pipeline.query.window_records import records_of_window
from windows_pipeline.storage.catalog import source_tables, window_tables

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MS = timedelta(milliseconds=1)
FIRST_DAY = date(2013, 1, 1)
DEFINITIONS: dict[str, tuple[Any, int]] = {
    "sliding": (sliding_definitions, 2),
    "hopping": (time_definitions, 2),
    "forward": (forward_definitions, 2),
    "session": (session_definitions, 1),
}
"""Definitions of a kind, and how many source partitions its pipelines may have."""


def write(pipeline: Pipeline, warehouse: str, case: ArrivalsOf[Any]) -> None:
    """Writes the records, the log and the final windows, by days."""
    source = source_tables(pipeline, warehouse)
    raw, log = [], []
    for unit in range(case.units):
        day = FIRST_DAY + timedelta(days=unit)
        latest: dict[int, int] = {}
        counts: dict[int, int] = defaultdict(int)
        for record in (each for each in case.records if each.unit == unit):
            partition = record.source_partition
            latest[partition] = max(latest.get(partition, record.event_time), record.event_time)
            counts[partition] += 1
            raw.append(
                {
                    "arrival_unit": day,
                    "source_partition": str(partition),
                    "offset": record.offset,
                    "key": record.key,
                    "event_time": EPOCH + record.event_time * MS,
                    "running_max": EPOCH + latest[partition] * MS,
                }
            )
        part = {"arrival_unit": day, "unit_rejected": 0}
        log += [
            {
                **part,
                "source_partition": str(of),
                "rows": counts[of],
                "max_event_time": EPOCH + time * MS,
            }
            for of, time in latest.items()
        ] or [{**part, "rows": 0}]
    write_rows(source.raw_events, raw, row_group_rows=2)
    write_rows(source.arrival_log, log)
    rows = keyed_windows(case.records, case.units, case.definition, {})
    write_rows(
        window_tables(pipeline, "hourly", warehouse).final_windows,
        [
            {
                "arrival_unit": FIRST_DAY + timedelta(days=row.unit),
                "key": row.key,
                "window_start": EPOCH + row.start * MS,
                "window_end": EPOCH + row.end * MS,
                "record_count": row.record_count,
            }
            for row in rows
            if row.closed
        ],
    )


def found(
    pipeline: Pipeline, warehouse: str, window: Window, store: WindowStore
) -> list[dict[str, Any]]:
    start = EPOCH + window.start * MS
    (stored,) = (
        each
        for each in store.holding(window.key, start)
        if (each.start, each.end) == (start, EPOCH + window.end * MS)
    )
    keys = store.key.one(window.key, "key")
    traced = records_of_window(pipeline, "hourly", warehouse, stored, keys)
    assert traced.closed_at_ms is not None
    rows: list[dict[str, Any]] = traced.records.to_pylist()
    return rows


@pytest.mark.parametrize("kind", DEFINITIONS)
@settings(max_examples=20, deadline=None)
@given(st.data())
def test_the_records_of_each_closed_window_are_the_oracles(kind: str, data: st.DataObject) -> None:
    """Rules A5, B5 and D2: late and partly late records, and sessions around closed ones."""
    definitions, partitions = DEFINITIONS[kind]
    case: ArrivalsOf[Any] = data.draw(
        arrivals_of(definitions, source_partitions=partitions).filter(
            lambda each: each.definition.idle_after is None
        )
    )
    with TemporaryDirectory() as folder:
        pipeline = load_text(Path(folder), of_definition(case.definition))
        warehouse = f"{folder}/warehouse"
        write(pipeline, warehouse, case)
        store = WindowStore(pipeline, "hourly", warehouse)
        met = close_times_met(case.records, case.definition)
        for window in windows_after(case.records, case.units - 1, case.definition):
            if not window.closed:
                continue
            rows = found(pipeline, warehouse, window, store)
            in_order = sorted(window.records, key=of_arrival)
            assert [
                ((row["arrival_unit"] - FIRST_DAY).days, row["source_partition"], row["offset"])
                for row in rows
            ] == [(each.unit, str(each.source_partition), each.offset) for each in in_order]
            for row, record in zip(rows, in_order, strict=True):
                close = (row["close_time"] - EPOCH) // MS
                # Before the first record of every source partition no close time is known.
                assert close == met[record.id] or met[record.id] == float("-inf")
                assert row["late_by_ms"] == (row["stream_time"] - row["event_time"]) // MS >= 0


def of_arrival(record: Record) -> tuple[int, int, int, int]:
    return (record.event_time, record.unit, record.source_partition, record.offset)


def test_a_record_that_the_log_lacks_is_in_no_window(tmp_path: Path) -> None:
    """Rule A2: a day is there once its row of the log is."""
    records = [Record(0, 0, 0, "a", 0, {}), Record(0, 0, 1, "a", 10, {})]
    case = ArrivalsOf(records, 1, SlidingDefinition(5, 0))
    pipeline = load_text(tmp_path, of_definition(case.definition))
    warehouse = str(tmp_path / "warehouse")
    write(pipeline, warehouse, case)
    extra = {"source_partition": "0", "key": "a", "event_time": EPOCH, "running_max": EPOCH}
    write_rows(
        source_tables(pipeline, warehouse).raw_events,
        [{"arrival_unit": date(2013, 1, 5), "offset": 0, **extra}],
    )
    store = WindowStore(pipeline, "hourly", warehouse)
    (window, *_) = windows_after(case.records, 0, case.definition)
    assert [row["offset"] for row in found(pipeline, warehouse, window, store)] == [0]
