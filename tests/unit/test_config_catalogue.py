"""What a pipeline's file says for people and for Dagster's schedule changes no table."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.support.pipeline_texts import FLIGHTS, load_text, problems_of, table_definition
from windows_pipeline.config import Pipeline

TOP: dict[str, object] = {
    "description": "Delays of *flights*",
    "owners": ["team:operations", "ann.lee+ops@example.org"],
    "tags": {"tier": "1", "domain": "air"},
    "schedule": {"cron": "*/15  0-6,12 1 1-12/3 0", "zone": "America/New_York", "enabled": True},
    "expect_every": "1 day",
}
OF_RULE: dict[str, object] = {
    "description": "An airport is late",
    "level": "critical",
    "owner": "team:operations",
    "runbook": "https://wiki.example.org/delays?a=1",
}


def declared(top: dict[str, object], of_rule: dict[str, object]) -> str:
    fields = yaml.safe_load(FLIGHTS)
    fields["windows"]["hourly"]["alerts"]["disruption"] |= of_rule
    return yaml.safe_dump(fields | top)


def definitions(pipeline: Pipeline) -> list[dict[str, str]]:
    names = ("keyed_windows", "final_windows", "alerts")
    of_windows = [table_definition(pipeline, "hourly", name) for name in names]
    return [table_definition(pipeline, None, "raw_events"), *of_windows]


def test_no_field_for_people_changes_a_table(tmp_path: Path) -> None:
    """Rule H1: so no table has to be rebuilt for another description."""
    plain = load_text(tmp_path, declared({}, {}))
    described = load_text(tmp_path, declared(TOP, OF_RULE))
    assert definitions(described) == definitions(plain)
    assert described.schedule is not None
    assert described.schedule.cron == "*/15 0-6,12 1 1-12/3 0"
    assert described.expect_every == 86_400_000


def test_a_pipeline_knows_the_lines_that_declare_it(tmp_path: Path) -> None:
    text = declared(TOP, OF_RULE)
    pipeline = load_text(tmp_path, text)
    lines = text.splitlines()
    location = pipeline.declared_in("windows", "hourly")
    assert location is not None
    assert lines[location[1] - 1].strip() == "hourly:"
    assert pipeline.declared_in("windows", "hourly", "nothing") == location
    # The same fields in other lines are an equal pipeline.
    assert pipeline == load_text(tmp_path, f"\n\n{text}")


@pytest.mark.parametrize(
    ("field", "value", "shown", "fix"),
    [
        ("owners", ["ann"], "'ann'", "write an e-mail address, or a team as in 'team:operations'"),
        ("tags", {"tier": "one two"}, "'one two'", "use at most 63 letters, digits, '_', '-'"),
        ("description", " ", "' '", "is empty"),
        ("expect_every", "0 days", "'0 days'", "above zero"),
        ("schedule", {"cron": "30 0 * *"}, "'30 0 * *'", "must have five fields, not 4"),
        ("schedule", {"cron": "0 5-3 * * *"}, "'0 5-3 * * *'", "'5-3' as hour"),
        ("schedule", {"cron": "0 0 * * 7"}, "'0 0 * * 7'", "'7' as day of the week"),
        ("schedule", {"cron": "0 0 * * *", "zone": "Mars"}, "'Mars'", "is not a known time zone"),
    ],
)
def test_a_mistake_has_its_field_value_and_fix(
    tmp_path: Path, field: str, value: object, shown: str, fix: str
) -> None:
    text = declared({field: value}, {})
    (problem,) = problems_of(tmp_path, text)
    assert f": {field}" in problem
    assert f"{shown} " in problem
    assert fix in problem


@pytest.mark.parametrize(
    ("field", "value", "fix"),
    [
        ("level", "loud", "critical"),
        ("owner", "ann", "write an e-mail address"),
        ("runbook", "javascript:alert(1)", "begins with https:// or http://"),
        ("runbook", "https://a.example/x y", "begins with https:// or http://"),
    ],
)
def test_a_mistake_in_a_rule_has_its_value_and_fix(
    tmp_path: Path, field: str, value: str, fix: str
) -> None:
    (problem,) = problems_of(tmp_path, declared({}, {field: value}))
    assert f": windows.hourly.alerts.disruption.{field}: {value!r} " in problem
    assert fix in problem
