"""An error about a usual mistake in a rule says what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.support.pipeline_texts import changed, load_text, problems_of, table_definition

# A rule that is refused, and words of the fix.
MISTAKES = [
    ("record_count > 3 && avg_dep_delay > 4", "has '&&', which is not an operator; write AND"),
    ("record_count => 4", "has '=>', which is not an operator; write '>='"),
    ("record_count =< 4", "has '=<', which is not an operator; write '<='"),
    ("record_count ≥ 4", "write '>='"),
    ("record_count > = 4", "has '> =', an operator with a blank in it; write '>='"),
    ("(record_count > 4", "has 1 '(' and 0 ')'; add the missing ')'"),
    ("abs(max_dep_delay > (3)", "has 2 '(' and 1 ')'; add the missing ')'"),
    ("key = '(=>' and and record_count > 1", "is not a single SQL expression at 'and'"),
]


@pytest.mark.parametrize(("rule", "fix"), MISTAKES)
def test_an_error_has_the_fix_of_a_usual_mistake(tmp_path: Path, rule: str, fix: str) -> None:
    text = changed("when: record_count >= 10 and avg_dep_delay > 60", f'when: "{rule}"')
    (problem,) = problems_of(tmp_path, text)
    assert f": windows.hourly.alerts.disruption.when: {rule!r} " in problem
    assert fix in problem


@pytest.mark.parametrize("number", ["1", "1.5", "-3", "0", "1e3", "1_000", "0x10"])
def test_a_severity_may_be_a_number_without_quotes(tmp_path: Path, number: str) -> None:
    plain = load_text(tmp_path, changed("severity: avg_dep_delay  ", f"severity: {number}  "))
    canonical = str(yaml.safe_load(number))
    quoted = load_text(tmp_path, changed("severity: avg_dep_delay  ", f"severity: '{canonical}'  "))
    assert table_definition(plain, "hourly", "alerts") == table_definition(
        quoted, "hourly", "alerts"
    )
    rule = plain.windows["hourly"].alerts["disruption"]
    assert float(rule.severity) == float(canonical)
    assert rule.severity_sql({}).fails is None


@pytest.mark.parametrize("operator", ["==", "!=", "<>", "<=>"])
def test_operators_of_sql_are_accepted(tmp_path: Path, operator: str) -> None:
    load_text(tmp_path, changed("record_count >= 10 and", f"record_count {operator} 10 and"))
