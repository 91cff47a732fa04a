"""`status` says how far tables are, what waits and what is unfinished, without Spark."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from deltalake import DeltaTable

from tests.support.command_line import Command, call_alone
from tests.support.pipeline_texts import FLIGHTS, load_text
from tests.support.written_tables import write_rows
from windows_pipeline.config import Pipeline
from windows_pipeline.storage.catalog import specs_of

NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)


class Flights(NamedTuple):
    """A project of the flights, whose folder is the working directory."""

    folder: Path
    pipeline: Pipeline
    command: Command

    @property
    def warehouse(self) -> str:
        return str(self.folder / "warehouse")

    def ingest(self, days: Sequence[int], batches: Sequence[int | None] | None = None) -> None:
        """Writes the log's rows of days of January; each day's watermark is its noon."""
        rows = [
            {
                "arrival_unit": date(2013, 1, day),
                "source_partition": "0",
                "rows": 1,
                "arrival_unit_rejected": 0,
                "watermark": NOON + timedelta(days=day - 1),
                "batch": batch,
            }
            for day, batch in zip(days, batches or [None] * len(days), strict=True)
        ]
        tables = specs_of(self.pipeline, self.warehouse)
        write_rows(tables.raw_events, [{"arrival_unit": date(2013, 1, day)} for day in days])
        write_rows(tables.arrival_log, rows)

    def compute(self, *days: int) -> None:
        spec = specs_of(self.pipeline, self.warehouse).of("hourly").computed_days
        write_rows(spec, [{"arrival_unit": date(2013, 1, day)} for day in days])

    def status(self, *args: str) -> tuple[int, str]:
        return self.command("status", "flights", *args)


@pytest.fixture
def flights(empty_project: Path, command: Command) -> Flights:
    return Flights(empty_project, load_text(empty_project / "pipelines", FLIGHTS), command)


def test_a_landed_file_that_changed_is_named_with_the_command(flights: Flights) -> None:
    """Rule E4: `status` says it without Spark, until the day is ingested again."""
    flights.ingest([1])
    flights.compute(1)
    landing = flights.folder / flights.pipeline.source.required_path
    file = landing / "2013-01-01" / "a.csv"
    file.parent.mkdir(parents=True)
    file.write_text("as it was")
    written = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    landed = {"arrival_unit": date(2013, 1, 1), "file": file.name, "written": written}
    spec = specs_of(flights.pipeline, flights.warehouse).landed_files
    write_rows(spec, [{**landed, "size_bytes": 7}])
    status, said = flights.status()
    assert (status, "2013-01-01/a.csv has 9 bytes, and had 7" in said) == (1, True), said
    assert "windows-pipeline run flights --from 2013-01-01 --to 2013-01-01" in said
    (changed,) = json.loads(flights.status("--json")[1])["changed"]
    assert (changed["day"], changed["file"]) == ("2013-01-01", "a.csv")
    shutil.rmtree(landing)  # the landed files need not stay
    assert flights.status()[0] == 0


def test_nothing_is_ingested(flights: Flights) -> None:
    status, said = flights.status()
    assert status == 0
    assert "nothing is ingested; to begin: windows-pipeline run flights" in said
    assert "flights/hourly/final_windows does not exist yet" in said


def test_all_is_computed(flights: Flights) -> None:
    """Rule A4: windows are closed that end before watermark less grace."""
    flights.ingest([1, 2])
    flights.compute(1, 2)
    final = specs_of(flights.pipeline, flights.warehouse).of("hourly").final_windows
    start = NOON - timedelta(hours=12)
    row = {"key": "JFK", "window_start": start, "window_end": start + timedelta(hours=1)}
    write_rows(final, [{"arrival_unit": date(2013, 1, day), **row} for day in (1, 2, 2)])
    status, said = flights.status()
    assert status == 0, said
    assert "ingested through 2013-01-02; watermark 2013-01-02 12:00:00 UTC" in said
    closed = "computed through 2013-01-02; closed before 2013-01-02 06:00:00 UTC"
    assert f"flights hourly: {closed}" in said
    assert "flights/hourly/final_windows 3 rows through 2013-01-02" in said
    status, said = flights.status("--json")
    state = json.loads(said)
    assert (status, state["through"], state["watermark"]) == (
        0, "2013-01-02", "2013-01-02T12:00:00.000Z"
    )  # fmt: skip
    assert state["windows"] == [
        {
            "name": "hourly",
            "through": "2013-01-02",
            "closed_before": "2013-01-02T06:00:00.000Z",
            "lacking": [],
        }
    ]
    (table,) = (each for each in state["tables"] if each["name"] == final.name)
    assert (table["rows"], table["version"]) == (3, 0)
    assert (state["missing"], state["blocked"], state["unfinished"]) == (None, [], [])


def test_days_that_wait_are_named_and_fail(flights: Flights) -> None:
    """Rule A2: nothing closes past a missing day."""
    flights.ingest([1, 2, 4, 5])
    flights.compute(1)
    status, said = flights.status()
    assert status == 1
    assert "1 day, 2013-01-02: ingested and not computed; if no run is active: windows-pi" in said
    assert "2 days, 2013-01-04 to 2013-01-05: blocked by a missing day: no window closes" in said
    assert "past 2013-01-03. Land it, then: windows-pipeline run flights" in said
    status, said = flights.status("--json")
    state = json.loads(said)
    assert (state["through"], state["missing"]) == ("2013-01-02", "2013-01-03")
    assert state["windows"][0]["through"] == "2013-01-01"
    assert state["windows"][0]["closed_before"] == "2013-01-01T06:00:00.000Z"
    assert state["blocked"] == ["2013-01-04", "2013-01-05"]


def test_a_stream_has_no_days_that_wait_and_may_be_stopped(flights: Flights) -> None:
    flights.ingest([1, 1, 2], [0, 1, 2])
    checkpoint = Path(specs_of(flights.pipeline, flights.warehouse).stream_checkpoint)
    for kind in ("offsets", "commits"):
        (checkpoint / kind).mkdir(parents=True)
        for number in range(3):
            (checkpoint / kind / str(number)).touch()
    assert flights.status()[0] == 0
    (checkpoint / "offsets" / "3").touch()
    status, said = flights.status()
    assert status == 1
    assert "micro-batch 3 was started and is not in all tables; to resume: windows-pipel" in said


def test_a_correction_that_was_stopped_is_named_with_its_command(flights: Flights) -> None:
    flights.ingest([1])
    flights.compute(1)
    spec = specs_of(flights.pipeline, flights.warehouse).of("hourly").corrections
    write_rows(spec, [])
    details = {"first": "2013-01-01", "last": "2013-01-01", "cause": "it's late"}
    DeltaTable(spec.location).alter.set_table_properties(
        {
            "windows_pipeline.correction": "2",
            "windows_pipeline.corrections_finished": "1",
            "windows_pipeline.correction_details": json.dumps(details),
        },
        raise_if_not_exists=False,
    )
    status, said = flights.status("--json")
    (unfinished,) = json.loads(said)["unfinished"]
    assert status == 1
    assert unfinished == {
        "what": "correction 2 of hourly was started and is not finished",
        "command": "windows-pipeline correct flights --windows hourly --from 2013-01-01 "
        "--to 2013-01-01 --cause 'it'\"'\"'s late'",
    }


def test_tables_of_another_definition_are_named(flights: Flights) -> None:
    spec = specs_of(flights.pipeline, flights.warehouse).of("hourly").alerts
    write_rows(spec, [])
    DeltaTable(spec.location).alter.set_table_properties(
        {"windows_pipeline.digest": "0"}, raise_if_not_exists=False
    )
    status, said = flights.status()
    assert status == 1
    assert "the definition changed since these tables were computed: flights/hourly/alerts" in said
    assert "to resume: windows-pipeline rebuild flights" in said


def test_status_needs_neither_spark_nor_pandas(flights: Flights) -> None:
    flights.ingest([1])
    flights.compute(1)
    printed = call_alone(flights.folder, "status", "flights")
    assert "computed through 2013-01-01" in printed


@pytest.mark.parametrize(
    ("lost", "named"),
    [
        ("raw_events", "flights/raw_events is gone, and arrival_log names its days"),
        ("arrival_log", "flights/raw_events has rows, and arrival_log names none of their days"),
    ],
)
def test_a_lost_table_of_the_source_is_named(flights: Flights, lost: str, named: str) -> None:
    flights.ingest([1])
    flights.compute(1)
    shutil.rmtree(Path(flights.warehouse) / "flights" / lost)
    status, said = flights.status()
    assert (status, named in said) == (1, True), said
    assert "windows-pipeline rebuild flights --from raw_events" in said
