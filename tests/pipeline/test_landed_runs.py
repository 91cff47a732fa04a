"""The sensor of landed days leads to finished runs, and says which published days changed."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from tests.support.small_project import HEADER, SmallProject
from tests.support.stored_rows import named_rows
from windows_pipeline.dagster import build_definitions

FIRST, SECOND = "2026-11-01", "2026-11-02"


class Ticks:
    """The sensor's ticks over one Dagster instance; the runs that they request are run."""

    def __init__(self, project: SmallProject, instance: dg.DagsterInstance) -> None:
        self.definitions = build_definitions([project.pipeline], project.settings)
        self.instance = instance
        self.cursor: str | None = None
        self.reason = ""

    def tick(self) -> list[str]:
        """The days of the run that the tick requests, which ends well."""
        with dg.build_sensor_context(
            self.instance, cursor=self.cursor, repository_def=self.definitions.get_repository_def()
        ) as context:
            result = self.definitions.resolve_sensor_def("p_landing").evaluate_tick(context)
        self.cursor = result.cursor or self.cursor
        self.reason = result.skip_message or ""
        days = set()
        for request in result.run_requests or []:
            run = self.definitions.resolve_job_def("p_all").execute_in_process(
                instance=self.instance,
                partition_key=request.partition_key,
                tags=dict(request.tags),
                raise_on_error=False,
            )
            assert run.success
            days |= {
                str(event.partition)
                for event in run.all_events
                if event.is_step_materialization and event.partition is not None
            }
        return sorted(days)


def final_sums(project: SmallProject) -> dict[str, float]:
    return {row["key"]: row["s"] for row in named_rows(project.windows.final_windows)}


def mark(landed: Path) -> None:
    (landed.parent / "_SUCCESS").touch()


def test_landed_days_are_run_once_and_their_changes_named(
    project: SmallProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.declare(on_bad_file="skip")
    monkeypatch.chdir(project.folder)
    with dg.DagsterInstance.ephemeral() as instance:
        ticks = Ticks(project, instance)
        landed = project.land(1, f"{HEADER}a,0,1\nb,2,7\n")
        assert ticks.tick() == []
        mark(landed)
        assert ticks.tick() == [FIRST]
        assert ticks.tick() == []
        assert ticks.reason == "every landed day is published"
        mark(project.land(2, f"{HEADER}z,13,5\n"))
        assert ticks.tick() == [SECOND]
        assert final_sums(project) == {"a": 1.0, "b": 7.0}
        # A day that changes is sent at each tick, and not run.
        project.land(1, f"{HEADER}a,3,2\n", "b.csv")
        for _ in range(2):
            assert ticks.tick() == []
            assert f"{FIRST} changed after it was published (b.csv came later)" in ticks.reason
            assert f"windows-pipeline correct p --from {FIRST} --cause TEXT" in ticks.reason
        assert final_sums(project) == {"a": 1.0, "b": 7.0}
        # What the sentence names is what helps.
        status, said = project.call("run", "p", "--from", FIRST, "--to", FIRST)
        assert "windows-pipeline correct p" in said, (status, said)
        status, said = project.call("correct", "p", "--from", FIRST, "--cause", "late files")
        assert status == 0, said
        assert final_sums(project) == {"a": 3.0, "b": 7.0}
        assert ticks.tick() == []
        assert ticks.reason == "every landed day is published"
