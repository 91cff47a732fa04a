"""What a run says that publishes nothing: which days, and the commands and jobs that help."""

from __future__ import annotations

import json
from pathlib import Path

import dagster as dg
import pytest

from tests.support.small_project import HEADER, TUMBLING, SmallProject
from windows_pipeline.dagster import build_definitions

FIRST, LAST = "2026-11-01", "2026-11-02"
CORRECT = f"run the job p_correction, or: windows-pipeline correct p --from {FIRST} --cause TEXT"
OTHERS = {"x": {**TUMBLING, "size": "20 ms"}}
FAILED_RUNS = {"file": "messages.ndjson", "events": ["failed"]}


def failure_of(project: SmallProject) -> str:
    """What the run page says of a run of the job `p_all` for both days, which fails."""
    definitions = build_definitions([project.pipeline], project.settings)
    with dg.DagsterInstance.ephemeral() as instance:
        result = definitions.resolve_job_def("p_all").execute_in_process(
            instance=instance,
            tags={
                "dagster/asset_partition_range_start": FIRST,
                "dagster/asset_partition_range_end": LAST,
            },
            raise_on_error=False,
        )
    failures = [event for event in result.all_events if event.is_step_failure]
    assert failures
    return " ".join(str(failures[0].step_failure_data.error).split())


def publish(project: SmallProject) -> None:
    project.declare(others=OTHERS, top={"notify": {"people": FAILED_RUNS}})
    project.land(1, f"{HEADER}a,0,1\na,100,2\n")
    project.land(2, f"{HEADER}z,200,5\n")
    status, said = project.ingest("run")
    assert status == 0, said


@pytest.fixture
def published(project: SmallProject, shared: Path, monkeypatch: pytest.MonkeyPatch) -> SmallProject:
    """Two days; the first day's windows are final in both definitions."""
    project.copy_of(shared / "published", publish)
    monkeypatch.chdir(project.folder)
    return project


def noted(project: SmallProject) -> list[tuple[str, str]]:
    """The failed commands that people are notified of, and why each failed."""
    file = Path(project.settings.warehouse) / "p" / "_failures.jsonl"
    lines = map(json.loads, file.read_text().splitlines())
    return [(line["what"], line["text"]) for line in lines]


def shown(instance: dg.DagsterInstance, table: str) -> set[str]:
    """The days of a table's materializations."""
    return instance.get_materialized_partitions(dg.AssetKey(["p", "w", table]))


