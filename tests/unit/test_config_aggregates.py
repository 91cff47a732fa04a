"""Aggregates of a pipeline's file with an expression, a condition or a list (rules G1, G3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pipeline_texts import (
    FLIGHTS,
    changed,
    line_of,
    load_text,
    problems_of,
    table_definition,
)

OLD = "total_distance: sum(distance)"


@pytest.mark.parametrize(
    ("text", "kind", "written"),
    [
        ("count() where dest = 'LAX'", "bigint", "count(*) where dest = 'LAX'"),
        (
            "max(distance) where dep_delay>60",
            "bigint",
            "max(distance) where dep_delay > 60",
        ),
        ("sum(distance * 2)", "bigint", "sum(distance * 2)"),
        ("avg(arr_delay - dep_delay)", "double", "avg(arr_delay - dep_delay)"),
        ("sum(distance * 0.5)", "decimal(32,1)", "sum(distance * 0.5)"),
        ("percentile(abs(dep_delay), 0.9)", "double", "percentile(ABS(dep_delay), 0.9)"),
        (
            "max(coalesce(dest, 'none'))",
            "string",
            "max(COALESCE(dest, 'none'))",
        ),
        ("collect_list(dest)", "array<string>", "collect_list(dest)"),
        (
            "collect_list(distance) where dest is null",
            "array<bigint>",
            "collect_list(distance) where dest IS NULL",
        ),
    ],
)
def test_an_aggregate_has_a_type_and_a_canonical_text(
    tmp_path: Path, text: str, kind: str, written: str
) -> None:
    pipeline = load_text(tmp_path, changed(OLD, f'total_distance: "{text}"'))
    windows = pipeline.windows["hourly"]
    assert windows.result_columns(pipeline.source)["total_distance"] == kind
    assert str(windows.aggregate_list[-1]) == written
    definition = table_definition(pipeline, "hourly", "final_windows")
    assert definition["windows.hourly.aggregates.total_distance"] == written


def test_the_records_get_a_column_for_each_expression(tmp_path: Path) -> None:
    """Rule G3: and a count of the records for which it fails, if it can."""
    text = changed(OLD, "total_distance: sum(distance * 2) where dest = 'LAX'")
    pipeline = load_text(tmp_path, text)
    bound = pipeline.windows["hourly"].bound_aggregates(pipeline.source)
    assert [each.name for each in bound.aggregates] == [
        *("avg_dep_delay", "max_dep_delay", "min_dep_delay", "total_distance"),
        "_failed_total_distance",
    ]
    condition, value = "(`dest` = 'LAX')", "TRY_MULTIPLY(`distance`, 2L)"
    fails = f"(`distance` IS NOT NULL AND 2L IS NOT NULL AND {value} IS NULL)"
    assert bound.added == {
        "_value_total_distance": (
            f"CAST((CASE WHEN {condition} THEN {value} ELSE NULL END) AS bigint)"
        ),
        "_failed_total_distance_record": (
            f"CASE WHEN (CASE WHEN {condition} THEN {fails} ELSE FALSE END) THEN TRUE END"
        ),
    }
    assert bound.failed == {"total_distance": "_failed_total_distance"}
    plain = load_text(tmp_path, FLIGHTS)
    bound = plain.windows["hourly"].bound_aggregates(plain.source)
    assert (bound.added, bound.failed) == ({}, {})
    assert list(bound.aggregates) == plain.windows["hourly"].aggregate_list


def test_a_rule_may_read_a_list(tmp_path: Path) -> None:
    """Rule E5."""
    text = changed(OLD, "total_distance: collect_list(dest)")
    rule = "size(total_distance) > 9 and total_distance[0] = 'LAX'"
    pipeline = load_text(tmp_path, text.replace("record_count >= 10 and avg_dep_delay > 60", rule))
    windows = pipeline.windows["hourly"]
    found = windows.alerts["disruption"].when_sql(windows.result_columns(pipeline.source))
    assert found.sql == (
        "((CAST(SIZE(`total_distance`) AS BIGINT) > 9L) "
        "AND (TRY_ELEMENT_AT(`total_distance`, 1) = 'LAX'))"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "sum(distance * 2)",
            "in the expression, or the result overflows bigint: cast an operand to double, as in",
        ),
        ("min(distance * 2)", "overflows its type in the expression: cast an operand to double"),
    ],
)
def test_a_failure_has_its_message(tmp_path: Path, text: str, words: str) -> None:
    """Rule G3."""
    pipeline = load_text(tmp_path, changed(OLD, f"total_distance: {text}"))
    windows = pipeline.windows["hourly"]
    columns = windows.result_columns(pipeline.source)
    message = windows.failure_messages(columns)["total_distance"]
    assert message.startswith(f"{text}: ")
    assert words in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sum(distanse * 2)", "there is no column 'distanse'; did you mean 'distance'?"),
        ("sum(distance) where des = 'LAX'", "there is no column 'des'; did you mean 'dest'?"),
        ("count() where dest", "'dest': must be a boolean after where, not of type string; comp"),
        ("count() where dest = LAX", "no column 'LAX'; use one of carrier, flight, dest"),
        ("count where dest = 'x'", "is not an aggregate; write \"count() where dest = 'x'\""),
        ("count() where dest >= = 'a'", "has '>==', which is not an operator; write '>='"),
        ("count() where ", "has nothing after 'where'; write a condition, as in 'x > 3'"),
        ("sum(distance * )", "holds 'distance *', which is not a single SQL expression at '*'"),
        ("count(*) filter (where dest = 'x')", "write \"count(*) where dest = 'x'\""),
        ("avg(dep_delay > 60)", "avg takes numbers"),
        ("max(origin || 'x')", "takes 'origin', the key; use value columns: carrier, flight, dest"),
        ("count() where origin = 'EWR'", "takes 'origin', the key; use value columns: carrier"),
        ("count() where record_count > 1", "there is no column 'record_count'"),
        ("sum(distance * 2, 3)", "sum takes one column; write 'sum(distance * 2)', and a second"),
    ],
)  # fmt: skip
def test_a_mistake_has_file_line_value_and_fix(tmp_path: Path, text: str, words: str) -> None:
    written = f"'{text.replace(chr(39), chr(39) * 2)}'"
    whole = changed(OLD, f"total_distance: {written}")
    (problem,) = problems_of(tmp_path, whole)
    line = line_of(whole, "total_distance: ")
    field = "windows.hourly.aggregates.total_distance"
    assert problem.startswith(f"{tmp_path / 'flights.yaml'}:{line}: {field}: {text!r}")
    assert words in problem
