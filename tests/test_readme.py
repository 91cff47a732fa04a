"""What the README says is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from windows_pipeline.config import load_pipeline
from windows_pipeline.jobs import FiringsJob
from windows_pipeline.quality.invariants import (
    accounting_checks,
    alerts_checks,
    alerts_history_checks,
    final_windows_checks,
    raw_events_checks,
)
from windows_pipeline.quality.window_checks import window_checks
from windows_pipeline.settings import Settings

README = Path(__file__).parent.parent / "README.md"


def test_its_pipeline_is_valid(tmp_path: Path) -> None:
    (block,) = re.findall(r"```yaml\n(name: .*?)```", README.read_text(), re.DOTALL)
    file = tmp_path / "flights.yaml"
    file.write_text(block)
    assert list(load_pipeline(file).windows) == ["hourly"]


def test_its_worked_example_prints_what_it_says(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """KIP-450's example: 7 windows (rule B4)."""
    code, printed = re.findall(
        r"```python\n(.*?)```\n\n```\n(.*?)```", README.read_text(), re.DOTALL
    )[0]
    exec(code, {"spark": spark})  # noqa: S102  the README's own code
    assert capsys.readouterr().out.strip() == printed.strip()


def test_it_names_every_check(settings: Settings) -> None:
    text = README.read_text()
    pipeline = load_pipeline(README.parent / "pipelines" / "flights.yaml")
    silent = pipeline.windows["hourly"]
    plain = silent.model_copy(update={"emit_empty": False})
    checks = [
        *raw_events_checks(pipeline.source),
        *window_checks(silent),
        *window_checks(plain),
        *accounting_checks(),
        *final_windows_checks(silent),
        *alerts_checks(silent, silent.result_columns(pipeline.source)),
        *alerts_history_checks(),
        *FiringsJob(pipeline, "by_hour", settings).checks,
    ]
    assert [check.name for check in checks if check.name not in text] == []
