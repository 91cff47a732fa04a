"""Damaged tables: commands name them in a few lines; `check --files` finds and mends them."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.damage import FLIPS, data_files, flip, flipped, flips, log_files
from tests.support.small_project import HEADER, TUMBLING, SmallProject
from tests.support.spark import forget_delta_logs
from tests.support.stored_rows import named_rows, stored_rows
from windows_pipeline.cli.main import main
from windows_pipeline.compat.spark_session import start_session
from windows_pipeline.settings import Settings
from windows_pipeline.storage import delta_rs
from windows_pipeline.storage.arrival_units import arrival_units_sql, days_from
from windows_pipeline.storage.files.check import check_files
from windows_pipeline.storage.files.stream_checkpoint import damaged_files

MOST_LINES = 5
DAYS = 3
DAY_MS = 86_400_000
ALERTING = {**TUMBLING, "alerts": {"big": {"when": "s > 50", "severity": "s"}}}


def land(project: SmallProject, days: int = DAYS) -> None:
    for day in range(days):
        lines = (f"{'ab'[n % 2]},{day * DAY_MS + 7 * n},{n}\n" for n in range(60))
        project.land(day + 1, HEADER + "".join(lines))


def contents(table: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(table)): path.read_bytes()
        for path in table.rglob("*")
        if path.is_file()
    }


def results(project: SmallProject) -> dict[str, list[tuple[object, ...]]]:
    names = ("keyed_windows", "late_records", "final_windows", "alerts")
    rows = {name: stored_rows(getattr(project.windows, name), "correction") for name in names}
    return {name: sorted(of_table, key=repr) for name, of_table in rows.items()}


@pytest.fixture
def computed(project: SmallProject) -> SmallProject:
    """A project whose days are computed."""
    project.declare(ALERTING)
    land(project)
    status, said = project.ingest("run")
    assert status == 0, said
    return project


def no_session(_settings: Settings) -> SparkSession:
    raise AssertionError("Spark must not start")


def call_without_spark(project: SmallProject, *args: str) -> tuple[int, str]:
    project.monkeypatch.chdir(project.folder)
    project.monkeypatch.setattr("sys.argv", ["windows-pipeline", *args])
    with pytest.raises(SystemExit) as stopped:
        main(no_session)
    captured = project.capfd.readouterr()
    return int(stopped.value.code or 0), captured.out + captured.err


def test_damaged_windows_are_found_and_computed_again(computed: SmallProject) -> None:
    """What follows from raw_events is mended, and what it follows from stays as it is."""
    warehouse = computed.folder / "warehouse" / "p"
    before = results(computed)
    sources = {name: contents(warehouse / name) for name in ("raw_events", "arrival_log")}
    assert call_without_spark(computed, "check", "p", "--files")[0] == 0
    file = data_files(warehouse / "w" / "keyed_windows")[0]
    flip(file)
    status, said = call_without_spark(computed, "check", "p", "--files")
    assert status == 1
    assert "p/w/keyed_windows: damaged" in said
    assert f"{file.parent.name}/{file.name}: has other bytes" in said
    assert "windows-pipeline check p --files --repair" in said
    status, said = call_without_spark(computed, "check", "p", "--files", "--repair")
    assert (status, "nothing was written" in said) == (1, True), said
    status, said = computed.call("check", "p", "--files", "--repair", "--yes")
    assert (status, "0 findings" in said) == (0, True), said
    assert results(computed) == before
    assert {name: contents(warehouse / name) for name in sources} == sources
    assert named_rows(computed.windows.corrections) == []


def test_damaged_final_windows_come_back_by_a_correction(computed: SmallProject) -> None:
    """Rule E1: consumers of corrections see which final windows were written again, and why."""
    table = computed.folder / "warehouse" / "p" / "w" / "final_windows"
    before = results(computed)
    file = data_files(table)[1]
    arrival_unit = file.parent.name.removeprefix("arrival_unit=")
    content = file.read_bytes()
    flip(file)
    status, said = computed.call("check", "p", "--files", "--repair", "--yes")
    assert (status, "0 findings" in said) == (0, True), said
    assert results(computed) == before
    corrected = named_rows(computed.windows.corrections)
    assert {(row["change"], str(row["arrival_unit"])) for row in corrected} == {
        ("added", arrival_unit)
    }
    assert {row["cause"] for row in corrected} == {"repair of damaged files"}
    # The damaged file is set aside, not deleted.
    (aside,) = (table / "_damaged").rglob("*.parquet")
    assert len(aside.read_bytes()) == len(content)
    assert computed.call("check", "p")[0] == 0


@pytest.mark.long
def test_damaged_logs_alerts_and_bookkeeping_are_mended(
    computed: SmallProject, spark: SparkSession
) -> None:
    warehouse = computed.folder / "warehouse" / "p" / "w"
    before = results(computed)
    log_files(warehouse / "keyed_windows", ".json")[-1].write_bytes(b"{")
    shutil.rmtree(warehouse / "final_windows")
    shutil.rmtree(warehouse / "late_records")
    flip(data_files(warehouse / "alerts")[0])
    # Jobs read it to note their days.
    noted = data_files(warehouse / "_computed_days")[0]
    noted.write_bytes(b"x" * noted.stat().st_size)
    forget_delta_logs(spark)
    status, said = computed.call("check", "p", "--files", "--repair", "--yes")
    assert (status, "0 findings" in said) == (0, True), said
    status, said = computed.call("run", "p")
    assert status == 0, said
    assert results(computed) == before


def test_damaged_sources_and_results_are_mended_by_one_rebuild(
    computed: SmallProject, spark: SparkSession
) -> None:
    """What `check --files` names for the sources mends everything that follows from them."""
    warehouse = computed.folder / "warehouse" / "p"
    before = results(computed)
    flip(data_files(warehouse / "raw_events")[0])
    for table in ("w/keyed_windows", "w/corrections", "arrival_log"):
        log = log_files(warehouse / table, ".json")[-1]
        log.write_bytes(log.read_bytes()[:-20])
    flip(data_files(warehouse / "w" / "_computed_days")[0])
    forget_delta_logs(spark)
    rebuild = ("rebuild", "p", "--from", "raw_events")
    status, said = call_without_spark(computed, "check", "p", "--files")
    assert (status, f"windows-pipeline {' '.join(rebuild)}" in said) == (1, True), said
    named = [line for line in said.splitlines() if "--repair" in line]
    assert named
    assert all("fix the tables of the source, then: " in line for line in named)
    status, said = computed.call(*rebuild)
    assert status == 0, said
    for table in ("w/keyed_windows", "w/corrections", "arrival_log", "w/_computed_days"):
        assert f"p/{table}: damaged (" in said, said
    assert results(computed) == before
    status, said = call_without_spark(computed, "check", "p", "--files")
    assert (status, "0 findings" in said) == (0, True), said
    status, said = computed.call("run", "p")
    assert (status, "nothing to do" in said) == (0, True), said
    assert computed.call("check", "p")[0] == 0


def test_a_lost_raw_events_is_named(computed: SmallProject, spark: SparkSession) -> None:
    """Days that arrival_log names are ingested: without their rows nothing is right."""
    shutil.rmtree(computed.folder / "warehouse" / "p" / "raw_events" / "_delta_log")
    forget_delta_logs(spark)
    status, said = call_without_spark(computed, "status", "p")
    assert (status, "p/raw_events is gone" in said) == (1, True), said
    assert "windows-pipeline check p --files" in said
    status, said = computed.call("run", "p")
    assert (status, "p/raw_events must hold the" in said) == (2, True), said
    status, said = call_without_spark(computed, "check", "p", "--files")
    assert (status, "windows-pipeline rebuild p --from raw_events" in said) == (1, True), said
    assert computed.call("rebuild", "p", "--from", "raw_events")[0] == 0
    assert call_without_spark(computed, "status", "p")[0] == 0


def test_commands_name_the_damage_in_a_few_lines(
    computed: SmallProject, spark: SparkSession
) -> None:
    """Table or file, what is wrong, and the command; no trace."""
    warehouse = computed.folder / "warehouse"
    shutil.copytree(warehouse, computed.folder / "whole")
    cases = [
        ("p/raw_events", "cut", ("check", "p")),
        ("p/raw_events", "gone", ("check", "p")),
        ("p/arrival_log", "cut", ("run", "p")),
        ("p/arrival_log", "log", ("check", "p")),
        ("p/w/final_windows", "cut", ("check", "p")),
        ("p/w/alerts", "cut", ("episodes", "p")),
        ("p/w/alerts", "cut", ("alerts", "p")),
        ("p/w/_computed_days", "cut", ("run", "p")),
    ]
    for table, kind, command in cases:
        data, log = data_files(warehouse / table), log_files(warehouse / table, ".json")
        if kind == "gone":
            data[-1].unlink()
        elif kind == "log":
            log[-1].write_bytes(b"{")
        else:
            # All of them, as files' names are random and a command reads only the days it needs.
            for file in data:
                file.write_bytes(file.read_bytes()[:100])
        forget_delta_logs(spark)
        status, said = computed_call(computed, *command)
        lines = [line for line in said.splitlines() if line.strip()]
        assert status == 2, (table, kind, said)
        assert len(lines) <= MOST_LINES, (table, kind, said)
        assert f"{table}: a file of the table is damaged or gone" in said, (kind, said)
        assert "windows-pipeline check p --files" in said
        assert "Traceback" not in said
        shutil.rmtree(warehouse)
        shutil.copytree(computed.folder / "whole", warehouse)
        forget_delta_logs(spark)


def computed_call(project: SmallProject, *args: str) -> tuple[int, str]:
    """A call's exit status and what it printed to standard error, line by line."""
    project.monkeypatch.chdir(project.folder)
    project.monkeypatch.setattr("sys.argv", ["windows-pipeline", *args])
    project.capfd.readouterr()
    with pytest.raises(SystemExit) as stopped:
        main(start_session)
    return int(stopped.value.code or 0), project.capfd.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize("part", ["data", "footer"])
