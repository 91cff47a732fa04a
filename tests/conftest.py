"""Fixtures that several test modules share."""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from demo.prepare_flights import prepare
from pipeline_runs import DAYS, SHORT_GRACE, Project
from windows_pipeline.session import start_session
from windows_pipeline.settings import Settings, load_settings

ROOT = Path(__file__).parent.parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keeps what shares a Spark session, or a full run of the chain, in one process."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        for name in ("full_run", "spark"):
            if name in fixtures:
                item.add_marker(pytest.mark.xdist_group(name))
                break


@pytest.fixture(scope="session")
def settings() -> Settings:
    """The project's settings, with less memory and parallelism."""
    settings = load_settings(ROOT)
    small = {
        "spark.master": "local[2]",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        # Small plans take longer to compile and re-plan than to run.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
    }
    return settings.model_copy(update={"spark": {**settings.spark, **small}})


@pytest.fixture(scope="session")
def spark(settings: Settings) -> Iterator[SparkSession]:
    """A real local session with Delta."""
    # On a fresh machine the first one downloads Delta's jars; two at once would trip.
    with (Path(tempfile.gettempdir()) / "windows-pipeline-tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        session = start_session(settings)
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def landed_flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The year of flights, landed."""
    folder = tmp_path_factory.mktemp("landing") / "flights"
    prepare(folder)
    return folder


@pytest.fixture(scope="session")
def full_run(
    tmp_path_factory: pytest.TempPathFactory, settings: Settings, landed_flights: Path
) -> Project:
    """Everything materialized in one real Dagster run over the whole range."""
    project = Project(tmp_path_factory.mktemp("full"), settings)
    project.declare(grace=SHORT_GRACE)
    project.land(landed_flights, DAYS)
    assert project.run(1, DAYS).success
    return project
