"""The sensor starts the job that notifies people, and only where there is something to send."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from tests.support.notified import Notified
from tests.support.receivers import receiver
from windows_pipeline.dagster.definitions import build_definitions
from windows_pipeline.notify.delivered import delivered_log


def test_ticks_lead_to_delivered_messages(tmp_path: Path) -> None:
    with receiver() as hook, dg.DagsterInstance.ephemeral() as instance:
        url = f"{{url: '{hook.url}'}}"
        project = Notified(tmp_path, f"  people:\n    webhook: {url}\n    max_age: 9000 weeks\n")
        definitions = build_definitions([project.pipeline], project.settings)
        sensor = definitions.resolve_sensor_def("flights_notify")
        job = definitions.resolve_job_def("flights_notify")
        assert sensor.default_status == dg.DefaultSensorStatus.STOPPED
        cursor: str | None = None

        def tick() -> bool:
            """Whether a tick starts a run; an open run is run to its end."""
            nonlocal cursor
            with dg.build_sensor_context(instance, cursor=cursor) as context:
                result = sensor.evaluate_tick(context)
            cursor = result.cursor or cursor
            for _ in result.run_requests or []:
                job.execute_in_process(instance=instance, raise_on_error=False)
            return bool(result.run_requests)

        assert not tick()
        project.happen({})
        assert [tick(), tick()] == [True, False]
        assert hook.events == [("JFK", "opened")]
        # A message that is not taken fails the run; the next one sends it.
        hook.answers = [404]
        project.happen({"key": "LGA"})
        assert [tick(), tick()] == [True, False]
        assert hook.events == [("JFK", "opened")]
        (failed,) = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]))
        assert failed.job_name == "flights_notify"
        project.happen({"key": "EWR"})
        with delivered_log(str(project.log.parent)):
            assert not tick()
        assert tick()
        assert [key for key, _ in hook.events] == ["JFK", "LGA", "EWR"]
        # A message that is refused while another is taken fails one run, and is sent once asked.
        hook.answers = [400]
        project.happen({"key": "BOS"}, {"key": "SEA"})
        assert [tick(), tick()] == [True, False]
        assert len(instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]))) == 2
        assert job.execute_in_process(instance=instance, run_config={"again": True}).success
        assert [key for key, _ in hook.events][3:] == ["SEA", "BOS"]


def test_a_pipeline_without_targets_has_no_sensor(tmp_path: Path) -> None:
    project = Notified(tmp_path, "  people:\n    file: sent\n")
    silent = project.pipeline.model_copy(update={"notify": {}})
    definitions = build_definitions([silent], project.settings)
    with pytest.raises(dg.DagsterInvariantViolationError):
        definitions.resolve_job_def("flights_notify")