def test_flipped_bits_of_files_that_spark_wrote_are_found(
    computed: SmallProject, spark: SparkSession, part: str
) -> None:
    """The digests find all; of values Spark's reader finds all, by the CRCs of pages."""
    raw = computed.source.raw_events
    first = computed.pipeline.partitions.start
    days = days_from(first, first.replace(day=DAYS))
    raw.replace(raw.read(spark).localCheckpoint(), arrival_units_sql(days))
    table = Path(raw.location)
    files = [table / path for path in delta_rs.live_files(raw.location)]
    for checksums in table.rglob(".*.crc"):  # Hadoop's, of which other readers know nothing
        checksums.unlink()
    rows = sorted(map(tuple, raw.read(spark).collect()), key=repr)
    outcomes: Counter[str] = Counter()
    for file, byte, bit in flips(files, 3, FLIPS, part):
        with flipped(file, byte, bit):
            assert check_files(raw.location).damages
            try:
                same = sorted(map(tuple, raw.read(spark).collect()), key=repr) == rows
                outcomes["same" if same else "other values"] += 1
            except Exception:  # noqa: BLE001  Spark has many errors of damaged files
                outcomes["refused"] += 1
    if part == "data":
        assert outcomes["other values"] == 0, outcomes


def test_flipped_bits_of_a_streams_checkpoint_are_found(project: SmallProject) -> None:
    """By the checksum files that Hadoop writes beside its files."""
    project.declare()
    land(project, days=2)
    assert project.ingest("stream")[0] == 0
    folder = project.folder / "warehouse" / "p" / "_stream"
    assert call_without_spark(project, "check", "p", "--files")[0] == 0
    written = [path for path in folder.rglob("*") if path.is_file()]
    with_checksums = [path for path in written if path.with_name(f".{path.name}.crc").exists()]
    assert {path.parent.name for path in with_checksums} >= {"offsets", "commits"}
    for file, byte, bit in flips(with_checksums, 4, FLIPS):
        with flipped(file, byte, bit):
            assert list(damaged_files(folder)) == [str(file.relative_to(folder))]
    flip(next(path for path in with_checksums if path.parent.name == "offsets"))
    status, said = call_without_spark(project, "check", "p", "--files")
    assert (status, "p/_stream: damaged" in said) == (1, True), said
    folder.rename(project.folder / "elsewhere")
    status, said = call_without_spark(project, "check", "p", "--files")
    assert (status, "holds no checkpoint of that stream" in said) == (1, True), said
    assert "to fix it: put the checkpoint back" in said
