"""A file of a table that is gone or cannot be read is one error: table, file, day, what helps."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from tests.support.pipeline_texts import PIPELINES
from tests.support.stored_files import commits, data_files
from windows_pipeline.config import load_pipeline
from windows_pipeline.storage import delta_rs
from windows_pipeline.storage.catalog import specs_of
from windows_pipeline.storage.files.damage import (
    TableDamagedError,
    computes_again,
    damage_in,
    damage_of,
)

DAY = date(2026, 11, 1)
ROWS = pa.table({"arrival_unit": [DAY] * 300, "v": [float(row) for row in range(300)]})
LOG = "_delta_log/"
REBUILD = "windows-pipeline rebuild flights --from"
Damage = Callable[[Path], object]


def written(folder: Path, name: str = "flights/raw_events") -> Path:
    """A table of two writes."""
    table = folder / name
    table.parent.mkdir(parents=True)
    DeltaTable.create(table, ROWS.schema, partition_by=["arrival_unit"])
    for number in range(2):
        delta_rs.append(str(table), ROWS, "tests", number)
    return table


def read(table: Path) -> None:
    delta_rs.rows(str(table), ["v"])


def update(table: Path) -> None:
    values = pa.table({"arrival_unit": [DAY], "v": [1.0]})
    delta_rs.update_arrival_units(str(table), values, ["v"])


def damaged(table: Path, do: Callable[[Path], None]) -> TableDamagedError:
    with pytest.raises(TableDamagedError) as refused:
        do(table)
    assert str(refused.value).count("\n") == 2
    assert "<unknown>" not in str(refused.value)
    return refused.value


@pytest.mark.parametrize("do", [read, update])
@pytest.mark.parametrize(
    ("damage", "cause"),
    [
        (lambda file: file.unlink(), "is gone"),
        (lambda file: file.write_bytes(file.read_bytes()[:100]), "Parquet"),
        (lambda file: file.write_bytes(b""), "Parquet"),
    ],
    ids=["gone", "cut", "empty"],
)
def test_a_data_file_is_named_with_its_day(
    tmp_path: Path, damage: Damage, cause: str, do: Callable[[Path], None]
) -> None:
    table = written(tmp_path)
    files = data_files(table)
    for file in files:
        damage(file)
    error = damaged(table, do)
    assert error.lines[0] == "flights/raw_events: a file of the table is gone or cannot be read"
    assert any(error.lines[1].startswith(f"{file} (day 2026-11-01): ") for file in files)
    assert cause in error.lines[1]


@pytest.mark.parametrize("entry", [0, 1, 2])
def test_a_log_is_named(tmp_path: Path, entry: int) -> None:
    table = written(tmp_path)
    commit = commits(table)[entry]
    commit.write_bytes(commit.read_bytes()[:-20])
    error = damaged(table, read)
    assert error.lines[1].startswith(f"{table}/_delta_log: ")
    assert "move the folder flights/raw_events out of the warehouse, then" in error.lines[2]


def test_a_missing_entry_of_a_log_is_named(tmp_path: Path) -> None:
    table = written(tmp_path)
    commits(table)[1].unlink()
    assert damaged(table, read).file == f"{table}/_delta_log"


@pytest.mark.parametrize(
    ("table", "below", "command"),
    [
        ("flights/raw_events", "a.parquet", f"{REBUILD} raw_events (a stream: delete its folder"),
        ("flights/arrival_log", LOG, f"{REBUILD} raw_events"),
        ("flights/w/late_records", "a.parquet", f"the table again from raw_events: {REBUILD} key"),
        ("flights/w/final_windows", "a.parquet", f"{REBUILD} final_windows"),
        ("flights/w/notifications", "a.parquet", f"{REBUILD} alerts"),
        ("flights/w/processed", "a.parquet", f"{REBUILD} firings"),
        ("flights/w/_computed_days", "a.parquet", "again what is computed: windows-pipeline run"),
        ("flights/_landed_files", "a.parquet", "windows-pipeline run flights"),
        ("/lake/orders", "a.parquet", "or correct what the pipeline reads"),
    ],
)
def test_the_command_that_computes_a_table_again_is_named(
    table: str, below: str, command: str
) -> None:
    """A rebuild replaces data files unread; what it reads first has to be moved away."""
    help_text = TableDamagedError(table, f"/w/{table}/{below}", "is gone").lines[2]
    assert help_text.startswith("Put the file back from a backup")
    assert command in help_text
    assert ("move the folder" in help_text) == (below == LOG or "/_" in table)
    lost = "loses the days whose landed files are gone, too: first land them again from the source"
    assert (lost in help_text) == (f"{REBUILD} raw_events" in command)


def test_each_table_of_a_pipeline_is_named_with_a_step() -> None:
    pipeline = load_pipeline(PIPELINES / "flights.yaml")
    tables = [*specs_of(pipeline, "w").written, specs_of(pipeline, "w").landed_files]
    steps = {table.name: computes_again(table.name).split()[-1] for table in tables}
    assert steps["flights/by_hour/firings"] == "firings"
    assert len(steps) > 20


@pytest.mark.parametrize(
    "error",
    [
        CommitFailedError("Parquet error: of another run"),
        PermissionError(13, "Permission denied", "/w/p/raw_events/a.parquet"),
        OSError(5, "Input/output error", "/w/p/raw_events/a.parquet"),
        KeyError("No such file"),
        OSError(28, "No space left on device"),
        MemoryError("/w/p/raw_events/a.parquet"),
    ],
)
def test_another_error_stays_as_it_is(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, damage_of("p/raw_events"):
        raise error
    assert raised.value is error


@pytest.mark.parametrize(
    ("text", "table", "cause"),
    [
        (
            "Error while reading file file://{}/a b.parquet.\nCaused by: x.ZException: no Parquet",
            "flights/hourly/alerts",
            "no Parquet",
        ),
        (
            "[PATH_NOT_FOUND] Path does not exist: file:{}/arrival_unit=2026-11-01/b.parquet.",
            "flights/hourly/alerts",
            "is gone",
        ),
        ("delta log files of version 3 at file:{}/_delta_log.", "flights/hourly/alerts", "delta"),
        ("Error while reading file s3a:/{}/a.parquet", "flights/hourly/alerts", "Error while"),
    ],
)
def test_what_spark_says_of_a_table_s_file(text: str, table: str, cause: str) -> None:
    folder = "/my lake/flights/hourly/alerts"
    found = damage_in(RuntimeError(text.format(folder)))
    assert found is not None
    assert (found.table, found.cause[: len(cause)]) == (table, cause)
    other = damage_in(RuntimeError(text.format("/lake/orders")))
    assert (None if other is None else other.table) == (
        "/lake/orders" if cause == "is gone" else None
    )


def test_the_driver_writes_gzip(tmp_path: Path) -> None:
    """Every reader verifies its checksum."""
    file = data_files(written(tmp_path))[0]
    assert pq.read_metadata(file).row_group(0).column(0).compression == "GZIP"


def test_the_list_of_digests_of_an_older_release_is_left_alone(tmp_path: Path) -> None:
    table = written(tmp_path)
    digests = table / "_file_digests"
    digests.write_bytes(b"0123abcd of another release\n")
    delta_rs.append(str(table), ROWS, "tests", 2)
    update(table)
    assert delta_rs.count(str(table)) == 900
    assert digests.read_bytes() == b"0123abcd of another release\n"
