"""What the page of a failing check in Dagster says to do next."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from tests.support.pipeline_texts import FLIGHTS, load_text
from windows_pipeline.checks.next_steps import once_blocked
from windows_pipeline.checks.run import Check, CheckResult
from windows_pipeline.checks.table_rules import FINAL_NEVER_CHANGED

DAY = date(2013, 1, 4)
AGAIN = "windows-pipeline run flights --from 2013-01-04 --to 2013-01-04"


def failed(name: str) -> CheckResult:
    return CheckResult(Check(name, "it holds", "false"), 1, [])


def test_only_a_change_of_final_windows_leads_to_a_correction(tmp_path: Path) -> None:
    """Rule E1: a run never changes final windows, so doing it again would fail again."""
    pipeline = load_text(tmp_path, FLIGHTS)
    other = once_blocked(pipeline, AGAIN, [failed("not_negative")])(DAY)
    assert other.endswith(f"Fix the cause, then: {AGAIN}")
    assert "correct" not in other
    refused = once_blocked(pipeline, AGAIN, [failed("a"), failed(FINAL_NEVER_CHANGED)])(DAY)
    assert "windows-pipeline correct flights --from 2013-01-04 --cause TEXT" in refused
    assert "the job flights_correction" in refused
    assert refused.endswith(f"If not, mend the day's files, then: {AGAIN}")
