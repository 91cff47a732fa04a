"""Rows of two definitions are never mixed; rebuilding follows the new one."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.command_line import call
from tests.support.pipelines import DERIVED, LONGER_GRACE, SHORT_GRACE, Project, version_of
from windows_pipeline.jobs.days.chain import rebuild


def test_a_changed_definition_is_refused_then_rebuilt(
    full_run: Project, longer_grace: Project, tmp_path: Path, spark: SparkSession
) -> None:
    changed = full_run.copy(tmp_path / "changed", derived=True)
    before = changed.all_rows()
    changed.declare(grace=LONGER_GRACE)

    refused = changed.run(1, 1, *DERIVED)
    assert not refused.success
    (failure,) = [event for event in refused.all_events if event.is_step_failure]
    said = str(failure.step_failure_data.error)
    assert "windows.hourly.grace: was '1 hour 15 minutes', is '2 hours'" in said
    assert "windows-pipeline rebuild flights" in said
    assert "windows-pipeline correct flights" in said

    tables = (
        changed.source.raw_events,
        changed.windows.keyed_windows,
        changed.windows.final_windows,
        changed.windows.alerts,
    )
    versions = {table.name: version_of(spark, table) for table in tables}
    columns = {table.name: table.read(spark).schema for table in tables}
    rebuilt = list(rebuild(spark, changed.source, changed.settings, "raw_events"))
    assert [name.rsplit("/", 1)[1] for name, _ in rebuilt] == [
        "raw_events",
        "keyed_windows",
        "final_windows",
        "alerts",
    ]
    assert all(result.published for _, result in rebuilt)
    after = changed.all_rows()
    assert after != before

    # What the new definition gives where there was no table before.
    assert after == longer_grace.all_rows()
    # Readers see old or new rows: no version of a rebuilt table lacks rows.
    for table in tables:
        newest = version_of(spark, table)
        assert newest > versions[table.name]
        seen = range(versions[table.name], newest + 1)
        assert all(table.read_version(spark, version).take(1) for version in seen), table.name
        assert table.read(spark).schema == columns[table.name]
        assert not table.is_stale(spark)
    # Nothing is left to do.
    assert list(rebuild(spark, changed.source, changed.settings)) == []


def test_a_changed_rule_is_tried_and_touches_alerts_only(
    full_run: Project,
    tmp_path: Path,
    spark: SparkSession,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rule E5: a rule that is tried raises what a rebuild raises; nothing is written before it."""
    project = full_run.copy(tmp_path / "rule", derived=True)
    version = version_of(spark, project.windows.final_windows)
    old = {"busy": {"when": "record_count > 25", "severity": "0"}}
    project.declare(grace=SHORT_GRACE, alerts=old)
    assert len(list(rebuild(spark, project.source, project.settings))) == 1
    were = raised_by_day(project, spark)
    busy = {"when": "record_count > 20", "severity": "record_count"}
    project.declare(grace=SHORT_GRACE, alerts={"busy": busy})
    project.write_settings()
    monkeypatch.chdir(project.folder)

    status, said = call(capfd, monkeypatch, "run", "flights", start=no_session)
    tried = "windows-pipeline alerts flights --windows hourly --try busy"
    assert (status, f"first what a changed rule raises: {tried}" in said) == (2, True), said
    status, said = call(capfd, monkeypatch, "alerts", "flights", "--try", "no_such > 3")
    assert (status, "there is no column 'no_such'" in said, "rule: busy" in said) == (2, True, True)
    version_tried = version_of(spark, project.windows.alerts)
    found = {}
    for rule in ("busy", busy["when"]):
        status, said = call(capfd, monkeypatch, "alerts", "flights", "--try", rule, "--json")
        assert status == 0, said
        rows = json.loads(said)
        assert {row.pop("_windows") for row in rows} == {"hourly"}
        found[rule] = {row.pop("arrival_unit"): row for row in rows}
    status, said = call(capfd, monkeypatch, "alerts", "flights", "--try", "busy")
    assert version_of(spark, project.windows.alerts) == version_tried

    rebuilt = list(rebuild(spark, project.source, project.settings))
    assert [name for name, _ in rebuilt] == ["flights/hourly/alerts"]
    assert version_of(spark, project.windows.final_windows) == version
    rules = project.windows.alerts.read(spark).select("rule").distinct().collect()
    assert [row.rule for row in rules] == ["busy"]
    are = raised_by_day(project, spark)
    assert found[busy["when"]] == are
    published = {name: {"published": of["alerts"]} for name, of in were.items()}
    none = {"alerts": 0, "episodes": 0}
    assert found["busy"] == {
        name: {**are.get(name, none), **published.get(name, {"published": 0})}
        for name in are.keys() | published.keys()
    }
    alerts, raised = (sum(of["alerts"] for of in days.values()) for days in (were, are))
    of_all = project.windows.alerts.read(spark).select("key", "episode_start").distinct().count()
    expected = f"in all {raised:,} alerts in {of_all:,} episodes on {len(found['busy'])} days; "
    assert f"{expected}published are {alerts:,} alerts; nothing was written" in said


def raised_by_day(project: Project, spark: SparkSession) -> dict[str, dict[str, int]]:
    """The alerts of each day, and the episodes that they are of."""
    days: dict[str, list[tuple[str, datetime]]] = {}
    for row in project.windows.alerts.read(spark).collect():
        days.setdefault(str(row.arrival_unit), []).append((row.key, row.episode_start))
    return {day: {"alerts": len(of), "episodes": len(set(of))} for day, of in days.items()}


def no_session(*_: object) -> SparkSession:
    raise AssertionError("a changed definition is refused before Spark starts")
