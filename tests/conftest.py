"""Fixtures that several test modules share."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
from pyspark.sql import SparkSession

from benchmarks.jvm import fetched
from demo.prepare_flights import prepare
from tests.support.kafka import KafkaBroker
from tests.support.order import dealt
from tests.support.pipelines import DAYS, LONGER_GRACE, SHORT_GRACE, Project
from tests.support.shared_folders import alone, made_once
from tests.support.small_project import SmallProject
from tests.support.spark import SharedSpark, session_behind
from tests.support.spark_cases import SHORT_SHARDS
from windows_pipeline.compat.spark_session import start_session
from windows_pipeline.settings import KAFKA_PACKAGE, Settings, load_settings
from windows_pipeline.streaming import run_stream

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

ROOT = Path(__file__).parent.parent
UNIT = ROOT / "tests" / "unit"
WITHOUT_SPARK = "not spark"
"""How the option -m of a run begins that starts no JVM."""
FETCHING = Path(tempfile.gettempdir()) / "windows-pipeline-tests.lock"
_JVM = pytest.StashKey[SharedSpark]()
_DELEGATION = "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.1.0-preview1"


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Draws the seed of Hypothesis, where none is given, before Hypothesis and workers take it.

    No test of Hypothesis fails because the machine is slow.
    """
    hypothesis.settings.register_profile(
        "patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
    hypothesis.settings.load_profile("patient")
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(secrets.randbelow(2**32))


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Marks every test outside tests/unit: it may start Spark. Deals those that are selected."""
    for item in items:
        if UNIT not in item.path.parents:
            item.add_marker(pytest.mark.spark)
    yield
    items[:] = dealt(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Gives a process that runs tests its way into the JVM that all of them share."""
    if node.config.option.markexpr.startswith(WITHOUT_SPARK):
        return
    stash = node.config.stash
    if _JVM not in stash:
        stash[_JVM] = SharedSpark(with_kafka(small(load_settings(ROOT))))
    node.workerinput["door"] = stash[_JVM].door()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Ends that JVM."""
    if _JVM in config.stash:
        config.stash[_JVM].close()


def pytest_report_header(config: pytest.Config) -> str:
    """Says how to draw the same cases again."""
    return f"drawn with --hypothesis-seed={config.option.hypothesis_seed}"


def small(settings: Settings) -> Settings:
    """The settings, for small and quick work."""
    changed = {
        "spark.master": "local[2]",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        # Small plans take longer to compile and re-plan than to run.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
    }
    spark = {**settings.spark, **changed}
    # No test reports to the developer's own Dagster instance.
    return settings.model_copy(update={"spark": spark, "dagster_home": None})


def with_kafka(settings: Settings) -> Settings:
    """The settings with Spark's Kafka connector.

    Of what it needs, one library is fetched apart: not every mirror has that of Spark 4.2, and
    without delegation tokens the one before it will do.
    """
    with alone(FETCHING):
        folder = fetched([_DELEGATION], transitive=False)
    jars = ",".join(jar.as_uri() for jar in folder.iterdir())
    excludes = f"{settings.spark_conf()['spark.jars.excludes']},{_DELEGATION.rsplit(':', 1)[0]}"
    spark = {**settings.spark, "spark.jars": jars, "spark.jars.excludes": excludes}
    return settings.model_copy(update={"packages": (KAFKA_PACKAGE,), "spark": spark})


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the processes of a run of the tests share."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def small_settings() -> Settings:
    """The project's settings, for small and quick work."""
    return small(load_settings(ROOT))


@pytest.fixture(scope="session")
def settings(small_settings: Settings, request: pytest.FixtureRequest) -> Iterator[Settings]:
    """The small settings with Kafka. Starts the session that Dagster's runs use."""
    settings = with_kafka(small_settings)
    door = getattr(request.config, "workerinput", {}).get("door")
    if door is not None:
        session_behind(door, settings)
        yield settings
        return
    session = start_session(settings)
    session.sparkContext.setLogLevel("ERROR")
    yield settings
    session.stop()


@pytest.fixture(scope="session")
def spark(settings: Settings) -> SparkSession:
    """A real session with Delta."""
    return start_session(settings)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A real Kafka broker; a test that stops it starts it again."""
    with alone(FETCHING):
        broker = KafkaBroker(tmp_path_factory.mktemp("kafka"))
    yield broker
    broker.close()


@pytest.fixture(scope="session")
def landed_flights(shared: Path) -> Path:
    """The year of flights, landed."""
    return made_once(shared / "landing" / "flights", prepare)


@pytest.fixture(scope="session")
def full_run(
    tmp_path_factory: pytest.TempPathFactory,
    settings: Settings,
    shared: Path,
    landed_flights: Path,
) -> Project:
    """Everything materialized in one real Dagster run over the whole range; this process's own."""

    def make(folder: Path) -> None:
        made = Project(folder, settings)
        made.declare(grace=SHORT_GRACE)
        made.land(landed_flights, DAYS)
        assert made.run(1, DAYS).success

    made = Project(made_once(shared / "full", make), settings)
    return made.copy(tmp_path_factory.mktemp("own"), derived=True)


@pytest.fixture(scope="session")
def full_stream(
    spark: SparkSession, settings: Settings, shared: Path, landed_flights: Path
) -> Project:
    """The same days in one micro-batch of a stream; to be copied."""

    def make(folder: Path) -> None:
        made = Project(folder, settings)
        made.declare(grace=SHORT_GRACE, stream=True)
        made.land(landed_flights, DAYS)
        run_stream(spark, made.source, made.settings)

    return Project(made_once(shared / "streamed", make), settings)


@pytest.fixture(scope="session")
def longer_grace(
    spark: SparkSession, shared: Path, settings: Settings, full_run: Project
) -> Project:
    """What a pipeline with a longer grace makes of the same raw records; to be read only."""

    def make(folder: Path) -> None:
        made = full_run.copy(folder, derived=False)
        made.declare(grace=LONGER_GRACE)
        made.compute_unchecked(spark)

    return Project(made_once(shared / "longer", make), settings)


@pytest.fixture(scope="session")
def short_shards(settings: Settings) -> Settings:
    """Settings that cut a key's time into short time shards."""
    return settings.model_copy(update={"tuning": SHORT_SHARDS})


@pytest.fixture
def project(
    settings: Settings,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> SmallProject:
    """A small project of its own; modules of other projects have a fixture of this name."""
    return SmallProject(tmp_path / "p", settings, capfd, monkeypatch)
