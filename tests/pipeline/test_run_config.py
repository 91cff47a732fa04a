"""What a run's config may say: days, a cause, how often; nothing that names code or files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from definitions import build_definitions
from tests.support.pipelines import Project
from windows_pipeline.settings import Settings

JOBS = (
    *("flights_all", "flights_correction", "flights_rebuild", "flights_check"),
    "flights_maintenance",
)
OF_DAGSTER = {
    "execution.config.retries",
    "execution.config.marker_to_close",
    "execution.config.step_dependency_config.require_upstream_step_success",
    "loggers.console.config.log_level",
    "loggers.console.config.name",
}
"""Retries, the order of steps, and how the console's log looks; `marker_to_close` has no effect.

A job whose step has fields has these alone.
"""
OF_STEPS = {
    "flights_all": set(),
    "flights_correction": {"from", "to", "cause"},
    "flights_rebuild": {"from"},
    "flights_check": set(),
    "flights_maintenance": set(),
}


@pytest.fixture
def project(tmp_path: Path, settings: Settings) -> Project:
    """A project without landed files."""
    project = Project(tmp_path, settings)
    project.declare()
    return project


def as_stream(project: Project) -> dg.Definitions:
    """The definitions where the pipeline follows its source."""
    file = project.folder / "pipelines" / "flights.yaml"
    file.write_text(file.read_text().replace("source:\n", "source:\n  stream: true\n"))
    return build_definitions(project.settings)


def options(config: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all fields below a config type that have no fields of their own."""
    fields: dict[str, dg.Field] = getattr(config, "fields", {})
    if path[-1:] == ("retries",):  # one of two choices without a value
        yield path
        return
    if not fields and getattr(config, "key", "").startswith("Shape."):
        return  # nothing may stand there
    if not fields:
        yield path
    for name, field in fields.items():
        yield from options(field.config_type, (*path, name))


@pytest.mark.parametrize("stream", [False, True], ids=["days", "stream"])
def test_run_config_names_no_code_and_no_file(project: Project, *, stream: bool) -> None:
    defs = as_stream(project) if stream else build_definitions(project.settings)
    of_steps_of = {**OF_STEPS, "flights_stream": {"every"}} if stream else OF_STEPS
    for name in (*JOBS, "flights_stream") if stream else JOBS:
        schema = defs.resolve_job_def(name).run_config_schema.config_type
        found = {".".join(path) for path in options(schema)}
        assert found == (of_steps_of[name] or OF_DAGSTER)


@pytest.mark.parametrize(
    ("resource", "config"),
    [
        ("spark", {"spark_config": {"spark.jars": "file:///elsewhere/code.jar"}}),
        ("spark", {"spark.plugins": "Elsewhere"}),
        ("io_manager", {"base_dir": "elsewhere"}),
    ],
)
def test_a_run_that_configures_a_resource_is_refused(
    project: Project, resource: str, config: dict[str, Any]
) -> None:
    defs = build_definitions(project.settings)
    run_config = {"resources": {resource: {"config": config}}}
    for name in ("flights_all", "flights_maintenance"):
        with pytest.raises(dg.DagsterInvalidConfigError, match=next(iter(config))):
            run(defs, name, run_config)


def test_a_run_without_such_config_takes_the_session_of_the_settings(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    defs = build_definitions(project.settings)
    assert run(defs, "flights_maintenance", {}).success
    assert "flights/raw_events: does not exist yet" in capfd.readouterr().err
    session = spark_session(defs)
    name = "spark.python.daemon.module"
    assert session.sparkContext.getConf().get(name) == project.settings.spark[name]


def run(defs: dg.Definitions, job: str, run_config: dict[str, Any]) -> dg.ExecuteInProcessResult:
    with dg.DagsterInstance.ephemeral() as instance:
        return defs.resolve_job_def(job).execute_in_process(
            run_config=run_config, instance=instance
        )


def spark_session(defs: dg.Definitions) -> Any:
    """The session that steps are given."""
    with dg.build_resources({"spark": (defs.resources or {})["spark"]}) as resources:
        return resources.spark.spark_session
