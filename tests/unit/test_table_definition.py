"""Which fields of a pipeline's file decide the rows of each table."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pipeline_texts import FLIGHTS, PIPELINES, changed, load_text, table_definition
from windows_pipeline.config import (
    Pipeline,
    definition,
    definition_changes,
    definition_digest,
    load_pipeline,
)
from windows_pipeline.config.model import SHARED_TABLES
from windows_pipeline.storage.catalog import OF_SOURCE

TABLES = (
    *("keyed_windows", "late_records", "final_windows", "corrections", "alerts"),
    *("episodes", "failed_windows"),
)


def definitions(pipeline: Pipeline) -> dict[str, dict[str, str]]:
    shared = ("raw_events", "rejected_records", "arrival_log")
    return {
        **{table: table_definition(pipeline, None, table) for table in shared},
        **{table: table_definition(pipeline, "hourly", table) for table in TABLES},
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("time_difference: 60 minutes", "time_difference: 1 hour"),
        ("max_ahead: 1 hour", "max_ahead: 3600 seconds"),
        ("path: data/flights  ", "path: elsewhere  "),
        ("format: jsonl\n", "format: jsonl\n  stream: true\n  max_per_batch: 7\n"),
        ("end: 2014-01-01", "end: 2015-01-01"),
        ("avg(dep_delay)", "AVG( dep_delay )"),
        ("emit_empty: true", "emit_empty: true\n    partial_results: true"),
        ("emit_empty: true", "emit_empty: true\n    on_failed: block"),
        (
            "      max_dep_delay: max(dep_delay)\n      min_dep_delay: min(dep_delay)\n",
            "      min_dep_delay: min(dep_delay)\n      max_dep_delay: max(dep_delay)\n",
        ),
    ],
)
def test_equal_fields_have_equal_definitions(tmp_path: Path, old: str, new: str) -> None:
    before = definitions(load_text(tmp_path, FLIGHTS))
    after = definitions(load_text(tmp_path, changed(old, new)))
    assert after == before
    for table, fields in after.items():
        assert definition_digest(fields) == definition_digest(before[table])


@pytest.mark.parametrize(
    ("old", "new", "touched", "change"),
    [
        (
            "grace: 6 hours",
            "grace: 5 hours",
            set(TABLES),
            "windows.hourly.grace: was '6 hours', is '5 hours'",
        ),
        (
            "      min_dep_delay: min(dep_delay)\n",
            "",
            set(TABLES),
            "windows.hourly.aggregates.min_dep_delay: was 'min(dep_delay)', is not set now",
        ),
        (
            "severity: -record_count",
            "severity: record_count",
            {"alerts", "episodes"},
            "windows.hourly.alerts.quiet.severity: was '-record_count', is 'record_count'",
        ),
        (
            "emit_empty: true",
            "emit_empty: true\n    partial_results: false",
            {"keyed_windows"},
            "windows.hourly.partial_results: was 'true', is 'false'",
        ),
        (
            "max_ahead: 1 hour",
            "max_ahead: 2 hours",
            {"raw_events", "rejected_records", "arrival_log", *TABLES},
            "source.max_ahead: was '1 hour', is '2 hours'",
        ),
        (
            "start: 2013-01-01",
            "start: 2013-01-02",
            {"raw_events", "rejected_records", "arrival_log", *TABLES},
            "partitions.start: was '2013-01-01', is '2013-01-02'",
        ),
    ],
)
def test_a_changed_field_changes_the_definitions_that_depend_on_it(
    tmp_path: Path, old: str, new: str, touched: set[str], change: str
) -> None:
    before = definitions(load_text(tmp_path, FLIGHTS))
    after = definitions(load_text(tmp_path, changed(old, new)))
    assert {table for table in before if before[table] != after[table]} == touched
    for table in touched:
        assert definition_changes(before[table], after[table]) == [change]
        assert definition_digest(before[table]) != definition_digest(after[table])


def test_tables_of_results_are_distinguished_from_those_of_releases_without_failed(
    tmp_path: Path,
) -> None:
    """Rule G3: what lacks the column is refused, and the message names the column."""
    found = definitions(load_text(tmp_path, FLIGHTS))
    with_column = [name for name, fields in found.items() if "columns.failed" in fields]
    assert with_column == ["keyed_windows", "final_windows", "corrections", "alerts", "episodes"]
    now = found["final_windows"]
    old = {name: text for name, text in now.items() if name != "columns.failed"}
    assert definition_changes(old, now) == ["columns.failed: was not set, is 'array<string>'"]


def test_alerts_of_releases_without_episodes_are_refused(tmp_path: Path) -> None:
    """Their rebuild fills the table episodes, too."""
    found = definitions(load_text(tmp_path, FLIGHTS))
    assert [name for name, fields in found.items() if "tables.episodes" in fields] == ["alerts"]


def test_a_table_without_a_format_has_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = definitions(load_text(tmp_path, FLIGHTS))
    monkeypatch.setattr(definition, "FORMAT", "2")
    next_release = definitions(load_text(tmp_path, FLIGHTS))
    for table, fields in now.items():
        unnumbered = {name: text for name, text in fields.items() if name != "format"}
        assert definition_digest(unnumbered) == definition_digest(fields)
        assert definition_changes(unnumbered, fields) == []
        for old in (unnumbered, fields):
            assert definition_digest(old) != definition_digest(next_release[table])
            assert definition_changes(old, next_release[table]) == ["format: was '1', is '2'"]


def test_idle_after_changes_the_definitions_of_window_tables_only(tmp_path: Path) -> None:
    of_partitions = "max_ahead: 1 hour\n  source_partition: dest"
    before = definitions(load_text(tmp_path, changed("max_ahead: 1 hour", of_partitions)))
    idle = f"{of_partitions}\n  idle_after: 1 day"
    after = definitions(load_text(tmp_path, changed("max_ahead: 1 hour", idle)))
    assert {table for table in before if before[table] != after[table]} == set(TABLES)
    for table in TABLES:
        changes = definition_changes(before[table], after[table])
        assert changes == ["source.idle_after: was not set, is '1 day'"]


def test_the_windows_of_a_definition_must_exist() -> None:
    flights = load_pipeline(PIPELINES / "flights.yaml")
    with pytest.raises(ValueError, match="use one of hourly"):
        table_definition(flights, "daily", "alerts")


def test_no_windows_have_the_name_of_a_table_of_the_source() -> None:
    assert {kind.name for kind in OF_SOURCE if kind.step} == set(SHARED_TABLES)
