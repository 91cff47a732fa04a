"""`alerts`, `late`, `rejected` and `rows` list the newest rows of a table, without Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.support.command_line import Command, call_alone
from tests.support.pipeline_texts import FLIGHTS, load_text
from tests.support.written_tables import Row
from tests.support.written_tables import write_rows as write
from windows_pipeline.config import Pipeline
from windows_pipeline.query.tables.local import NoTableError, UnreadableTableError
from windows_pipeline.query.tables.newest_rows import newest_rows
from windows_pipeline.storage.catalog import TableSpec, specs_of
from windows_pipeline.storage.files.damage import TableDamagedError

START = datetime(2013, 3, 8, 12, tzinfo=UTC)


@pytest.fixture
def pipeline(empty_project: Path) -> Pipeline:
    """The flights with one window definition."""
    return load_text(empty_project / "pipelines", FLIGHTS)


@pytest.fixture
def alerts(pipeline: Pipeline, tmp_path: Path) -> TableSpec:
    return specs_of(pipeline, str(tmp_path / "warehouse")).of("hourly").alerts


@pytest.fixture
def rejected(pipeline: Pipeline, tmp_path: Path) -> TableSpec:
    return specs_of(pipeline, str(tmp_path / "warehouse")).rejected_records


def alert(day: int, minute: int, key: str = "JFK", retracted_by: int | None = None) -> Row:
    end = START + timedelta(minutes=minute)
    return {
        "arrival_unit": date(2013, 3, day),
        "rule": "disruption",
        "key": key,
        "window_start": end - timedelta(hours=1),
        "window_end": end,
        "record_count": minute,
        "severity": 60.5,
        "episode_start": START,
        "retracted_by": retracted_by,
    }


def minutes(
    spec: TableSpec, limit: int, first: date | None = None, last: date | None = None
) -> list[int]:
    """The minutes of the newest alerts, newest first."""
    found: list[int] = newest_rows(spec, limit, first, last).rows["record_count"].to_pylist()
    return found


def test_the_newest_day_comes_first_then_the_latest_window(alerts: TableSpec) -> None:
    write(alerts, [alert(9, 1), alert(8, 30), alert(8, 40)])
    write(alerts, [alert(9, 3), alert(9, 2), alert(7, 50)])
    assert minutes(alerts, 4) == [3, 2, 1, 40]
    assert minutes(alerts, 6) == [3, 2, 1, 40, 30, 50]
    assert newest_rows(alerts, 5).are_more
    assert not newest_rows(alerts, 6).are_more


def test_a_key_of_several_columns_is_printed_by_its_parts(
    tmp_path: Path,
    pipeline: Pipeline,
    command: Command,
) -> None:
    """Rule A9: of one end the rows come by the parts; in JSON the key is an object."""
    text = FLIGHTS.replace("key: origin", "key: [carrier, flight]")
    pipeline = load_text(tmp_path / "pipelines", text)
    spec = specs_of(pipeline, str(tmp_path / "warehouse")).of("hourly").alerts
    keys = [("AA", 7), ("UA", None), ("AA", 12)]
    parts = [{"carrier": carrier, "flight": flight} for carrier, flight in keys]
    write(spec, [{**alert(9, 1), "key": part} for part in parts])
    status, said = command("alerts", "flights")
    assert status == 0
    shown = [row.split(" 2013")[0].strip() for row in said.split("disruption")[1:]]
    assert shown == ["AA,7", "AA,12", "UA,"]
    status, said = command("alerts", "flights", "--json")
    assert [row["key"] for row in json.loads(said)] == [parts[0], parts[2], parts[1]]


def test_only_the_days_asked_for_are_read(alerts: TableSpec) -> None:
    write(alerts, [alert(day, day) for day in range(1, 10)])
    assert minutes(alerts, 9, date(2013, 3, 3), date(2013, 3, 5)) == [5, 4, 3]
    assert minutes(alerts, 9, None, date(2013, 3, 2)) == [2, 1]
    assert minutes(alerts, 9, date(2013, 3, 8), None) == [9, 8]
    assert minutes(alerts, 9, date(2014, 1, 1), None) == []


def test_older_days_are_not_opened(alerts: TableSpec) -> None:
    """A file of an older day may be gone: nothing reads it where newer days have enough rows."""
    write(alerts, [alert(8, 1)])
    write(alerts, [alert(9, 2), alert(9, 3)])
    (old,) = Path(alerts.location).glob("arrival_unit=2013-03-08/*.parquet")
    old.unlink()
    assert minutes(alerts, 1) == [3]
    with pytest.raises(TableDamagedError, match="is gone"):
        newest_rows(alerts, 3)


def test_a_day_of_many_rows_gives_the_latest_of_them(alerts: TableSpec) -> None:
    """More rows than are read at a time, in no order."""
    write(alerts, [alert(9, (minute * 7919) % 20_011) for minute in range(20_011)])
    assert minutes(alerts, 3) == [20_010, 20_009, 20_008]


def test_a_column_that_is_newer_than_a_file_has_no_value(alerts: TableSpec) -> None:
    write(alerts, [alert(9, 1)])
    table = DeltaTable(alerts.location)
    new = pa.schema([*pa.schema(table.schema().to_arrow()), ("added", pa.string())])
    row = pa.Table.from_pylist([{**alert(9, 2), "added": "x"}], new)
    write_deltalake(table, row, mode="append", schema_mode="merge")
    assert newest_rows(alerts, 2).rows["added"].to_pylist() == ["x", None]


def test_a_missing_table_and_a_distant_table_are_refused(alerts: TableSpec) -> None:
    with pytest.raises(NoTableError, match="flights/hourly/alerts: the table does not exist yet"):
        newest_rows(alerts, 1)
    distant = TableSpec(**{**vars(alerts), "location": "s3a://bucket/alerts"})
    with pytest.raises(UnreadableTableError, match="lies in s3a://bucket/alerts; set storage"):
        newest_rows(distant, 1)


def test_retracted_alerts_are_left_out_unless_asked_for(
    alerts: TableSpec, command: Command
) -> None:
    """Rule E1: a correction retracts alerts and leaves them in the table."""
    write(alerts, [alert(9, 1, "JFK"), alert(9, 2, "LGA", retracted_by=1)])
    status, said = command("alerts", "flights")
    assert (status, "JFK" in said, "LGA" in said) == (0, True, False), said
    status, said = command("alerts", "flights", "--with-retracted")
    assert (status, "JFK" in said, "LGA" in said, "retracted_by" in said) == (0, True, True, True)


def test_json_has_the_columns_of_the_table_and_times_with_a_zone(
    alerts: TableSpec, command: Command
) -> None:
    write(alerts, [{**alert(9, 1), "severity": float("nan")}, alert(9, 2)])
    status, said = command("alerts", "flights", "--json", "--limit", "5")
    first, second = json.loads(said)
    assert status == 0
    assert list(first) == ["_windows", "_id", *(column.name for column in alerts.columns)]
    assert (first["_windows"], first["arrival_unit"]) == ("hourly", "2013-03-09")
    assert (first["severity"], second["severity"]) == ("NaN", 60.5)
    assert [first["window_end"], second["window_end"]] == [
        "2013-03-08T12:01:00.000Z",
        "2013-03-08T12:02:00.000Z",
    ]
    assert first["retracted_by"] is None


def test_no_rows_are_an_empty_json_list(alerts: TableSpec, command: Command) -> None:
    write(alerts, [alert(9, 1)])
    args = ("alerts", "flights", "--from", "2014-01-01")
    assert command(*args, "--json") == (0, "[] ")
    assert command(*args) == (0, "flights/hourly/alerts: no rows ")


def test_a_missing_table_names_the_command_that_fills_it(
    pipeline: Pipeline, command: Command
) -> None:
    fix = (
        "the table does not exist yet; to fill it: windows-pipeline run flights, or of a stream: "
        "windows-pipeline stream flights "
    )
    for name, table in (
        ("alerts", "hourly/alerts"),
        ("late", "hourly/late_records"),
        ("rejected", "rejected_records"),
    ):
        status, said = command(name, pipeline.name)
        assert (status, said) == (2, f"error: flights/{table}: {fix}")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--from", "soon"), "--from: 'soon' is no day"),
        (("--from", "2013-03-08", "--to", "2013-03-07"), "must not be before --from 2013-03-08"),
        (("--limit", "0"), "--limit"),
        (("--windows", "[red]x"), "has no windows '[red]x'; use one of hourly"),
    ],
)
def test_wrong_arguments_are_refused(
    pipeline: Pipeline,
    command: Command,
    args: Sequence[str],
    said: str,
) -> None:
    status, printed = command("alerts", pipeline.name, *args)
    assert (status, said in printed) == (2, True), printed


def test_any_table_of_windows_is_listed(
    pipeline: Pipeline, tmp_path: Path, command: Command
) -> None:
    """Rule G3: as failed windows; and a table that no definition writes is refused."""
    of_windows = specs_of(pipeline, str(tmp_path / "warehouse")).of("hourly")
    start = START - timedelta(hours=1)
    row = {
        "arrival_unit": date(2013, 3, 9), "key": "JFK", "window_start": start, "window_end": START,
        "aggregate": "total", "message": "overflow",
    }  # fmt: skip
    write(of_windows.failed_windows, [row, {**row, "key": "LGA"}])
    status, said = command("rows", "flights", "failed_windows", "--limit", "1")
    assert (status, "LGA" in said, "JFK" in said, "overflow" in said) == (0, True, False, True)
    assert said.index("key") < said.index("window_start") < said.index("aggregate")
    _, said = command("rows", "flights", "failed_windows", "--json")
    assert [found["key"] for found in json.loads(said)] == ["JFK", "LGA"]
    status, said = command("rows", "flights", "failed_window")
    assert (status, "did you mean 'failed_windows'?" in said) == (2, True), said
    # A definition without a trigger has no firings.
    status, said = command("rows", "flights", "firings")
    assert (status, "hourly: no table 'firings' is written" in said) == (2, True), said


def test_texts_of_rejected_records_are_shown_as_they_are(
    rejected: TableSpec, command: Command
) -> None:
    """Text from data is never markup, and cannot control the terminal."""
    text = '[red]{"a": 1}[/x]\x1b[2J\n:smiley:'
    row = {"arrival_unit": date(2013, 3, 9), "file": "a.jsonl", "reason": "x", "original": text}
    write(rejected, [row])
    status, said = command("rejected", "flights")
    assert status == 0
    assert '[red]{"a": 1}[/x]\\x1b[2J\\n:smiley:' in said
    _, said = command("rejected", "flights", "--json")
    assert json.loads(said)[0]["original"] == text


def test_newest_rows_need_neither_spark_nor_pandas(alerts: TableSpec, tmp_path: Path) -> None:
    write(alerts, [alert(9, 1)])
    printed = call_alone(tmp_path, "alerts", "flights", "--limit", "1")
    assert "disruption" in printed
    assert "\x1b" not in printed
