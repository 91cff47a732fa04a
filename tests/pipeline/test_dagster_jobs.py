"""The jobs that rebuild and check a pipeline's tables do what the commands of these names do."""

from __future__ import annotations

import gzip

import dagster as dg
import pytest

from tests.support.small_project import HEADER, TUMBLING, SmallProject
from tests.support.stored_rows import named_rows
from windows_pipeline.dagster import build_definitions

ALERTS = {"any": {"when": "c >= 1", "severity": "c"}}


@pytest.fixture
def ingested(project: SmallProject, monkeypatch: pytest.MonkeyPatch) -> SmallProject:
    """Two days: the windows of the keys 'a' and 'b' from 0 to 10 are final."""
    project.declare({**TUMBLING, "alerts": ALERTS})
    project.land(1, f"{HEADER}a,0,1\nb,2,7\na,12,9\n")
    project.land(2, f"{HEADER}z,13,5\n")
    status, said = project.ingest("run")
    assert status == 0, said
    monkeypatch.chdir(project.folder)
    return project


def ran(
    project: SmallProject, job: str, config: dict[str, object] | None = None
) -> dg.ExecuteInProcessResult:
    """A run of one of the pipeline's jobs; the config is that of its fields."""
    definitions = build_definitions([project.pipeline], project.settings)
    run = definitions.resolve_job_def(f"p_{job}")
    with dg.DagsterInstance.ephemeral() as instance:
        return run.execute_in_process(config or {}, instance=instance, raise_on_error=False)


def final_sums(project: SmallProject) -> dict[tuple[str, int], float]:
    return {
        (row["key"], round(row["window_start"].timestamp() * 1000)): row["s"]
        for row in named_rows(project.windows.final_windows)
    }


def test_a_changed_definition_is_rebuilt_and_checked(ingested: SmallProject) -> None:
    """Rule H1: the results of the new definition, by hand; Dagster has each day of each table."""
    project = ingested
    assert final_sums(project) == {("a", 0): 1.0, ("b", 0): 7.0}
    project.declare({**TUMBLING, "size": "12 ms", "alerts": ALERTS})
    result = ran(project, "rebuild")
    assert result.success
    assert final_sums(project) == {("a", 0): 1.0, ("b", 0): 7.0}
    ends = {
        round(row["window_end"].timestamp() * 1000) for row in named_rows(project.windows.alerts)
    }
    assert ends == {12}
    days = {"2026-11-01", "2026-11-02"}
    made = {
        (event.asset_key.to_user_string(), event.partition)
        for event in result.all_events
        if event.is_step_materialization and event.asset_key
    }
    tables = ("keyed_windows", "final_windows", "alerts")  # the others have no rows
    of_tables = {(f"p/w/{table}", day) for table in tables for day in days}
    assert made == of_tables | {("p/w/episodes", "2026-11-01")}

    checked = ran(project, "check")
    assert checked.success
    found = {
        (one.asset_key.to_user_string(), one.check_name, one.partition, one.passed)
        for one in checked.get_asset_check_evaluations()
    }
    with_rules = ("raw_events", "w/keyed_windows", "w/final_windows", "w/alerts")
    rules = {(f"p/{table}", "rules", None, True) for table in with_rules}
    # Both windows end at 12, the time of the first day's last record, which closes them.
    alerts = {("p/w/alerts", "alert_any", day, False) for day in ("2026-11-01", None)}
    assert found == rules | alerts


