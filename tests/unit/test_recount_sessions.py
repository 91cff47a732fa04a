"""The recount of sessions, without Spark, against the oracle's sessions."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given

from tests.support.oracle.windows import SessionDefinition, close_times_met, lateness, windows_after
from tests.support.radix_batches import with_sort_key
from tests.support.spark_cases import PROPERTY
from tests.support.strategies import ArrivalsOf, arrivals_of, session_definitions
from windows_pipeline.checks.recounts.session_kernel import session_recount

SCHEMA = pa.schema(
    [
        ("_computed_day", pa.int32()),
        ("key", pa.string()),
        ("_event_time_ms", pa.int64()),
        ("_close_time_ms", pa.int64()),
        ("_is_new", pa.bool_()),
        ("is_window", pa.bool_()),
        ("_window_end_ms", pa.int64()),
        ("arrival_unit", pa.int64()),
        ("source_partition", pa.string()),
        ("offset", pa.int64()),
    ]
)


def rows_of(case: ArrivalsOf[SessionDefinition], *, shown: bool) -> list[dict[str, Any]]:
    """The records by key in the order of arrival, and the oracle's sessions if `shown`."""
    met = close_times_met(case.records, case.definition)
    rows: list[dict[str, Any]] = [
        {
            "key": record.key, "_event_time_ms": record.event_time,
            "_close_time_ms": int(met[record.id]),
            "_is_new": record.arrival_unit == case.arrival_units - 1,
            "is_window": False, "arrival_unit": record.arrival_unit, "source_partition": "0",
            "offset": record.offset,
        }
        for record in sorted(case.records, key=lambda record: record.id)
    ]  # fmt: skip
    if shown:
        rows += [
            {"key": window.key, "_window_end_ms": window.end, "is_window": True}
            for window in windows_after(case.records, case.arrival_units - 1, case.definition)
        ]
    rows.sort(key=lambda row: (row["key"] is not None, row["key"] or "", not row["is_window"]))
    return [{"_computed_day": 0, **row} for row in rows]


def recount(rows: list[dict[str, Any]], gap_ms: int) -> list[dict[str, Any]]:
    batch = with_sort_key(pa.RecordBatch.from_pylist(rows, SCHEMA), ["_computed_day", "key"])
    return [row for found in session_recount(gap_ms)(iter([batch])) for row in found.to_pylist()]


@PROPERTY
@given(arrivals_of(session_definitions, source_partitions=1))
def test_sessions_are_recounted_as_the_oracle_makes_them(
    case: ArrivalsOf[SessionDefinition],
) -> None:
    """Rules D1, D2 and A5: each session's records, and how many new ones it counts."""
    rows = recount(rows_of(case, shown=True), case.definition.gap)
    found = {
        (row["key"], row["_window_end_ms"]): (
            row["recount_first_ms"], row["recount_last_ms"], row["recount"], row["same_end"]
        )
        for row in rows
        if row["is_window"]
    }  # fmt: skip
    windows = windows_after(case.records, case.arrival_units - 1, case.definition)
    assert found == {
        (window.key, window.end): (window.start, window.end, len(window.records), 1)
        for window in windows
    }
    for row in rows:
        apart = row["previous_end_ms"] is None or row["beyond_grace"] > 0
        if row["is_window"] and not apart:
            assert row["recount_first_ms"] - row["previous_end_ms"] > case.definition.gap
    late = lateness(case.records, case.definition)
    new = [record for record in case.records if record.arrival_unit == case.arrival_units - 1]
    assert sum(row["counted"] or 0 for row in rows) == sum(record.id not in late for record in new)


@PROPERTY
@given(arrivals_of(session_definitions, source_partitions=1))
def test_records_that_no_session_holds_are_returned(case: ArrivalsOf[SessionDefinition]) -> None:
    """Rule A5: every new record that is not late, with the end of its session."""
    rows = recount(rows_of(case, shown=False), case.definition.gap)
    assert all(row["counted"] in (None, 0) for row in rows)
    found = [
        (row["key"], row["_event_time_ms"], row["last_instant_ms"])
        for row in rows
        if row["counted"] is None
    ]
    assert sorted(map(repr, found)) == sorted(
        repr((record.key, record.event_time, window.end))
        for window in windows_after(case.records, case.arrival_units - 1, case.definition)
        for record in window.records
        if record.arrival_unit == case.arrival_units - 1
    )
