"""Which rules read an aggregate that may fail, and what they compile to (rule G3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pipeline_texts import FLIGHTS, changed, load_text, problems_of

RULES = """    alerts:
      far:
        when: "coalesce(total_distance, 9) > 5"
        severity: 1
      rated:
        when: record_count > 3
        severity: total_distance
      slow:
        when: avg_dep_delay > 60
        severity: avg_dep_delay
"""
WITH_RULES = FLIGHTS[: FLIGHTS.index("    alerts:\n")] + RULES
FAILED = "(arrays_overlap(`failed`, array('total_distance')))"


def test_a_rule_that_reads_a_failed_aggregate_is_not_broken(tmp_path: Path) -> None:
    """Rule G3: whatever its condition makes of null, and where its severity alone reads it."""
    pipeline = load_text(tmp_path, WITH_RULES)
    hourly = pipeline.windows["hourly"]
    columns = hourly.result_columns(pipeline.source)
    compiled = {name: hourly.breaking_sql(rule, columns) for name, rule in hourly.alerts.items()}
    assert compiled == {
        "far": f"((COALESCE(`total_distance`, 9L) > 5L)) AND NOT {FAILED}",
        "rated": f"((`record_count` > 3L)) AND NOT {FAILED}",
        "slow": "(`avg_dep_delay` > 60L)",  # a mean of doubles is always computed
    }
    assert hourly.undecided_rules_sql(columns) == (
        f"array_compact(array(IF({FAILED}, 'far', NULL), IF({FAILED}, 'rated', NULL)))"
    )


def test_where_no_rule_reads_such_an_aggregate_none_is_undecided(tmp_path: Path) -> None:
    """Rule G3: flights.yaml sums distances, which no rule reads."""
    pipeline = load_text(tmp_path, FLIGHTS)
    hourly = pipeline.windows["hourly"]
    columns = hourly.result_columns(pipeline.source)
    assert hourly.undecided_rules_sql(columns) is None
    assert hourly.failure_messages(columns) == {
        "total_distance": "sum(distance) overflows bigint: make the column a decimal or a double"
    }


@pytest.mark.parametrize(("distance", "may_fail"), [("decimal(12,2)", True), ("double", False)])
def test_sums_and_means_of_integers_and_decimals_may_fail(
    tmp_path: Path, distance: str, *, may_fail: bool
) -> None:
    """Rule G2: a sum of doubles is an infinity at worst."""
    text = changed("distance: bigint", f"distance: {distance}")
    pipeline = load_text(tmp_path, text.replace("max(dep_delay)", "avg(distance)"))
    hourly = pipeline.windows["hourly"]
    messages = hourly.failure_messages(hourly.result_columns(pipeline.source))
    assert set(messages) == ({"max_dep_delay", "total_distance"} if may_fail else set())


def test_no_aggregate_is_called_failed(tmp_path: Path) -> None:
    """Rule G3: every result has a column of this name."""
    text = changed("total_distance: sum(distance)", "failed: sum(distance)")
    (problem, *_) = problems_of(tmp_path, text)
    assert "'failed' is the name of a column that every result has" in problem


def test_on_failed_is_one_of_two_words(tmp_path: Path) -> None:
    """Rule G3: whether such a day is published is a setting of its windows."""
    written = changed("emit_empty: true", "emit_empty: true\n    on_failed: block")
    assert load_text(tmp_path, written).windows["hourly"].on_failed == "block"
    assert load_text(tmp_path, FLIGHTS).windows["hourly"].on_failed == "publish"
    (problem,) = problems_of(tmp_path, written.replace("block", "warn"))
    assert "windows.hourly" in problem
    assert "on_failed" in problem
