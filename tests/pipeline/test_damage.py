"""Files of tables that are gone or cut: each command names the way back, and the way works."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.small_project import HEADER, TUMBLING, SmallProject
from tests.support.spark import forget_delta_logs
from tests.support.stored_files import commits, data_files
from tests.support.stored_rows import stored_rows
from windows_pipeline.cli.main import main
from windows_pipeline.compat.spark_session import start_session

MOST_LINES = 5
DAYS = 3
DAY_MS = 86_400_000
ALERTING = {**TUMBLING, "alerts": {"big": {"when": "s > 50", "severity": "s"}}}
FROM_RAW = "windows-pipeline rebuild p --from raw_events"
FROM_KEYED = "windows-pipeline rebuild p --from keyed_windows"
FROM_FINAL = "windows-pipeline rebuild p --from final_windows"
FROM_ALERTS = "windows-pipeline rebuild p --from alerts"
OLD_DIGESTS = b"0123abcd of another release\n"


def compute(project: SmallProject) -> None:
    project.declare(ALERTING)
    for day in range(DAYS):
        lines = (f"{'ab'[n % 2]},{day * DAY_MS + 7 * n},{n}\n" for n in range(60))
        project.land(day + 1, HEADER + "".join(lines))
    status, said = project.ingest("run")
    assert status == 0, said
    (warehouse_of(project) / "raw_events" / "_file_digests").write_bytes(OLD_DIGESTS)


@pytest.fixture
def computed(project: SmallProject, shared: Path) -> SmallProject:
    """A project whose days are computed, in a warehouse of a release that listed digests."""
    return project.copy_of(shared / "computed_days", compute)


def warehouse_of(project: SmallProject) -> Path:
    return project.folder / "warehouse" / "p"


def results(project: SmallProject) -> dict[str, list[tuple[object, ...]]]:
    names = ("keyed_windows", "late_records", "final_windows", "alerts")
    rows = {name: stored_rows(getattr(project.windows, name), "correction") for name in names}
    return {name: sorted(of_table, key=repr) for name, of_table in rows.items()}


def errors_of(project: SmallProject, *args: str) -> tuple[int, list[str]]:
    """A call's exit status, and the lines that it printed to standard error."""
    project.monkeypatch.chdir(project.folder)
    project.monkeypatch.setattr("sys.argv", ["windows-pipeline", *args])
    project.capfd.readouterr()
    with pytest.raises(SystemExit) as stopped:
        main(start_session)
    said = project.capfd.readouterr().err
    return int(stopped.value.code or 0), [line for line in said.splitlines() if line.strip()]


def cut_data(table: Path) -> None:
    # All files, as their names are random and a command reads only the days it needs.
    for file in data_files(table):
        file.write_bytes(file.read_bytes()[:100])


def delete_data(table: Path) -> None:
    for file in data_files(table):
        file.unlink()


def cut_log(table: Path) -> None:
    commits(table)[-1].write_bytes(b"{")


def test_a_command_names_table_and_way_back_in_a_few_lines(
    computed: SmallProject, spark: SparkSession
) -> None:
    """Of what the driver reads, of what Spark reads, and of a table that is gone."""
    warehouse, whole = warehouse_of(computed), computed.folder / "whole"
    shutil.copytree(warehouse, whole)
    cases: list[tuple[str, Callable[[Path], object], str, str]] = [
        ("raw_events", delete_data, "check", FROM_RAW),
        ("arrival_log", cut_log, "status", "move the folder p/arrival_log"),
        ("w/final_windows", cut_data, "check", FROM_FINAL),
        ("w/alerts", cut_data, "alerts", FROM_ALERTS),
        ("w/_computed_days", cut_data, "run", "windows-pipeline run p"),
        ("w/alerts", shutil.rmtree, "check", FROM_ALERTS),
        ("w/late_records", shutil.rmtree, "check", FROM_KEYED),
    ]
    for table, damage, command, way_back in cases:
        damage(warehouse / table)
        forget_delta_logs(spark)
        status, lines = errors_of(computed, command, "p")
        said = "\n".join(lines)
        assert status == 2, (table, said)
        assert len(lines) <= MOST_LINES, said
        assert f"p/{table}: " in said
        assert way_back in said, (table, said)
        shutil.rmtree(warehouse)
        shutil.copytree(whole, warehouse)
        forget_delta_logs(spark)


def test_the_ways_back_lead_back(computed: SmallProject, spark: SparkSession) -> None:
    """Each computes the same rows again; a log, and bookkeeping, are moved away first."""
    warehouse, before = warehouse_of(computed), results(computed)
    aside = computed.folder / "aside"
    ways = [
        ({"raw_events": delete_data, "w/keyed_windows": cut_data}, ["arrival_log"], FROM_RAW),
        ({"w/keyed_windows": delete_data}, ["w/corrections", "w/alerts"], FROM_KEYED),
        ({"w/alerts": cut_data}, ["w/final_windows"], FROM_FINAL),
        ({}, ["w/_computed_days"], "windows-pipeline run p"),
    ]
    for damages, moved, command in ways:
        for table, damage in damages.items():
            damage(warehouse / table)
        for table in moved:
            cut_log(warehouse / table)
            (warehouse / table).rename(aside)
            shutil.rmtree(aside)
        forget_delta_logs(spark)
        status, said = computed.call(*command.split()[1:])
        assert status == 0, said
        assert results(computed) == before, command
    assert (warehouse / "raw_events" / "_file_digests").read_bytes() == OLD_DIGESTS
    assert len(list(warehouse.rglob("_file_digests"))) == 1


def test_a_lost_raw_events_is_named(computed: SmallProject, spark: SparkSession) -> None:
    """Days that arrival_log names are ingested: without their rows nothing is right."""
    shutil.rmtree(warehouse_of(computed) / "raw_events" / "_delta_log")
    forget_delta_logs(spark)
    status, said = computed.call("status", "p")
    assert (status, "p/raw_events is gone" in said, FROM_RAW in said) == (1, True, True), said
    status, said = computed.call("run", "p")
    assert (status, "p/raw_events must hold the" in said, FROM_RAW in said) == (2, True, True), said
