"""What a run says that publishes nothing: which days, and the commands and jobs that help."""

from __future__ import annotations

import dagster as dg
import pytest

from tests.support.small_project import HEADER, TUMBLING, SmallProject
from windows_pipeline.dagster import build_definitions

FIRST, LAST = "2026-11-01", "2026-11-02"
CORRECT = f"run the job p_correction, or: windows-pipeline correct p --from {FIRST} --cause TEXT"
OTHERS = {"x": {**TUMBLING, "size": "20 ms"}, "y": {**TUMBLING, "size": "5 ms"}}
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


@pytest.fixture
def published(project: SmallProject, monkeypatch: pytest.MonkeyPatch) -> SmallProject:
    """Two days; the first day's windows are final in three definitions."""
    project.declare(others=OTHERS, top={"notify": {"people": FAILED_RUNS}})
    project.land(1, f"{HEADER}a,0,1\na,100,2\n")
    project.land(2, f"{HEADER}z,200,5\n")
    status, said = project.ingest("run")
    assert status == 0, said
    monkeypatch.chdir(project.folder)
    return project


def test_a_changed_definition_names_the_jobs(published: SmallProject) -> None:
    """Rules E1, H1: a changed grace can be corrected from the first published day on."""
    project = published
    project.declare({**TUMBLING, "grace": "3 ms"}, others=OTHERS)
    failed = failure_of(project)
    assert "windows.w.grace: was '0 seconds', is '3 milliseconds'" in failed
    assert "run the job p_rebuild, or: windows-pipeline rebuild p" in failed
    assert f"list the changes: {CORRECT}" in failed


def test_a_bad_file_names_the_days_to_materialize(published: SmallProject) -> None:
    """Rule A8: one file is bad, and the run ingests no day of both."""
    project = published
    project.land(2, b"no gzip", "b.csv.gz")
    failed = failure_of(project)
    assert f"{LAST}/b.csv.gz: " in failed
    assert f"ingested none of its days, 2 days, {FIRST} to {LAST}, as a file of 1 day" in failed
    again = f"(job p_all), or: windows-pipeline run p --from {FIRST} --to {LAST}"
    assert f"Fix or remove each file, then materialize the days again {again}" in failed
