"""Checks of a pipeline's own hold days, or warn, wherever the tables are written or checked."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from tests.support.small_project import HEADER, TUMBLING, SmallProject
from tests.support.stored_rows import named_rows, stored_rows
from windows_pipeline.dagster import build_definitions
from windows_pipeline.storage.tables import tables_of

FIRST, LAST = f"{HEADER}a,0,1\na,1,-2\nb,2,7\n", f"{HEADER}z,1000,5\n"
NEGATIVE = {"not_negative": {"that": "v >= 0"}}
FEW = {"few": {"that": "c <= 1"}}


def blocking(checks: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name: {**check, "severity": "blocking"} for name, check in checks.items()}


def declare(
    project: SmallProject,
    records: Mapping[str, object] | None = None,
    results: Mapping[str, object] | None = None,
    **fields: object,
) -> None:
    project.declare({**TUMBLING, **fields, "checks": results or {}}, top={"checks": records or {}})


def final_keys(project: SmallProject) -> list[str]:
    return sorted(row["key"] for row in named_rows(project.windows.final_windows))


def with_u(lines: str) -> str:
    """The same records with a second part of their key."""
    header, *records = lines.splitlines()
    return "".join(f"{line}\n" for line in (f"{header},u", *(f"{one},x" for one in records)))


def test_warnings_are_the_same_by_days_and_in_a_stream(
    project: SmallProject, tmp_path: Path
) -> None:
    """Rule H1: `run` and `check` say what fails; a warning ends with status 0.

    Checks name the columns as the source declares them, parts of a key too.
    """
    streamed = SmallProject(tmp_path / "q", project.base, project.capfd, project.monkeypatch)
    holding_of_records = {
        "early": {"where": "k <> 'z'", "that": "t < 1000"},
        "half": {"that": "v >= 0", "mostly": 0.6},
        "apart_in_time": {"unique": ["k", "t"]},
        "few_late": {"where": "t > 1", "distinct": {"column": "k", "most": 1}},
    }
    records = {
        **NEGATIVE,
        "two": {"rows": {"least": 2}},
        "keys": {"that": "k in ('a', 'b')"},
        "nearly": {"that": "v >= 0", "mostly": 0.7},
        "once": {"unique": "k"},
        "both": {"distinct": {"column": "k", "least": 2, "most": 2}},
        **holding_of_records,
    }
    holding_of_results = {
        "apart": {"unique": ["k", "vs"]},
        "single": {"where": "u is null", "rows": {"most": 0}},
    }
    on_time = {"where": "reason = 'ON_TIME'", "table": "firings", "that": "c <= 1"}
    for each in (project, streamed):
        results = {
            **FEW,
            "fired": on_time,
            "parts": {"that": "u <> 'x' and k <> 'b'"},
            "some": {"rows": {"least": 1}},
            "alike": {"distinct": {"column": "vs", "most": 1}},
            **holding_of_results,
        }
        aggregates = {"c": "count(v)", "vs": "collect_list(v)"}
        each.declare(
            {**TUMBLING, "aggregates": aggregates, "trigger": {"late": True}, "checks": results},
            {"k": "string", "t": "bigint", "v": "double", "u": "string"},
            key=["k", "u"],
            top={"checks": records},
            max_per_batch=1 if each is streamed else None,
        )
    project.land(1, with_u(FIRST))
    project.land(2, with_u(LAST))
    status, said = project.ingest("run")
    assert status == 0, said
    of_tables = {
        "not_negative": "p/raw_events",
        **dict.fromkeys(("two", "keys", "nearly", "once", "both"), "p/raw_events"),
        **dict.fromkeys(("few", "parts", "some", "alike"), "p/w/final_windows"),
        "fired": "p/w/firings",
    }
    for name, table in of_tables.items():
        assert f"{table} {name}: warning" in said, said
    assert "'key': 'a,x'" in said, said
    header, *lines = with_u(FIRST).splitlines(keepends=True)
    for turn, text in enumerate((lines[0], "".join(lines[1:]))):
        streamed.land(1, header + text, f"{turn}.csv", turn)
    streamed.land(2, with_u(LAST), "2.csv", 2)
    assert streamed.ingest("stream")[0] == 0
    checked, holding = [], {**holding_of_records, **holding_of_results}
    for each in (project, streamed):
        status, said = each.call("check", "p")
        assert status == 0, said
        checked.append({name for name in (*of_tables, *holding) if f" {name}: warning" in said})
        assert "(a check of the pipeline's own); not so in 1 row, such as" in said
    assert checked[0] == checked[1] == set(of_tables)


def test_a_blocking_check_holds_a_day_or_its_results_until_it_changes(
    project: SmallProject,
) -> None:
    """The day is as if it had not come, until its file, or the check, is changed.

    Rule H1: a changed check leaves the definition as it was, so the next run goes on.
    """
    declare(project, blocking(NEGATIVE), blocking(FEW))
    project.land(1, FIRST)
    project.land(2, LAST)
    status, said = project.ingest("run")
    assert (status, "p/raw_events: NOT published" in said) == (1, True), said
    assert "p/raw_events not_negative: FAILED" in said
    assert "'v': '-2.0'" in said
    assert stored_rows(project.source.raw_events) == []
    project.land(1, FIRST.replace("-2", "2"))
    status, said = project.ingest("run")
    assert (status, "p/w/final_windows: NOT published" in said) == (1, True), said
    assert "few: FAILED" in said
    assert stored_rows(project.windows.final_windows) == []
    assert stored_rows(project.windows.keyed_windows) != []
    declare(project, blocking(NEGATIVE), FEW)
    status, said = project.ingest("run")
    assert (status, "few: warning" in said) == (0, True), said
    assert final_keys(project) == ["a", "b"]


def test_corrections_and_rebuilds_are_checked(project: SmallProject) -> None:
    """Rule E1: what a blocking check refuses replaces no published window."""
    declare(project, results=blocking(FEW))
    project.land(1, FIRST.replace("a,1,-2\n", ""))
    project.land(2, LAST)
    status, said = project.ingest("run")
    assert status == 0, said
    before = stored_rows(project.windows.final_windows)
    project.land(1, FIRST)
    project.call("run", "p", "--from", "2026-11-01", "--to", "2026-11-01")
    correct = ("correct", "p", "--windows", "w", "--from", "2026-11-01", "--cause", "more")
    status, said = project.call(*correct)
    assert (status, "few: FAILED" in said) == (1, True), said
    assert stored_rows(project.windows.final_windows) == before
    assert_dagster_names_day_and_commands(project)
    declare(project, results=FEW)
    status, said = project.call(*correct)
    assert (status, "few: warning" in said) == (0, True), said
    counts = {row["key"]: row["c"] for row in named_rows(project.windows.final_windows)}
    assert counts == {"a": 2, "b": 1}

    published = stored_rows(project.windows.final_windows)
    declare(project, results=blocking(FEW))
    status, said = project.call("rebuild", "p", "--from", "final_windows")
    assert (status, "few: FAILED" in said) == (1, True), said
    assert stored_rows(project.windows.final_windows) == published
    declare(project, results=FEW)
    status, said = project.call("rebuild", "p")
    assert status == 0, said
    counts = {row["key"]: row["c"] for row in named_rows(project.windows.final_windows)}
    assert counts == {"a": 2, "b": 1}


def assert_dagster_names_day_and_commands(project: SmallProject) -> None:
    """The job of the same correction fails on the day whose windows the check refuses."""
    defs = build_definitions([project.pipeline], project.settings)
    config = {"from": "2026-11-01", "cause": "more"}
    with dg.DagsterInstance.ephemeral() as instance:
        result = defs.resolve_job_def("p_correction").execute_in_process(
            config,
            instance=instance,
            raise_on_error=False,
        )
    (failure,) = (event for event in result.all_events if event.is_step_failure)
    said = str(failure.step_failure_data.error)
    assert "few failed on 1 day, 2026-11-0" in said
    assert "run the job p_correction again" in said
    assert "windows-pipeline correct p --windows w --from 2026-11-01 --cause more" in said


def test_dagster_shows_and_runs_them(
    project: SmallProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are checks of the tables' assets, as those that are always there."""
    declare(project, NEGATIVE, blocking(FEW), trigger={"late": True})
    project.land(1, FIRST)
    project.land(2, LAST)
    monkeypatch.chdir(project.folder)
    defs = build_definitions([project.pipeline], project.settings)
    keys = {
        (key.asset_key.to_user_string(), key.name)
        for key in defs.resolve_asset_graph().asset_check_keys
    }
    assert {("p/raw_events", "rules"), ("p/w/final_windows", "rules")} <= keys
    with dg.DagsterInstance.ephemeral() as instance:
        result = defs.resolve_job_def("p_all").execute_in_process(
            instance=instance,
            tags={
                "dagster/asset_partition_range_start": "2026-11-01",
                "dagster/asset_partition_range_end": "2026-11-02",
            },
            raise_on_error=False,
        )
    assert not result.success
    found = {
        (evaluation.metadata["failed_rules"].value, evaluation.severity, evaluation.partition)
        for evaluation in result.get_asset_check_evaluations()
        if not evaluation.passed and evaluation.check_name == "rules" and evaluation.partition
    }
    warn, error = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR
    assert {found[:2] for found in found} == {("not_negative", warn), ("few", error)}, found
    (failure,) = (event for event in result.all_events if event.is_step_failure)
    said = str(failure.step_failure_data.error)
    assert "p/w/final_windows: few failed on " in said
    again = "(job p_all), or: windows-pipeline run p --from 2026-11-01 --to 2026-11-02"
    assert again in said
    blocked = {
        str(evaluation.metadata["next"].value)
        for evaluation in result.get_asset_check_evaluations()
        if evaluation.severity == error and not evaluation.passed
    }
    (step,) = blocked
    assert step.startswith("Nothing was published, and the table is unchanged. Fix the cause")
    assert step.endswith(again)
    (raw,) = (
        evaluation
        for evaluation in result.get_asset_check_evaluations()
        if "not_negative_sample" in evaluation.metadata and evaluation.partition
    )
    sample = raw.metadata["not_negative_sample"]
    assert isinstance(sample, dg.TableMetadataValue)
    assert sample.records[0].data.keys() == {"arrival_unit", "offset", "k", "t", "v"}
    assert stored_rows(project.windows.final_windows) == []
    fired = tables_of(project.pipeline, project.settings.warehouse).of("w")
    assert fired is not None
    assert not Path(fired.firings.location).exists()
    assert {row["arrival_unit"] for row in named_rows(project.source.raw_events)} == {
        date(2026, 11, 1),
        date(2026, 11, 2),
    }
