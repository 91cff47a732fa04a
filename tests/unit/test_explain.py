"""`WindowStore.explain` says what became of a record, without Spark: as the oracle counts."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.oracle.windows import late_records, windows_after
from tests.support.pipeline_texts import changed, load_text, of_definition, of_kind
from tests.support.strategies import (
    OF_KIND,
    ArrivalsOf,
    arrivals_of,
)
from tests.support.written_cases import EPOCH, FIRST_DAY, MS, write_case
from tests.support.written_flights import FILTERED, MINUTE, NOON, OWN_KEY, flights, window
from tests.support.written_rows import passing_rows
from tests.support.written_tables import write_rows
from windows_pipeline.query import WindowStore
from windows_pipeline.query.records.explain import Explainer
from windows_pipeline.query.records.explained import Explanation, Fate
from windows_pipeline.query.tables.local import UnreadableTableError


@pytest.mark.parametrize("kind", OF_KIND)
@settings(max_examples=8, deadline=None)
@given(st.data())
def test_each_record_is_explained_as_the_oracle_counts_it(kind: str, data: st.DataObject) -> None:
    """Rules A5, B5 and D2: the windows that count it as they stand, or the reason."""
    case: ArrivalsOf[Any] = data.draw(
        arrivals_of(OF_KIND[kind], source_partitions=2).filter(
            lambda each: each.definition.idle_after is None
        )
    )
    with TemporaryDirectory() as folder:
        pipeline = load_text(Path(folder), of_definition(case.definition))
        warehouse = f"{folder}/warehouse"
        write_case(pipeline, warehouse, case)
        explainer = Explainer(pipeline, "hourly", warehouse)
        standing = windows_after(case.records, case.arrival_units - 1, case.definition)
        late = {
            row.record: row
            for row in late_records(case.records, case.arrival_units, case.definition)
        }
        for record in case.records:
            day = FIRST_DAY + timedelta(days=record.arrival_unit)
            at = EPOCH + record.event_time * MS
            position = (str(record.source_partition), record.offset)
            (explained,) = (
                each
                for each in explainer.at(record.key, at, at, 100).records
                if (each.arrival_unit, each.source_partition, each.offset) == (day, *position)
            )
            assert explainer.arrived(*position, day, 1).records == (explained,)
            counting = sorted(
                (each.start, each.end)
                for each in standing
                if record.id in {one.id for one in each.records}
            )
            bounds = [((w.start - EPOCH) // MS, (w.end - EPOCH) // MS) for w in explained.windows]
            assert bounds == counting
            if record.id in late:
                assert explained.fate == late[record.id].reason
            else:
                assert explained.fate == (Fate.COUNTED if counting else Fate.PENDING)


def fates(found: Explanation) -> list[tuple[int, str, list[int]]]:
    """Offset, fate, and the minutes after noon at which windows start, of each record."""
    return [
        (each.offset, str(each.fate), [(one.start - NOON) // MINUTE for one in each.windows])
        for each in found.records
    ]


def test_a_record_has_its_windows_and_what_it_met(tmp_path: Path) -> None:
    store = flights(tmp_path).store
    found = store.explain("JFK", NOON + 30 * MINUTE)
    assert fates(found) == [(1, "counted", [-30, 0])]
    (record,) = found.records
    assert (record.reason, record.key) == ("2 windows count it", "JFK")
    assert (record.arrival_unit, record.source_partition) == (date(2013, 1, 1), "0")
    assert (record.stream_time, record.watermark) == (NOON + 30 * MINUTE, None)
    assert (record.close_time, record.behind_ms) == (NOON - 330 * MINUTE, 0)
    assert (record.values["carrier"], record.values["departed_at"]) == ("UA", record.event_time)
    (last,) = store.explain_arrival("0", 0, date(2013, 1, 2)).records
    assert last.watermark == NOON + 30 * MINUTE
    (behind,) = store.explain("LGA", NOON + 15 * MINUTE + timedelta(microseconds=7)).records
    assert (behind.behind_ms, behind.fate) == (15 * 60_000, "pending")


def test_records_of_a_time_or_an_offset_are_listed_up_to_a_limit(tmp_path: Path) -> None:
    store = flights(tmp_path).store
    found = store.explain("JFK", NOON, NOON + 60 * MINUTE)
    assert [each[0] for each in fates(found)] == [0, 1]
    few = store.explain("JFK", NOON, NOON + 60 * MINUTE, limit=1)
    assert ([each[0] for each in fates(few)], few.are_more) == ([0], True)
    assert len(store.explain_arrival("0", 0).records) == 2
    assert not found.are_more


def test_a_filter_lets_records_out(tmp_path: Path) -> None:
    """Rule A9: only Spark evaluates it, so a store without a session says so."""
    project = flights(tmp_path, FILTERED)
    store = WindowStore(project.pipeline, "hourly", project.warehouse, row_filter=passing_rows)
    out = store.explain("JFK", NOON)
    assert fates(out) == [(0, "filtered_out", [])]
    assert out.records[0].reason == "it does not pass the filter: dep_delay > 5"
    assert fates(store.explain("JFK", NOON + 30 * MINUTE)) == [(1, "counted", [-30, 0])]
    with pytest.raises(UnreadableTableError, match=r"only Spark evaluates a filter.*dep_delay > 5"):
        project.store.explain("JFK", NOON)
    assert project.store.explain("EWR", NOON).records == ()


def test_records_are_found_by_the_key_of_the_definition(tmp_path: Path) -> None:
    """Rule A9."""
    store = flights(tmp_path, OWN_KEY).store
    found = store.explain(("UA", "JFK"), NOON)
    assert [each[:2] for each in fates(found)] == [(0, "counted")]
    assert found.records[0].key == {"carrier": "UA", "origin": "JFK"}
    assert store.explain({"origin": "JFK", "carrier": "AA"}, NOON).records == ()


def test_a_late_record_has_its_reason(tmp_path: Path) -> None:
    project = flights(tmp_path)
    late = project.windows.late_records
    listed = {
        "arrival_unit": date(2013, 1, 2),
        "record_arrival_unit": date(2013, 1, 1),
        "source_partition": "0",
        "offset": 0,
        "key": "JFK",
        "event_time": NOON,
    }
    write_rows(late, [{**listed, "reason": "outside_windows"}, {**listed, "offset": 7}])
    assert fates(project.store.explain("JFK", NOON)) == [(0, "outside_windows", [])]


def test_a_day_that_is_not_computed_waits(tmp_path: Path) -> None:
    """Rules A2 and A8: no window counts its records yet."""
    project = flights(tmp_path, computed=1)
    (record,) = project.store.explain("JFK", NOON + 1_440 * MINUTE).records
    assert record.fate == Fate.WAITING
    assert record.reason == (
        "arrival day 2013-01-02 is ingested, and its windows are not computed yet"
    )
    beyond = {"arrival_unit": date(2013, 1, 5), "source_partition": "0", "offset": 0}
    record_of = {"key": "EWR", "event_time": NOON, "running_max": NOON}
    write_rows(project.source.raw_events, [{**beyond, **record_of}])
    found = project.store.explain("EWR", NOON)
    (record,) = found.records
    assert (record.fate, record.stream_time) == (Fate.WAITING, None)
    assert "2013-01-05 is not ingested to the end, or a missing day blocks it" in record.reason
    assert (found.through, found.waits_for) == (date(2013, 1, 2), date(2013, 1, 3))


def test_a_record_that_is_not_there_may_be_rejected_or_in_a_file_left_out(tmp_path: Path) -> None:
    """Rules A6 and A8."""
    text = changed("  format: jsonl", "  format: jsonl\n  on_bad_file: skip")
    project = flights(tmp_path, text)
    store, tables = project.store, project.source
    day = {"arrival_unit": date(2013, 1, 1), "file": "a.jsonl"}
    texts = {"malformed": '{"origin": "EWR"', "wrong_type: flight": "EWR,2013-01-01T12:00:03Z,x"}
    write_rows(
        tables.rejected_records,
        [{**day, "reason": reason, "original": text} for reason, text in texts.items()]
        + [{**day, "reason": "null_key", "original": None}],
    )
    write_rows(tables.quarantined_files, [{**day, "cause": "is damaged", "fix": "land it again"}])
    found = store.explain("EWR", NOON)
    assert found.records == ()
    assert [(each.reason, each.names_time) for each in found.rejected] == [
        ("wrong_type: flight", True)
    ]
    other = store.explain("EWR", NOON + 90 * MINUTE)
    assert {each.reason for each in other.rejected} == set(texts)
    assert [(each.file, each.cause) for each in found.skipped] == [("a.jsonl", "is damaged")]
    assert store.explain("ZZZ", NOON).rejected == ()


@pytest.mark.parametrize("instant", [datetime(2013, 1, 1), "2013-01-01"])
def test_an_instant_has_a_zone(tmp_path: Path, instant: Any) -> None:
    store = flights(tmp_path).store
    with pytest.raises(ValueError, match="event_time: must be"):
        store.explain("JFK", instant)
    with pytest.raises(ValueError, match="key: must be a key of type string"):
        store.explain(7, NOON)


def test_of_windows_of_rows_a_record_has_its_own(tmp_path: Path) -> None:
    """Rule F5: the window is stored once it is final."""
    text = of_kind("kind: slide_rows\n    preceding: 1 hour")
    store = flights(tmp_path, text, with_windows=False)
    own = {"event_time": NOON + 30 * MINUTE, "record_arrival_unit": date(2013, 1, 1)}
    row = {**window(text, -30), **own, "source_partition": "0", "offset": 1}
    others = [{**row, "offset": 7}, {**row, "event_time": NOON + 31 * MINUTE}]
    write_rows(store.windows.keyed_windows, [row, *others])
    assert fates(store.store.explain("JFK", NOON + 30 * MINUTE)) == [(1, "counted", [-30])]
    (record,) = store.store.explain("JFK", NOON).records
    assert (record.fate, record.windows) == (Fate.PENDING, ())
    assert record.reason.endswith("so far; the window of a row is stored once it is final")
