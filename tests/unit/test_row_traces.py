"""The records of windows of rows are found without Spark, as the oracle holds them (rule F5)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.alert_ids import digest
from tests.support.command_line import Command, call_alone
from tests.support.oracle.keys import asked_for, seen_by
from tests.support.oracle.windows import Record
from tests.support.written_cases import FIRST_DAY, MS
from tests.support.written_rows import (
    BY_ARRIVAL,
    KEY_OF,
    KEYED,
    KINDS,
    finals_of,
    instant,
    passes,
    passing_rows,
    pipeline_of,
    record_of,
    row_of,
    stored_key,
    write,
)
from tests.support.written_tables import write_rows
from windows_pipeline.query import WindowStore
from windows_pipeline.storage.catalog import specs_of


@st.composite
def arrived(draw: st.DrawFn) -> list[Record]:
    """Records of two days, near each other in time and out of order; another day closes all."""
    event = st.tuples(
        st.sampled_from(("a", None, "b")),
        st.integers(0, 8),
        st.sampled_from(("UA", None)),
        st.sampled_from((9.0, 1.0, None)),
    )
    days = draw(st.lists(st.lists(event, min_size=5, max_size=14), min_size=2, max_size=2))
    flown = [
        record_of(arrival_unit, offset, key, 10 * arrival_unit + offset + jitter, carrier, delay)
        for arrival_unit, events in enumerate(days)
        for offset, (key, jitter, carrier, delay) in enumerate(events)
    ]
    return [*flown, record_of(len(days), 0, "c", 1_000)]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=6, deadline=None)
@given(records=arrived(), keyed=st.sampled_from(list(KEYED)))
def test_the_records_and_neighbours_of_each_row_are_the_oracles(
    kind: str, records: list[Record], keyed: str
) -> None:
    """Rules F1, F2, F5 and A9: late records left out, by each order, of each kind of key."""
    arrival_units = records[-1].arrival_unit + 1
    is_in = passes if keyed == "filtered" else lambda _: True
    finals = asked_for(finals_of(seen_by(records, KEY_OF[keyed], is_in), arrival_units, kind))
    with TemporaryDirectory() as folder:
        pipeline = pipeline_of(Path(folder), kind, keyed)
        warehouse = f"{folder}/warehouse"
        write(pipeline, warehouse, records, finals, keyed)
        store = WindowStore(pipeline, "hourly", warehouse, row_filter=passing_rows)
        for final in finals:
            key = stored_key(keyed, final.key)
            (window,) = (
                each
                for each in store.bounded(key, instant(final.end), instant(final.end))
                if row_of(each) == final.row
            )
            trace = store.trace(window)
            listed = [
                ((row["arrival_unit"] - FIRST_DAY).days, row["offset"])
                for row in trace.records.to_pylist()
            ]
            in_order = sorted(final.held, key=lambda each: (each.event_time, each.id))
            assert listed == [(each.arrival_unit, each.offset) for each in in_order]
            assert trace.closed_at_ms is not None
            assert trace.closed_at_ms > final.end
            assert trace.row["offset"].to_pylist() == [final.row[2]]
            order = slice(1, None) if kind in BY_ARRIVAL else slice(None)
            rows = sorted((each.row for each in finals if each.key == final.key), key=_part(order))
            at = rows.index(final.row)
            beside = (rows[at - 1 : at], rows[at + 1 : at + 2])
            assert [
                [] if each is None else [row_of(each)] for each in (trace.before, trace.after)
            ] == [*beside]


def _part(order: slice) -> Any:
    return lambda row: row[order]


@pytest.fixture
def project(empty_project: Path, command: Command) -> Command:
    """Calls `trace` in a project of rows of which two happened at once, one of them corrected."""
    pipeline = pipeline_of(empty_project / "pipelines", "so_far", "source")
    warehouse = str(empty_project / "warehouse")
    times = [(0, 0), (0, 5), (0, 5), (0, 7), (1, 1_000)]
    records = [
        record_of(arrival_unit, offset, "a", time)
        for offset, (arrival_unit, time) in enumerate(times)
    ]
    finals = finals_of(records, 2, "so_far")
    write(pipeline, warehouse, records, finals, "source")
    rows = [
        {
            "arrival_unit": FIRST_DAY + timedelta(days=1),
            "key": "a",
            "window_start": instant(0),
            "window_end": instant(5),
            "event_time": instant(5),
            "record_arrival_unit": FIRST_DAY,
            "source_partition": "0",
            "offset": offset,
        }
        for offset in (1, 2)
    ]
    tables = specs_of(pipeline, warehouse).of("hourly")
    result = {"record_count": 3, "failed": []}
    corrected = {"correction": 1, "change": "changed", "cause": "a file"}
    write_rows(tables.corrections, [{**rows[1], **corrected, "old": result, "new": result}])
    write_rows(
        tables.alerts, [{**row, "rule": "busy", "episode_start": instant(0)} for row in rows]
    )
    return partial(command, "trace", "flights")


def test_rows_whose_windows_end_at_once_are_named_by_their_offset(
    project: Command,
) -> None:
    """Rule F5: a row names a result, and its bounds alone may not."""
    at = "1970-01-01 00:00:00.005"
    status, said = project("a", at)
    assert status == 2
    plain = said.replace(" │ │ ", " ")
    assert f"must name one window, and 2 end or start at {at}; write one of these ends, or" in plain
    assert "of the row at 1970-01-01 00:00:00.005, offset 2 of 2013-01-01, source part" in plain
    day = ("--day", "2013-01-01", "--partition", "0", "--json")
    for offset, counted, corrections in ((1, [0, 1, 2], 0), (2, [0, 1, 2], 1)):
        status, said = project("a", at, "--offset", str(offset), *day)
        assert status == 0, said
        found = json.loads(said)
        assert found["window"]["offset"] == offset
        assert [each["offset"] for each in found["records"]] == counted
        assert len(found["corrections"]) == corrections
        assert f"offset {offset - 1} of 2013-01-01" in found["before"]
        assert f"offset {offset + 1} of 2013-01-01" in found["after"]
    status, said = project("a", at, "--offset", "7")
    assert (status, "whose row has this offset, day and partition ends or starts" in said) == (
        2,
        True,
    )


def test_an_alert_of_a_row_leads_to_the_window_of_that_row(
    project: Command,
) -> None:
    """Rule F5: its id distinguishes rows whose windows have the same bounds."""
    first, end = "1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00.005Z"
    for offset in (1, 2):
        row = (end, "2013-01-01", "0", offset)
        of_row = digest(["flights", "hourly", "busy", ["a"], first, end, *row, None])
        status, said = project("--alert", of_row, "--json")
        assert status == 0, said
        found = json.loads(said)
        assert (found["alert"]["rule"], found["window"]["offset"]) == ("busy", offset)


def test_a_row_is_shown_without_spark_and_without_compiled_code(
    project: Command, tmp_path: Path
) -> None:
    """Rule E5: as windows of other kinds are."""
    status, said = project("a", "1970-01-01 00:00:00.007")
    assert status == 0, said
    printed = call_alone(tmp_path, "trace", "flights", "a", "1970-01-01 00:00:00.007")
    assert "final: arrival day 2013-01-02 moved the close time to 1970-01-01 00:00:00.994" in said
    assert "the window before" in printed
    assert "the window after" not in printed


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--day", "2013-01-01"), "--day and --partition go with --offset; name it, too"),
        (("--offset", "1", "--day", "soon"), "--day: 'soon' is no day"),
    ],
)
def test_a_row_that_is_half_named_is_refused(
    project: Command, args: Sequence[str], said: str
) -> None:
    status, printed = project("a", "1970-01-01 00:00:00.007", *args)
    assert (status, said in printed.replace(" │ │ ", " ")) == (2, True), printed


def test_only_final_windows_of_the_store_are_traced(tmp_path: Path) -> None:
    """Of another store's window the table may have no row."""
    pipeline, warehouse = pipeline_of(tmp_path, "so_far", "source"), str(tmp_path / "warehouse")
    records = [record_of(0, 0, "a", 0), record_of(1, 0, "a", 1_000)]
    write(pipeline, warehouse, records, finals_of(records, 2, "so_far"), "source")
    write_rows(specs_of(pipeline, warehouse).of("hourly").keyed_windows, [])
    store = WindowStore(pipeline, "hourly", warehouse)
    (window,) = store.fetch("a")
    with pytest.raises(
        ValueError, match=r"trace does not fit .*keyed_windows.*use the table final"
    ):
        WindowStore(pipeline, "hourly", warehouse, "current").trace(window)
    with pytest.raises(ValueError, match=r"window: must be of .* at version 0, and no window"):
        store.trace(replace(window, end=window.end + MS))
