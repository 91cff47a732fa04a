"""What is rebuilt where a table's files are damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pipeline_texts import PIPELINES
from windows_pipeline.checks.files import Finding, Fix
from windows_pipeline.config import load_pipeline
from windows_pipeline.jobs.days.repair import plan_repair
from windows_pipeline.settings import load_settings
from windows_pipeline.storage.tables import firing_tables, window_tables

ROOT = Path(__file__).parents[2]
KEPT_BY_OTHERS = ("corrections", "final_windows")
"""No step rebuilds these: one has rows that no other table has, the other is corrected."""


def damaged_tables() -> list[str]:
    """The tables of a definition that a step rebuilds."""
    pipeline, warehouse = load_pipeline(PIPELINES / "flights.yaml"), "warehouse"
    fires = firing_tables(pipeline, "by_hour", warehouse)
    assert fires is not None
    every = [*vars(window_tables(pipeline, "by_hour", warehouse)).values(), *fires.all]
    names = (table.name.rsplit("/", 1)[1] for table in every)
    return [name for name in names if name not in KEPT_BY_OTHERS]


@pytest.mark.parametrize("table", damaged_tables())
def test_a_damaged_table_is_rebuilt_by_the_step_that_fills_it(table: str) -> None:
    pipeline = load_pipeline(PIPELINES / "flights.yaml")
    found = Finding(f"flights/by_hour/{table}", "part.parquet", "is damaged", Fix.REPAIR)
    (repair,) = plan_repair(pipeline, load_settings(ROOT), [found]).of_windows
    step = {"late_records": "keyed_windows", "failed_windows": "keyed_windows"}
    assert repair.steps == {step.get(table, table.replace("early_warnings", "firings"))}
