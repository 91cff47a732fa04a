"""A file that is no YAML, or whose YAML is of another shape, is told by its line in plain words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.pipeline_texts import FLIGHTS, changed, line_of, problems_of

WHEN = "when: record_count >= 10 and avg_dep_delay > 60"


@pytest.mark.parametrize(
    ("text", "line", "cure"),
    [
        ("", 1, "write a pipeline"),
        ("# nothing\n", 1, "write a pipeline"),
        ("- a\n- b\n", 1, "write 'name: value' lines"),
        ("name: x\nsource: [1, 2\n", 2, "that line 3 does not fit into; close it before"),
        ("name: x\n\tsource: y\n", 2, "has a tab where YAML takes spaces only; write spaces"),
        ("name: x\n---\nname: y\n", 2, "leave '---' out: each pipeline has a file of its own"),
        ("name: &a x\nsource: *a\n", 2, "write the value out"),
        ("name: !!python/object/apply:os.system ['true']\n", 1, "a tag in front (!name)"),
        ("name: ]\n", 1, "check the indentation (spaces, no tabs), colons and quotes there"),
        ("name: \x00\n", 1, "remove that character"),
    ],
)
def test_a_file_that_is_no_pipeline_is_refused(
    tmp_path: Path, text: str, line: int, cure: str
) -> None:
    (problem,) = problems_of(tmp_path, text)
    assert problem.startswith(f"{tmp_path / 'flights.yaml'}:{line}: ")
    assert cure in problem


# What is written instead of a part of the file, the line of the mistake, and words of the cure;
# '{before}' is the line before it.
BROKEN = [
    (
        "    grace: 6 hours",
        "     grace: 6 hours",
        "deeper than line {before}, which has a value al",
    ),
    (
        "    flight: bigint",
        "     flight: bigint",
        "deeper than line {before}, which has a value al",
    ),
    ("    aggregates:", "     aggregates:", "deeper than line {before}, which has a value already"),
    ("    grace: 6 hours", "   grace: 6 hours", "by 3, as no block above it is; indent it by 4 as"),
    (
        "  key: origin",
        " key: origin",
        "indent it by 4 as line {before}, or by 2 as line 8, or by 0",
    ),
    ("    grace: 6 hours", "    grace 6 hours", "is no 'name: value'; write it so, with a blank"),
    ("    flight: bigint", "    flight:bigint", "is no 'name: value'; write it so, with a blank"),
    ("  format: jsonl", "  format: 'jsonl", "opens a quote that line 45 closes; close it where"),
    ("  format: jsonl", '  format: "jsonl', "opens a quote that nothing closes; close it"),
    (WHEN, "when: 'EWR' = key", "follows a closed quote; put the value in quotes as a whole"),
    (WHEN, "when: key = 'a: b'", "has ': ' within a value; put the value in quotes"),
    (WHEN, "when: > 10", "has a value with a sign of YAML's own in front; put the value in quotes"),
    (WHEN, "when: `key` = 'EWR'", "a sign of YAML's own in front; put the value in quotes"),
    (WHEN, "when: *", "a sign of YAML's own in front; put the value in quotes"),
    (WHEN, "when: [record_count > 10", "opens a bracket that line 41 does not fit into; close it"),
    ("severity: -record_count", "severity: - record_count", "begins with '- ', as a list's item"),
    ("    flight: bigint", "    - flight: bigint", "among 'name: value' lines; leave '- ' out"),
    (
        "  path: data/flights",
        "  - path: data/flights",
        "and line 7 goes on as 'name: value'; leave",
    ),
]


@pytest.mark.parametrize(("old", "new", "cure"), BROKEN)
def test_what_is_no_yaml_is_told_on_its_own_line(
    tmp_path: Path, old: str, new: str, cure: str
) -> None:
    text = changed(old, new)
    line = line_of(text, new)
    (problem,) = problems_of(tmp_path, text)
    assert re.match(rf".*flights\.yaml:{line}: column \d+: no YAML: ", problem)
    assert cure.format(before=line - 1) in problem


def test_the_line_that_is_indented_less_is_named_where_the_parser_stops_at_the_next(
    tmp_path: Path,
) -> None:
    text = changed("    flight: bigint", "  flight: bigint")
    line = line_of(text, "  flight: bigint")
    (problem,) = problems_of(tmp_path, text)
    assert f"flights.yaml:{line + 1}: " in problem
    assert f"is indented deeper than line {line}, which has a value already" in problem


def test_a_file_that_does_not_begin_with_a_name_is_told(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path, changed("name: flights", "name flights"))
    assert f":{line_of(FLIGHTS, 'source:')}: " in problem
    assert "follows what is no 'name: value'; write that so" in problem


COLUMNS = re.compile(r"  columns:\n(    .*\n)+")


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (
            "[origin, departed_at]",
            "['origin', 'departed_at'] is a list; write 'columns:' with 'name: type' lines",
        ),
        (
            "[{origin: string}, {departed_at: timestamp}, {landed_at: timestamp}]",
            "[{'origin': 'string'}, {'departed_at': 'timestamp'}, {'lande... is a list; write",
        ),
        ("origin", "'origin' is no mapping; write 'columns:' with 'name: type' lines under it"),
        ("", "'' has no value; write 'columns:' with 'name: type' lines under it"),
    ],
)
def test_columns_of_another_shape_are_told(tmp_path: Path, columns: str, told: str) -> None:
    text = COLUMNS.sub(f"  columns: {columns}\n", FLIGHTS)
    (problem,) = problems_of(tmp_path, text)
    assert f":{line_of(text, '  columns:')}: source.columns: {told}" in problem


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("emit_empty: true", "trigger: 15 minutes", "with 'early_every: 15 minutes' lines under"),
        ("\n  start: 2013-01-01\n  end: 2014-01-01", " [2013-01-01]", "is a list; write 'parti"),
        (
            "format: jsonl",
            "format: jsonl\n  kafka: a:1",
            "write 'kafka:' with 'servers: ...' lines",
        ),
        ("dest: string", "dest:", "'' has no value; write 'dest: string'"),
    ],
)
def test_another_shape_is_told_with_the_wanted_one(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    text = re.sub(r" *#.*", "", FLIGHTS)
    assert text.count(old) == 1
    assert told in problems_of(tmp_path, text.replace(old, new))[0]


def test_windows_and_alerts_of_another_shape_are_told(tmp_path: Path) -> None:
    text = FLIGHTS[: FLIGHTS.index("  hourly:")] + "  hourly: sliding\n"
    (problem,) = problems_of(tmp_path, text)
    assert (
        "windows.hourly: 'sliding' is no mapping; write 'hourly:' with 'kind: ...' and" in problem
    )
    text = FLIGHTS[: FLIGHTS.index("      disruption:")] + "      late: record_count > 3\n"
    (problem,) = problems_of(tmp_path, text)
    assert "is no mapping; write 'late:' with 'when: ...' and 'severity: ...' lines" in problem


@pytest.mark.parametrize(
    ("path", "line", "told"),
    [
        (
            "",
            "source:",
            "source.path: has no value; write 'path: ...' in source, the folder that h",
        ),
        (
            "  path:\n",
            "  path:",
            "source.path: '' has no value; write 'path: ...' in source, the f",
        ),
    ],
)
def test_a_missing_path_is_told_with_the_field_to_write(
    tmp_path: Path, path: str, line: str, told: str
) -> None:
    text = re.sub(r"  path: .*\n", path, FLIGHTS)
    (problem,) = problems_of(tmp_path, text)
    assert f":{line_of(text, line)}: {told}" in problem


def test_a_missing_topic_is_told_and_a_wrong_field_of_one(tmp_path: Path) -> None:
    text = re.sub(r"  (path|arrival): .*\n", "", changed("format: jsonl", "format: kafka"))
    (problem,) = problems_of(tmp_path, text)
    assert "source.kafka: has no value; write 'kafka: {servers: ..., topic: ...}'" in problem
    text = text.replace("format: kafka", "format: kafka\n  kafka: {servers: a:1, tpic: b}")
    missing, unknown = problems_of(tmp_path, text)
    assert "source.kafka.topic: is missing; write 'topic: ...' in source.kafka" in missing
    assert "'tpic' is no field here; did you mean 'topic'?" in unknown