def test_a_day_landed_again_leads_to_one_correction(
    published: SmallProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule E1: with the day, in the shell and on the run page; doing it again is no advice."""
    project = published
    project.land(1, f"{HEADER}a,0,100\na,100,2\n")
    status, said = project.call("run", "p", "--from", FIRST)
    assert status == 1, said
    unchanged = "Nothing was published, and the table is unchanged, as final windows would change"
    again = f"windows-pipeline run p --from {FIRST} --to {LAST}"
    mend = f"If not, mend the day's files, then: {again}"
    at_end = "see the end of this output"
    assert said.count(f"{unchanged}. If they are to change, {at_end}. {mend}") == 2, said
    assert said.count("windows-pipeline correct") == 1, said
    start, end = "1970-01-01 00:00:00", "1970-01-01 00:00:00.010"
    window = f"'arrival_unit': '{FIRST}', 'key': 'a', 'window_start': '{start}', 'window_end': "
    window += f"'{end}', 'first_event_time': '{start}', 'last_event_time': '{start}', "
    values = "'record_count': '1', 'c': '1', 's': '1.0 -> 100.0', 'failed': '[]', "
    assert f"{{{window}{values}'change': 'changed'}}" in said
    for name in ("w", "x"):
        waits = "ingested and not computed to the end, as final windows would change"
        assert f"p {name}: 2 days, {FIRST} to {LAST}: {waits}" in said
    assert said.endswith(f"p: to change final windows, {CORRECT} ")
    for wrong in ("DAY", "--windows", "same command"):
        assert wrong not in said

    refused = f"final_never_changed failed on 1 day, {FIRST}"
    why = [f"p/{name}/final_windows: {refused}" for name in ("w", "x")]
    why += [
        f"{name} is not computed to the end for 2 days, {FIRST} to {LAST}" for name in ("w", "x")
    ]
    assert noted(project) == [("windows-pipeline run", "; ".join(why))]

    failed = failure_of(project)
    assert f"final_never_changed failed on 1 day, {FIRST} (2 rows): " in failed
    both = f"(job p_all), or: windows-pipeline run p --from {FIRST} --to {LAST}"
    mend = f"If not, mend the day's files, then: materialize the days again {both}"
    assert f"{unchanged}. If they are to change, {CORRECT}. {mend}" in failed
    assert "DAY" not in failed

    status, said = project.call("check", "p")
    resume = "p: if no run is active, resume with: windows-pipeline run p. If the run refuses to"
    assert said.count(f"{resume} change final windows, {CORRECT}") == 1, said
    assert (status, "DAY" in said) == (1, False), said
    command = CORRECT.partition("windows-pipeline ")[2].split()
    home = project.folder / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    status, said = project.call(*command)
    assert (status, said.count("correction 1 is published")) == (0, 2), said
    with dg.DagsterInstance.get() as instance:
        (run,) = instance.get_runs()
        # Also the day that the correction found right is green.
        assert shown(instance, "final_windows") == shown(instance, "alerts") == {FIRST, LAST}
        assert shown(instance, "corrections") == {FIRST}
        assert (run.job_name, run.is_success) == ("p_in_shell", True)
        assert run.tags["windows-pipeline/command"] == (
            f"windows-pipeline correct p --from {FIRST} --cause TEXT"
        )
        assert run.tags["windows-pipeline/did"] == "; ".join(
            f"{name}: correction 1 is published, 1 day, {FIRST}" for name in ("w", "x")
        )


def test_a_changed_definition_names_the_jobs(published: SmallProject) -> None:
    """Rules E1, H1: a changed grace can be corrected from the first published day on."""
    project = published
    project.declare({**TUMBLING, "grace": "3 ms"}, others=OTHERS)
    failed = failure_of(project)
    assert "windows.w.grace: was '0 seconds', is '3 milliseconds'" in failed
    assert "run the job p_rebuild, or: windows-pipeline rebuild p" in failed
    assert f"list the changes: {CORRECT}" in failed


def test_windows_that_another_day_closes_have_moved(published: SmallProject) -> None:
    """Rule E1: with another grace the second day closes [0, 10), and none yet [100, 110)."""
    project = published
    project.declare({**TUMBLING, "grace": "150 ms"}, others=OTHERS)
    grace = ("--windows", "w", "--from", FIRST, "--cause", "a longer grace")
    status, said = project.call("correct", "p", *grace)
    none, alerts = "windows: 0 changed", "alerts: 0 retracted, 0 raised"
    assert status == 0, said
    assert f"{FIRST}: {none}, 0 retracted, 0 added, 1 moved to another day; {alerts}" in said
    moved = f"{LAST}: {none}, 1 retracted, 0 added, 1 moved here from another day; {alerts}"
    assert moved in said, said


def test_a_bad_file_names_the_days_to_materialize(published: SmallProject) -> None:
    """Rule A8: one file is bad, and the run ingests no day of both."""
    project = published
    project.land(2, b"no gzip", "b.csv.gz")
    failed = failure_of(project)
    assert f"{LAST}/b.csv.gz: " in failed
    assert f"ingested none of its days, 2 days, {FIRST} to {LAST}, as a file of 1 day" in failed
    again = f"(job p_all), or: windows-pipeline run p --from {FIRST} --to {LAST}"
    assert f"Fix or remove each file, then materialize the days again {again}" in failed
