"""A slip of the pen in a rule of a pipeline's file is told with what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.support.pipeline_texts import changed, load_text, problems_of
from windows_pipeline.config import table_definition

# A rule that is refused, and words of the cure.
SLIPS = [
    ("record_count < < 4", "uses '<<', which no rule may; to compare, write one '<'"),
    ("record_count >> 4", "to compare, write one '>'"),
    (
        "record_count > 3 || avg_dep_delay > 4",
        "uses '||', which no rule may; it joins texts: where",
    ),
    ("record_count > 3 && avg_dep_delay > 4", "has '&&', which is no operator; write AND"),
    ("record_count => 4", "has '=>', which is no operator; write '>='"),
    ("record_count =< 4", "has '=<', which is no operator; write '<='"),
    ("record_count = < 4", "write '<='"),
    ("record_count === 4", "has '===', which is no operator; write '='"),
    ("record_count ≥ 4", "write '>='"),
    ("record_count > = 4", "has '> =' in two pieces; write '>='"),
    ("(record_count > 4", "has 1 '(' and 0 ')'; write the missing ')'"),
    ("abs(max_dep_delay > (3)", "has 2 '(' and 1 ')'; write the missing ')'"),
    ("record_count > 4)", "has 0 '(' and 1 ')'; write the missing '(', or leave a ')' out"),
    ("key = '(=>' and and record_count > 1", "is no single SQL expression at 'and'"),
    ("key = 'open", "look for a quote that is not closed"),
]


@pytest.mark.parametrize(("rule", "cure"), SLIPS)
def test_a_slip_in_a_rule_is_told(tmp_path: Path, rule: str, cure: str) -> None:
    text = changed("when: record_count >= 10 and avg_dep_delay > 60", f'when: "{rule}"')
    (problem,) = problems_of(tmp_path, text)
    assert f": windows.hourly.alerts.disruption.when: {rule!r} " in problem
    assert cure in problem


@pytest.mark.parametrize("number", ["1", "1.5", "-3", "0", "1e3", "1_000", "0x10"])
def test_a_severity_may_be_a_number_without_quotes(tmp_path: Path, number: str) -> None:
    plain = load_text(tmp_path, changed("severity: avg_dep_delay  ", f"severity: {number}  "))
    alike = str(yaml.safe_load(number))
    quoted = load_text(tmp_path, changed("severity: avg_dep_delay  ", f"severity: '{alike}'  "))
    assert table_definition(plain, "hourly", "alerts") == table_definition(
        quoted, "hourly", "alerts"
    )
    rule = plain.windows["hourly"].alerts["disruption"]
    assert rule.severity_sql({}).lstrip("-") == alike.lstrip("-")


@pytest.mark.parametrize("operator", ["==", "!=", "<>", "<=>"])
def test_what_is_sql_is_no_slip(tmp_path: Path, operator: str) -> None:
    load_text(tmp_path, changed("record_count >= 10 and", f"record_count {operator} 10 and"))
