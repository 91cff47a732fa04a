"""What the README, and the pages of docs/, say is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.cases import KINDS, Case, read_cases
from windows_pipeline.aggregates import FUNCTIONS, parse_aggregate
from windows_pipeline.checks.notification_rules import notification_checks
from windows_pipeline.checks.table_rules import (
    accounting_checks,
    alerts_checks,
    alerts_history_checks,
    closing_checks,
    final_windows_checks,
    raw_events_checks,
)
from windows_pipeline.checks.window_rules import window_checks
from windows_pipeline.config import load_pipeline
from windows_pipeline.config.source import ROLE_TYPES
from windows_pipeline.config.windows.row_kinds import CountKind
from windows_pipeline.jobs import FiringsJob
from windows_pipeline.settings import Settings
from windows_pipeline.storage.tables import tables_of

README = Path(__file__).parents[2] / "README.md"
DOCS = README.parent / "docs"
PIPELINES = DOCS / "pipelines.md"


def test_it_has_the_types_of_the_columns_that_have_a_role() -> None:
    rows = dict(re.findall(r"\| `(\w+)` \| (.*) \|\n", PIPELINES.read_text()))
    for role, types in ROLE_TYPES.items():
        assert re.findall(r"`(\w+)`", rows[role]) == list(types)


def test_it_has_the_aggregates_of_a_pipeline_with_the_types_that_they_take() -> None:
    types = ["string", "bigint", "double", "decimal(12,2)", "boolean", "date", "timestamp"]
    table = PIPELINES.read_text().partition("| aggregate | of a column of type |")[2]
    table = table.partition("\n\n")[0]
    found = {}
    for names, taken in re.findall(r"\| (`.*) \| (.*) \|", table):
        for name in re.findall(r"`(\w+)", names):
            found[name] = types if taken == "any" else re.findall(r"`(\w+)`", taken)
    assert set(found) == set(FUNCTIONS)
    for name, taken in found.items():
        second = FUNCTIONS[name].second
        made = parse_aggregate(
            "x", f"{name}(a{ {'percentage': ', 0.5', 'by': ', b', None: ''}[second] })"
        )
        for kind in types:
            if second == "by":
                assert made.result_type(f"struct<value:{kind},by:{kind}>") == kind
            elif kind in taken or kind.partition("(")[0] in taken:
                made.result_type(kind)
            else:
                with pytest.raises(ValueError, match="takes numbers"):
                    made.result_type(kind)


def test_its_scores_are_of_all_golden_cases() -> None:
    """That they pass is for test_conformance to say: here, that none is left out."""

    def cases(engine: str, *names: str) -> list[Case]:
        return [case for name in names for case in read_cases(engine, name).values()]

    contract = cases("contract", *KINDS)
    kafka = {case["id"] for case in cases("kafka", *KINDS)}
    agreeing = {case["id"] for case in contract if case["agrees_with"] is not None}
    numbers = {
        "contract": len(contract),
        "Kafka Streams": len(kafka & agreeing),
        "Flink, batch": len(cases("flink", "group_time")),
        "Flink, count windows": len(cases("flink", "group_count")),
        "Flink and DuckDB, row windows": len(
            cases("flink", "over_rows", "following_rows", "grouped_rows")
        ),
        "Flink, firings": len(cases("flink", "firings")),
    }
    text = (DOCS / "comparison.md").read_text()
    for what, number in numbers.items():
        assert f"| {what} | {number} of {number} |" in text


def test_it_names_every_check(settings: Settings) -> None:
    text = (DOCS / "checks.md").read_text()
    pipeline = load_pipeline(README.parent / "pipelines" / "flights.yaml")
    silent = pipeline.windows["hourly"]
    plain = silent.model_copy(update={"emit_empty": False})
    of_rows = {"kind": "count", "size": 5, "grace": "0 ms", "aggregates": {}}
    rows = CountKind.model_validate(of_rows)
    checks = [
        *raw_events_checks(pipeline),
        *window_checks(silent),
        *window_checks(plain),
        *window_checks(rows),
        *accounting_checks(pipeline, silent),
        *final_windows_checks(silent),
        *closing_checks(),
        *alerts_checks(silent, silent.result_columns(pipeline.source)),
        *alerts_history_checks(),
        *notification_checks(silent.spec),
        *FiringsJob(tables_of(pipeline, settings.warehouse), "by_hour", settings).checks,
    ]
    assert [check.name for check in checks if check.name not in text] == []
