"""Rows of two definitions are never mixed; rebuilding follows the new one."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

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
    rebuilt = list(rebuild(spark, changed.pipeline, changed.settings, "raw_events"))
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
    assert list(rebuild(spark, changed.pipeline, changed.settings)) == []


def test_a_changed_rule_touches_alerts_only(
    full_run: Project, tmp_path: Path, spark: SparkSession
) -> None:
    project = full_run.copy(tmp_path / "rule", derived=True)
    version = version_of(spark, project.windows.final_windows)
    busy = {"when": "record_count > 20", "severity": "record_count"}
    project.declare(grace=SHORT_GRACE, alerts={"busy": busy})
    rebuilt = list(rebuild(spark, project.pipeline, project.settings))
    assert [name for name, _ in rebuilt] == ["flights/hourly/alerts"]
    assert version_of(spark, project.windows.final_windows) == version
    rules = project.windows.alerts.read(spark).select("rule").distinct().collect()
    assert [row.rule for row in rules] == ["busy"]
