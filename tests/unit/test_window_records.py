"""The records of a final window are found without Spark, as the oracle counts them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.oracle.arrival import close_times_met
from tests.support.oracle.definitions import SessionDefinition
from tests.support.oracle.windows import (
    Record,
    SlidingDefinition,
    Window,
    windows_after,
)
from tests.support.pipeline_texts import load_text, of_definition
from tests.support.strategies import (
    OF_KIND,
    ArrivalsOf,
    arrivals_of,
)
from tests.support.written_cases import EPOCH, FIRST_DAY, MS, write_case
from tests.support.written_flights import FILTERED, NOON, OWN_KEY, flights
from tests.support.written_rows import passing_rows
from tests.support.written_tables import write_rows
from windows_pipeline.config import Pipeline
from windows_pipeline.query import WindowStore
from windows_pipeline.query.records.definition_rows import DefinitionRows
from windows_pipeline.query.records.window_records import records_of_window
from windows_pipeline.query.tables.local import UnreadableTableError
from windows_pipeline.storage.catalog import specs_of


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
    records, closed_at_ms = records_of_window(
        DefinitionRows(pipeline, "hourly", warehouse), stored, keys
    )
    assert closed_at_ms is not None
    rows: list[dict[str, Any]] = records.to_pylist()
    return rows


@pytest.mark.parametrize("kind", OF_KIND)
@settings(max_examples=20, deadline=None)
@given(st.data())
def test_the_records_of_each_closed_window_are_the_oracles(kind: str, data: st.DataObject) -> None:
    """Rules A5, B5 and D2: late and partly late records, and sessions around closed ones."""
    case: ArrivalsOf[Any] = data.draw(
        arrivals_of(OF_KIND[kind], source_partitions=2).filter(
            lambda each: each.definition.idle_after is None
        )
    )
    assert_records_are_the_oracles(case)


def test_a_session_is_joined_in_the_order_of_stream_time() -> None:
    """Rules A1, A4, D2: the order is not that of close times, which a watermark may raise.

    When the record at 27 comes, the watermark is 28 already: its partition is new.
    """
    values: dict[str, Any] = {"whole": 0, "real": 0.0, "amount": Decimal("0.00"), "name": ""}
    arrived = [(0, 0, 0, 28), (1, 1, 0, 27), (1, 1, 1, 30), (2, 0, 1, 26), (2, 0, 2, 30)]
    records = [
        Record(arrival_unit, partition, offset, "a", time, values)
        for arrival_unit, partition, offset, time in arrived
    ]
    assert_records_are_the_oracles(ArrivalsOf(records, 3, SessionDefinition(1, 0)))


def assert_records_are_the_oracles(case: ArrivalsOf[Any]) -> None:
    with TemporaryDirectory() as folder:
        pipeline = load_text(Path(folder), of_definition(case.definition))
        warehouse = f"{folder}/warehouse"
        write_case(pipeline, warehouse, case)
        store = WindowStore(pipeline, "hourly", warehouse)
        met = close_times_met(case.records, case.definition)
        for window in windows_after(case.records, case.arrival_units - 1, case.definition):
            if not window.closed:
                continue
            rows = found(pipeline, warehouse, window, store)
            in_order = sorted(window.records, key=of_arrival)
            assert [
                ((row["arrival_unit"] - FIRST_DAY).days, row["source_partition"], row["offset"])
                for row in rows
            ] == [(each.arrival_unit, str(each.source_partition), each.offset) for each in in_order]
            for row, record in zip(rows, in_order, strict=True):
                close = (row["close_time"] - EPOCH) // MS
                # Before the first record of every source partition no close time is known.
                assert close == met[record.id] or met[record.id] == float("-inf")
                assert row["behind_ms"] == (row["stream_time"] - row["event_time"]) // MS >= 0


def of_arrival(record: Record) -> tuple[int, int, int, int]:
    return (record.event_time, record.arrival_unit, record.source_partition, record.offset)


def test_a_record_that_the_log_lacks_is_in_no_window(tmp_path: Path) -> None:
    """Rule A2: a day is there once its row of the log is."""
    records = [Record(0, 0, 0, "a", 0, {}), Record(0, 0, 1, "a", 10, {})]
    case = ArrivalsOf(records, 1, SlidingDefinition(5, 0))
    pipeline = load_text(tmp_path, of_definition(case.definition))
    warehouse = str(tmp_path / "warehouse")
    write_case(pipeline, warehouse, case)
    extra = {"source_partition": "0", "key": "a", "event_time": EPOCH, "running_max": EPOCH}
    write_rows(
        specs_of(pipeline, warehouse).raw_events,
        [{"arrival_unit": date(2013, 1, 5), "offset": 0, **extra}],
    )
    store = WindowStore(pipeline, "hourly", warehouse)
    (window, *_) = windows_after(case.records, 0, case.definition)
    assert [row["offset"] for row in found(pipeline, warehouse, window, store)] == [0]


@pytest.mark.parametrize(
    ("text", "key", "counted"),
    [(FILTERED, "JFK", [1]), (OWN_KEY, ("UA", "JFK"), [0, 1])],
    ids=["filter", "key"],
)
def test_records_are_those_of_the_definitions_key_and_filter(
    tmp_path: Path, text: str, key: object, counted: list[int]
) -> None:
    """Rule A9."""
    project = flights(tmp_path, text)
    store = WindowStore(project.pipeline, "hourly", project.warehouse, "current")
    window = store.get(key, NOON)
    assert window is not None
    keys = store.key.one(key, "key")
    where = (project.pipeline, "hourly", project.warehouse)
    records, _ = records_of_window(DefinitionRows(*where, passing_rows), window, keys)
    assert records["offset"].to_pylist() == counted
    if text == FILTERED:
        with pytest.raises(UnreadableTableError, match=r"WindowStore\.on\(spark, \.\.\.\)"):
            records_of_window(DefinitionRows(*where), window, keys)
