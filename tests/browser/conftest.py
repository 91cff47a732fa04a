"""One project and one UI, which the tests of the UI share; each test has a browser of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.browser.dagster_pages import DagsterPages, browser_page
from tests.browser.project_ui import make_project, running_ui, shell
from tests.support.pipelines import Project, day
from tests.support.receivers import Receiver, receiver
from windows_pipeline.settings import Settings

LANDED = 4
OWN_CHECK = "delay_is_possible"
_MORE = {
    "checks": {OWN_CHECK: {"that": "dep_delay > -1440", "severity": "blocking"}},
    "notify": {
        "on_call": {
            "webhook": {"url": "${env:ON_CALL_HOOK}"},
            "events": ["opened"],
            "max_age": "36500 days",  # the flights are of 2013
        }
    },
}
"""What the pipeline's file says beside the window definition."""


@dataclass(frozen=True)
class Shared:
    """The project, and what runs beside it.

    Attributes:
        project: The project.
        received: What the pipeline's webhook got.
        variables: The variables of the environment that the pipeline's file names.
    """

    project: Project
    received: Receiver
    variables: dict[str, str]

    def call(self, command: str) -> str:
        """What a command prints, in a terminal in the project's folder."""
        return shell(self.project.folder, command, self.variables)


@pytest.fixture(scope="session")
def shared_ui(
    tmp_path_factory: pytest.TempPathFactory, small_settings: Settings, landed_flights: Path
) -> Iterator[Shared]:
    """Four days have landed, nothing is materialized; the folder's name has a blank."""
    folder = tmp_path_factory.mktemp("ui") / "a project"
    project = make_project(folder, small_settings, landed_flights, LANDED)
    project.declare(trigger={"early_every": "15 minutes"})
    file = folder / "pipelines" / "flights.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | _MORE))
    with receiver() as received:
        yield Shared(project, received, {"ON_CALL_HOOK": received.url})


@pytest.fixture(scope="session")
def address(shared_ui: Shared) -> Iterator[str]:
    """The address of the project's UI."""
    with running_ui(shared_ui.project.folder, shared_ui.variables) as found:
        yield found


@pytest.fixture
def pages(address: str, tmp_path: Path) -> Iterator[DagsterPages]:
    """The UI in a browser; at the end of the test its picture is in the test's folder."""
    with browser_page(tmp_path / "last_seen.png") as page:
        yield DagsterPages(page, address)


@pytest.fixture(scope="session")
def two_days(address: str, shared_ui: Shared, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The project once its first two days were materialized by clicks, in a backfill."""
    with browser_page(tmp_path_factory.mktemp("backfill") / "last_seen.png") as page:
        DagsterPages(page, address).backfill_all(day(1), day(2))
    return shared_ui.project


@pytest.fixture(scope="session")
def three_days(
    address: str, two_days: Project, tmp_path_factory: pytest.TempPathFactory
) -> Project:
    """The project once a third day was materialized by clicks, too, in a run of its own."""
    with browser_page(tmp_path_factory.mktemp("day") / "last_seen.png") as page:
        DagsterPages(page, address).materialize_all(day(3))
    return two_days
