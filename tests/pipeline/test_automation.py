"""Dagster requests the days that are ingested and not computed, and no other (rules A2, E4)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from definitions import build_definitions
from tests.support.pipelines import DAYS, DERIVED, SELECTED, Project, day
from windows_pipeline.dagster import asset_key, range_tags
from windows_pipeline.storage.writer_lock import writing


class Automated:
    """A project without tables, and ticks of its conditions over an instance of its own."""

    def __init__(self, project: Project, instance: dg.DagsterInstance) -> None:
        self.project, self.instance = project, instance
        self.definitions = build_definitions(project.settings)
        self.cursor: Any = None
        tables = project.windows.of_every_definition
        self.tables = {asset_key(table) for table in tables if table.short_name in SELECTED}

    def tick(self) -> set[int]:
        """The requested days, by number; all tables of the windows are requested for them."""
        result = dg.evaluate_automation_conditions(
            self.definitions,
            self.instance,
            asset_selection=dg.AssetSelection.groups("flights").without_checks(),
            cursor=self.cursor,
        )
        self.cursor = result.cursor
        requested = {table: result.get_requested_partitions(table) for table in self.tables}
        (days,) = {frozenset(keys or ()) for keys in requested.values()}
        assert result.total_requested == len(days) * len(self.tables)
        numbers = {day(number).isoformat(): number for number in range(1, DAYS + 1)}
        return {numbers[str(key)] for key in days}

    def run(self, first: int, last: int, *, windows: bool) -> bool:
        """Materializes raw_events, or the tables of windows, for a range of days."""
        keys = self.tables if windows else {asset_key(self.project.source.raw_events)}
        result = self.definitions.resolve_job_def("flights_all").execute_in_process(
            instance=self.instance,
            asset_selection=list(keys),
            tags=range_tags(day(first).isoformat(), day(last).isoformat()),
            raise_on_error=False,
        )
        return result.success

    def land_more(self, number: int) -> None:
        """Adds a file to a day: a copy, so its records count twice."""
        folder = self.project.folder / "data" / "flights" / day(number).isoformat()
        first = min(file for file in folder.iterdir() if file.name[0] not in "_.")
        shutil.copy(first, folder / f"more_{first.name}")


@pytest.fixture
def automated(full_run: Project, tmp_path: Path) -> Iterator[Automated]:
    for name in ("pipelines", "data"):
        shutil.copytree(full_run.folder / name, tmp_path / name)
    with dg.DagsterInstance.ephemeral() as instance:
        yield Automated(Project(tmp_path, full_run.base), instance)


def test_days_follow_their_records(automated: Automated, full_run: Project) -> None:
    """A missing day blocks later days; each day is requested once, for the rows of a full run.

    Rule E4: a day that is ingested again is requested with those that read it, unless the command
    that ingests it computes it, too.
    """
    assert automated.tick() == set()
    assert automated.run(1, 1, windows=False)
    assert automated.run(3, DAYS, windows=False)
    assert automated.tick() == {1}
    assert automated.tick() == set()  # it is requested
    assert automated.run(1, 1, windows=True)
    assert automated.run(2, 2, windows=False)
    assert automated.tick() == set(range(2, DAYS + 1))
    assert automated.run(2, DAYS, windows=True)
    assert automated.tick() == set()
    assert automated.project.all_rows() == full_run.all_rows()

    with writing(automated.project.pipeline, automated.project.settings.warehouse):
        assert automated.run(DAYS, DAYS, windows=False)
        assert automated.tick() == set()
        assert automated.run(DAYS, DAYS, windows=True)
    assert automated.tick() == set()
    assert automated.run(DAYS - 1, DAYS - 1, windows=False)
    assert automated.tick() == {DAYS - 1}
    assert automated.run(DAYS - 1, DAYS - 1, windows=True)
    assert automated.tick() == set()
    automated.land_more(DAYS - 1)
    assert automated.run(DAYS - 1, DAYS - 1, windows=False)
    assert automated.tick() == {DAYS - 1, DAYS}  # the last day reads the new records, too


def test_a_failed_day_is_requested_again_once_its_records_are_updated(
    automated: Automated,
) -> None:
    """None of its tables is, also not keyed_windows, whose own step succeeded."""
    assert automated.run(1, DAYS, windows=False)
    assert automated.tick() == set(range(1, DAYS + 1))
    final_windows = Path(automated.project.windows.final_windows.location)
    final_windows.parent.mkdir(parents=True)
    final_windows.write_text("no table can be made here")
    assert not automated.run(1, DAYS, windows=True)
    assert len(automated.project.rows("keyed_windows")) > DAYS
    assert automated.tick() == set()
    assert automated.run(1, DAYS, windows=False)
    assert automated.tick() == set(range(1, DAYS + 1))
    assert automated.tick() == set()
    # It fails a second time, and Dagster ticks after the first step, too.
    assert not automated.run(1, DAYS, windows=True)
    automated.instance.report_runless_asset_event(
        dg.AssetMaterialization(
            asset_key(automated.project.windows.keyed_windows), partition=day(1).isoformat()
        )
    )
    assert automated.tick() == set()
    final_windows.unlink()
    assert automated.tick() == set()
    assert automated.run(1, DAYS, windows=False)
    assert automated.tick() == set(range(1, DAYS + 1))


def test_a_day_that_a_run_still_computes_is_not_requested(automated: Automated) -> None:
    """Not for any of the tables, though the run has one of them left."""
    assert automated.run(1, DAYS, windows=False)
    job = automated.definitions.resolve_job_def("flights_all")
    run = automated.instance.create_run_for_job(
        job.get_subset(asset_selection={asset_key(automated.project.windows.alerts)}),
        tags={"dagster/partition": day(2).isoformat()},
        status=dg.DagsterRunStatus.STARTED,
        asset_selection=frozenset({asset_key(automated.project.windows.alerts)}),
    )
    assert automated.tick() == {1, *range(3, DAYS + 1)}
    automated.instance.delete_run(run.run_id)


def test_tables_are_those_of_the_windows(automated: Automated) -> None:
    """No other has a condition: no day is ingested so, and a step reports its other tables."""
    graph = automated.definitions.resolve_asset_graph()
    with_condition = {
        key
        for key in graph.get_all_asset_keys()
        if graph.get(key).automation_condition is not None and key.path[0] == "flights"
    }
    assert automated.tables <= with_condition
    others = {"raw_events", "corrections", *DERIVED} - set(SELECTED[1:])
    assert not {key.path[-1] for key in with_condition} & others
