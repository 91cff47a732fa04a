"""`fetch` lists the windows of a key, without Spark, as they stand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Command, call_alone
from tests.support.pipeline_texts import FLIGHTS, changed, load_text, of_kind
from tests.support.written_tables import Row, write_rows
from windows_pipeline.config import Pipeline
from windows_pipeline.storage.catalog import TableSpec, WindowTables, specs_of

NINE = datetime(2013, 3, 8, 9, tzinfo=UTC)


def tables(folder: Path, text: str = FLIGHTS) -> WindowTables[TableSpec]:
    pipeline: Pipeline = load_text(folder / "pipelines", text)
    return specs_of(pipeline, str(folder / "warehouse")).of("hourly")


def row(hour: int, key: Any = "JFK", **other: Any) -> Row:
    start = NINE + timedelta(hours=hour)
    return {
        "arrival_unit": date(2013, 3, 8),
        "key": key,
        "window_start": start,
        "window_end": start + timedelta(hours=1),
        "record_count": hour,
        "avg_dep_delay": 60.5,
        "failed": [],
        **other,
    }


@pytest.fixture
def fetch(command: Command) -> Command:
    return partial(command, "fetch", "flights")


def counts(said: str) -> list[int]:
    return [window["record_count"] for window in json.loads(said)]


def test_windows_of_a_key_come_in_order_with_both_bounds(
    empty_project: Path, fetch: Command
) -> None:
    """A time without a zone is UTC, as commands print times."""
    write_rows(tables(empty_project).final_windows, [row(3), row(1), row(2), row(4), row(2, "LGA")])
    bounds = ("--from", "2013-03-08 10:00:00.000", "--to", "2013-03-08T13:00:00+01:00", "--json")
    status, said = fetch("JFK", *bounds)
    assert (status, counts(said)) == (0, [1, 2, 3])
    _, said = fetch("JFK", *bounds, "--newest-first")
    assert counts(said) == [3, 2, 1]
    status, said = fetch("JFK", "--json", "--limit", "2")
    assert status == 0
    assert "has more windows; raise --limit 2" in said
    assert counts(said.partition(" note:")[0]) == [1, 2]


def test_json_has_the_columns_of_the_table(empty_project: Path, fetch: Command) -> None:
    spec = tables(empty_project).final_windows
    write_rows(spec, [row(1)])
    _, said = fetch("JFK", "--json")
    (window,) = json.loads(said)
    assert list(window) == [*(column.name for column in spec.columns), "_watermark"]
    assert (window["window_start"], window["_watermark"]) == ("2013-03-08T10:00:00.000Z", None)
    status, said = fetch("[red]", "--json")
    assert (status, said) == (0, "[] ")


def test_a_grid_has_key_window_count_and_aggregates_first(
    empty_project: Path, fetch: Command
) -> None:
    write_rows(tables(empty_project).final_windows, [row(1)])
    status, said = fetch("JFK")
    assert (status, said.split()[:6]) == (
        0,
        ["flights/hourly/final_windows", "key", "window_start", "window_end", "record_count",
         "avg_dep_delay"],
    )  # fmt: skip


def test_a_key_without_a_window_is_named(empty_project: Path, fetch: Command) -> None:
    """A mistyped key must not look like a quiet one."""
    write_rows(tables(empty_project).final_windows, [row(1)])
    name = "flights/hourly/final_windows: has no window of"
    assert fetch("ZZZ") == (0, f"{name} key 'ZZZ' ")
    later = ("--from", "2030-01-01")
    nowhere = f"{name} key 'ZZZ' from 2030-01-01, nor at any other time "
    assert fetch("ZZZ", *later) == (0, nowhere)
    elsewhere = f"{name} key 'JFK' from 2030-01-01; key 'JFK' has windows at other times "
    assert fetch("JFK", *later) == (0, elsewhere)


def test_open_windows_are_shown_as_they_stand_now(empty_project: Path, fetch: Command) -> None:
    """Rule E4: the newest row of each window."""
    later: dict[str, Any] = {"arrival_unit": date(2013, 3, 9)}
    write_rows(
        tables(empty_project).keyed_windows,
        [
            row(1, closed=False),
            row(1, closed=True, **later, avg_dep_delay=2.0),
            row(2, closed=False),
        ],
    )
    status, said = fetch("JFK", "--open", "--json")
    found = [
        (each["record_count"], each["closed"], each["avg_dep_delay"]) for each in json.loads(said)
    ]
    assert (status, found) == (0, [(1, True, 2.0), (2, False, 60.5)])


def test_sessions_are_those_that_overlap_the_times(empty_project: Path, fetch: Command) -> None:
    text = of_kind("kind: session\n    gap: 60 minutes")
    write_rows(tables(empty_project, text).final_windows, [row(1), row(3), row(5)])
    bounds = ("--from", "2013-03-08 12:30", "--to", "2013-03-08 14:00")
    _, said = fetch("JFK", *bounds, "--json")
    assert counts(said) == [3, 5]
    _, said = fetch("JFK", *bounds, "--json", "--newest-first")
    assert counts(said) == [5, 3]


def test_open_windows_that_are_not_stored_are_named(empty_project: Path, fetch: Command) -> None:
    text = FLIGHTS.replace(
        "    grace: 6 hours\n", "    grace: 6 hours\n    partial_results: false\n"
    )
    write_rows(tables(empty_project, text).keyed_windows, [row(1, closed=True)])
    status, said = fetch("JFK", "--open")
    assert (status, "partial_results: false, so no open windows" in said) == (0, True)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("JFK", "--from", "soon"), "--from: 'soon' is no time; write it as '2013-03-08 21:15:00'"),
        (("JFK", "--from", "2013-03-08", "--to", "2013-03-07"), "must not be before --from 2013"),
        (("JFK", "--limit", "0"), "--limit"),
        (("JFK", "--windows", "[red]x"), "has no windows '[red]x'; use one of hourly"),
        (
            ("JFK", "--open"),
            "keyed_windows: the table does not exist yet; to fill it: win",
        ),
    ],
)
def test_wrong_arguments_are_refused(
    empty_project: Path,
    fetch: Command,
    args: Sequence[str],
    said: str,
) -> None:
    write_rows(tables(empty_project).final_windows, [row(1)])
    status, printed = fetch(*args)
    assert (status, said in printed.replace(" │ │ ", " ")) == (2, True), printed


def test_a_key_that_is_no_value_of_its_type_is_refused(empty_project: Path, fetch: Command) -> None:
    text = FLIGHTS.replace("key: origin", "key: flight")
    write_rows(tables(empty_project, text).final_windows, [{**row(1), "key": 7}])
    assert fetch("7", "--json")[0] == 0
    status, said = fetch("JFK")
    assert (
        status,
        "KEY: must be a key of type bigint (the source's column flight), not 'JFK'" in said,
    ) == (2, True), said


def test_windows_of_all_records_have_the_null_key(empty_project: Path, fetch: Command) -> None:
    spec = tables(empty_project).final_windows
    write_rows(spec, [{**row(1), "key": None}, row(2)])
    write_rows(spec, [{**row(3), "key": None}])
    assert counts(fetch("--json")[1]) == [1, 3]


def test_a_key_of_several_columns_has_commas_between_its_values(
    empty_project: Path, fetch: Command
) -> None:
    """Rule A9: a definition may have a key of its own."""
    text = changed("    kind: sliding", "    key: [carrier, dest]\n    kind: sliding")
    keys = [("AA", "MIA"), ("AA", "BOS"), ("UA", "MIA")]
    rows = [
        row(hour, key={"carrier": carrier, "dest": dest})
        for hour, (carrier, dest) in enumerate(keys)
    ]
    write_rows(tables(empty_project, text).final_windows, rows)
    status, said = fetch("AA,BOS", "--json")
    assert (status, counts(said)) == (0, [1])
    assert json.loads(said)[0]["key"] == {"carrier": "AA", "dest": "BOS"}
    status, said = fetch("AA, MIA")
    assert (status, "AA,MIA" in said) == (0, True)
    status, said = fetch("AA")
    assert (status, "KEY: must have 2 parts (carrier, dest) with commas" in said) == (2, True)


@pytest.mark.parametrize("args", [(), ("--open",), ("--json",)])
def test_fetch_needs_neither_spark_nor_pandas(empty_project: Path, args: Sequence[str]) -> None:
    of = tables(empty_project)
    write_rows(of.final_windows, [row(1)])
    write_rows(of.keyed_windows, [row(1, closed=False), row(2, closed=False)])
    printed = call_alone(empty_project, "fetch", "flights", "JFK", *args)
    assert "JFK" in printed
