"""The schedule of a stream starts no run beside one that is open."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import dagster as dg

from tests.support.pipeline_texts import changed, load_text
from windows_pipeline.dagster import build_definitions
from windows_pipeline.settings import Settings


def test_a_tick_leaves_the_source_to_the_run_that_follows_it(tmp_path: Path) -> None:
    """One that follows without end would have the queue grow with each tick."""
    pipeline = load_text(tmp_path, changed("format: jsonl", "format: jsonl\n  stream: true"))
    settings = Settings(warehouse="tables", pipelines=tmp_path, landing=".", spark={})
    definitions = build_definitions([pipeline], settings)
    schedule = definitions.resolve_schedule_def("flights_stream")
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:

        def tick() -> dg.ScheduleExecutionData:
            with dg.build_schedule_context(
                instance=instance,
                scheduled_execution_time=datetime(2026, 1, 1, tzinfo=UTC),
                repository_def=definitions.get_repository_def(),
            ) as context:
                return schedule.evaluate_tick(context)

        assert len(tick().run_requests or []) == 1
        run = instance.create_run_for_job(definitions.resolve_job_def("flights_stream"))
        assert tick().skip_message == f"run {run.run_id} is not finished"
        instance.report_run_failed(run)
        assert len(tick().run_requests or []) == 1