def test_a_correction_begins_only_if_all_definitions_can_be_corrected(
    project: SmallProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule E1: the second definition has published the first day alone, so none is corrected."""
    other = {**TUMBLING, "size": "20 ms"}
    project.declare(TUMBLING, others={"x": other})
    project.land(1, f"{HEADER}a,0,1\na,40,1\n")
    project.ingest("run")
    project.declare(TUMBLING)
    project.land(2, f"{HEADER}z,100,5\n")
    project.ingest("run")
    project.declare(TUMBLING, others={"x": other})
    monkeypatch.chdir(project.folder)
    result = ran(
        project, "correction", {"from": "2026-11-01", "to": "2026-11-02", "cause": "a trial"}
    )
    assert not result.success
    (failure,) = (event for event in result.all_events if event.is_step_failure)
    assert "2026-11-01" in str(failure.step_failure_data.error)
    assert named_rows(project.windows.corrections) == []
    wrong = ran(project, "correction", {"from": "yesterday", "cause": "a trial"})
    (failure,) = (event for event in wrong.all_events if event.is_step_failure)
    said = str(failure.step_failure_data.error)
    assert "from: must be a day such as 2013-01-02, not 'yesterday'" in said
    wrong = ran(
        project, "correction", {"from": "2026-11-02", "to": "2026-11-01", "cause": "a trial"}
    )
    (failure,) = (event for event in wrong.all_events if event.is_step_failure)
    said = str(failure.step_failure_data.error)
    assert "to: must not be before from, 2026-11-02, but is 2026-11-01" in said
    command = ("correct", "p", "--from", "2026-11-01", "--cause", "b")
    status, said = project.call(*command, "--to", "2026-11-02")
    assert (status, "p/x/final_windows must have these days" in said) == (2, True), said
    assert named_rows(project.windows.corrections) == []
    status, said = project.call(*command, "--windows", "w")
    assert status == 0, said


def test_a_correction_by_the_shell_corrects_all_definitions(project: SmallProject) -> None:
    """Rule E1: of a day that was ingested again; before that, a changed file is named."""
    project.declare(TUMBLING, others={"x": {**TUMBLING, "size": "20 ms"}})
    project.land(1, f"{HEADER}a,0,1\na,40,1\n")
    assert project.ingest("run")[0] == 0
    file = project.land(1, f"{HEADER}a,0,5\na,40,1\n")
    command = ("correct", "p", "--from", "2026-11-01", "--cause", "b")
    status, said = project.call(*command)
    assert (status, said.count("nothing differs from the published results")) == (0, 2), said
    assert f"2026-11-01 changed after it was ingested ({file.name} " in said
    again = ("--from", "2026-11-01", "--to", "2026-11-01")
    assert f"To ingest the day again: windows-pipeline run p {' '.join(again)}; then" in said
    project.call("run", "p", *again)  # ingested, and final windows are not changed by a run
    status, said = project.call(*command)
    assert (status, "changed after it was ingested" in said) == (0, False), said
    for name in ("w", "x"):
        assert f"p {name}: correction 1 is published" in said


def test_episodes_lists_the_most_urgent_level_first(project: SmallProject) -> None:
    """Severities of rules have units of their own; numbers are those that Dagster shows."""
    rules = {
        "hot": {"when": "s >= 1", "severity": "s", "level": "warning"},
        "far": {"when": "s >= 1", "severity": "c", "level": "critical"},
        "any": {"when": "s >= 1", "severity": "s * 100"},
    }
    project.declare({**TUMBLING, "alerts": rules})
    project.land(1, f"{HEADER}a,0,44.1\na,1,0.1\nz,100,0\n")
    assert project.ingest("run")[0] == 0
    status, said = project.call("episodes", "p")
    assert (status, "44.2" in said, "44.2000" in said) == (0, True, False), said
    places = [said.find(f" {text} ") for text in ("a far", "a hot", "a any")]
    assert -1 not in places, said
    assert places == sorted(places), said


def test_a_stream_that_a_bad_file_stops_shows_what_it_published(
    project: SmallProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule A8: the micro-batches before the bad file's stay, so the run has their days."""
    project.declare(stream=True, max_per_batch=1)
    project.land(1, f"{HEADER}a,0,1\nb,2,7\na,12,9\n")
    project.land(2, gzip.compress(f"{HEADER}a,20,1\n".encode())[:-9], "b.csv.gz")
    monkeypatch.chdir(project.folder)
    run = ran(project, "stream")
    (failure,) = (event for event in run.all_events if event.is_step_failure)
    said = str(failure.step_failure_data.error)
    assert "2026-11-02/b.csv.gz: " in said
    assert "run the job p_stream again, or: windows-pipeline stream p" in said
    made = {event.partition for event in run.get_asset_materialization_events()}
    checked = {str(found.description) for found in run.get_asset_check_evaluations()}
    assert made == {"2026-11-01"}
    assert checked
    assert all("; 2026-11-01: " in said for said in checked)
