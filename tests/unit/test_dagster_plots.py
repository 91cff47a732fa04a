"""Each day of a run has its own plot, and no failure of a plot fails a run."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.support.reported import DAYS, SHOWN, reported_project
from tests.support.stored_files import data_files
from windows_pipeline.dagster.assets.metadata import ExtraMetadata
from windows_pipeline.dagster.assets.plots import alert_plots, lateness_plots, size_plots
from windows_pipeline.settings import load_settings
from windows_pipeline.storage.catalog import PipelineSpecs, specs_of

NO_SPARK: Any = None
"""The tables are local, so Spark reads none of them."""


@pytest.fixture
def tables(tmp_path: Path) -> PipelineSpecs:
    pipeline = reported_project(tmp_path)
    assert pipeline.name == "flights"
    return specs_of(pipeline, load_settings(tmp_path).warehouse)


NOTHING = (
    "No window that this day closed broke a rule. The checks of the rules list silences that began "
    "on earlier days."
)


def shown(plots: ExtraMetadata, name: str) -> list[str]:
    """The plot of each day."""
    found = plots(NO_SPARK, DAYS)
    return [str(found[day][name].value) for day in DAYS if day in found]


def classes(markdown: str) -> list[str | None]:
    """What the picture in a text is drawn of."""
    data = base64.b64decode(markdown.partition("base64,")[2][:-1])
    return [element.get("class") for element in ET.XML(data).iter()]


def test_each_day_has_its_own_plot(tables: PipelineSpecs) -> None:
    """By hand: the second day closed four windows, three of them alerts; the first had records."""
    first, second = shown(alert_plots(tables, "hourly"), "plot")
    assert first == NOTHING
    assert classes(second).count("bad") == 3
    assert SHOWN not in second
    _, second = shown(size_plots(tables.of("hourly")), "records_a_window")
    # Of 12, 11 and 14 records, and of 3.
    assert classes(second).count("bar") == 2
    first, second = shown(lateness_plots(tables), "lateness")
    assert first.startswith("A grace of 1 hour would have caught 99 % of the records.\n\n![")
    assert second.startswith("There are no records.\n\n![")


def test_a_plot_that_fails_is_a_text(tables: PipelineSpecs) -> None:
    """One day's damage leaves the other days' plots; a missing table is said, without Spark."""
    for file in data_files(Path(tables.of("hourly").alerts.location)):
        file.write_bytes(b"PAR1")
    first, second = shown(alert_plots(tables, "hourly"), "plot")
    assert first == NOTHING
    assert second.startswith("not drawn: flights/hourly/alerts")
    shutil.rmtree(tables.raw_events.location)
    (said,) = shown(lateness_plots(tables), "lateness")
    assert said.startswith(
        "not drawn: flights/raw_events: the table does not exist yet; to fill it"
    )
