"""Errors about files that are not YAML, or YAML of another shape, have the line and the fix."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.pipeline_texts import FLIGHTS, changed, line_of, problems_of

WHEN = "when: record_count >= 10 and avg_dep_delay > 60"


@pytest.mark.parametrize(
    ("text", "line", "fix"),
    [
        ("", 1, "write a pipeline"),
        ("# nothing\n", 1, "write a pipeline"),
        ("- a\n- b\n", 1, "write 'name: value' lines"),
        ("name: x\nsource: [1, 2\n", 2, "a bracket that is still open at line 3; close it before"),
        ("name: x\n\tsource: y\n", 2, "has a tab where YAML allows spaces only; write spaces"),
        ("name: x\n---\nname: y\n", 2, "remove '---': each pipeline has a file of its own"),
        ("name: &a x\nsource: *a\n", 2, "aliases (*name) are not supported; write the value out"),
        ("name: !!python/object/apply:os.system ['true']\n", 1, "begins with a tag (!name)"),
        ("name: ]\n", 1, "check the indentation (spaces, no tabs), colons and quotes there"),
        ("name: \x00\n", 1, "remove that character"),
    ],
)
def test_a_file_that_is_not_a_pipeline_is_refused(
    tmp_path: Path, text: str, line: int, fix: str
) -> None:
    (problem,) = problems_of(tmp_path, text)
    assert problem.startswith(f"{tmp_path / 'flights.yaml'}:{line}: ")
    assert fix in problem


# A part of the file, the text in its place, and words of the error; '{before}' is the number of
# the line before the mistake.
BROKEN = [
    (
        "    grace: 6 hours",
        "     grace: 6 hours",
        "deeper than line {before}, which already has a",
    ),
    ("    aggregates:", "     aggregates:", "deeper than line {before}, which already has a value"),
    ("    grace: 6 hours", "   grace: 6 hours", "by 3, but no block above it is; indent it by 4"),
    (
        "  key: origin",
        " key: origin",
        "indent it by 4 like line {before}, or by 2 like line 8, or by 0",
    ),
    ("    grace: 6 hours", "    grace 6 hours", "is not 'name: value'; write it so, with a blank"),
    ("  format: jsonl", "  format: 'jsonl", "opens a quote that line 45 closes; close it where"),
    ("  format: jsonl", '  format: "jsonl', "opens a quote and never closes it; close it"),
    (WHEN, "when: 'EWR' = key", "follows a closing quote; put the value in quotes as a whole"),
    (WHEN, "when: key = 'a: b'", "has ': ' within a value; put the value in quotes"),
    (WHEN, "when: > 10", "has a value that begins with a special character of YAML; put the value"),
    (WHEN, "when: [record_count > 10", "a bracket that is still open at line 41; close it before"),
    ("severity: -record_count", "severity: - record_count", "begins with '- ', like an item of a"),
    ("    flight: bigint", "    - flight: bigint", "among 'name: value' lines; remove '- '"),
    (
        "  path: data/flights",
        "  - path: data/flights",
        "but line 7 continues with 'name: value'; remove '- '",
    ),
]


@pytest.mark.parametrize(("old", "new", "fix"), BROKEN)
def test_an_error_about_yaml_has_the_line_of_the_mistake(
    tmp_path: Path, old: str, new: str, fix: str
) -> None:
    text = changed(old, new)
    line = line_of(text, new)
    (problem,) = problems_of(tmp_path, text)
    assert re.match(rf".*flights\.yaml:{line}: column \d+: not YAML: ", problem)
    assert fix.format(before=line - 1) in problem


def test_an_error_at_the_next_line_names_the_line_that_is_indented_less(
    tmp_path: Path,
) -> None:
    text = changed("    flight: bigint", "  flight: bigint")
    line = line_of(text, "  flight: bigint")
    (problem,) = problems_of(tmp_path, text)
    assert f"flights.yaml:{line + 1}: " in problem
    assert f"is indented deeper than line {line}, which already has a value" in problem


def test_a_file_must_begin_with_a_name(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path, changed("name: flights", "name flights"))
    assert f":{line_of(FLIGHTS, 'source:')}: " in problem
    assert "follows a line that is not 'name: value'; write that line so" in problem


COLUMNS = re.compile(r"  columns:\n(    .*\n)+")


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            "[origin, departed_at]",
            "['origin', 'departed_at'] is a list; write 'columns:' with 'name: type' lines",
        ),
        (
            "[{origin: string}, {departed_at: timestamp}, {landed_at: timestamp}]",
            "[{'origin': 'string'}, {'departed_at': 'timestamp'}, {'land… is a list; write",
        ),
        ("origin", "'origin' is not a mapping; write 'columns:' with 'name: type' lines under it"),
        ("", "'' has no value; write 'columns:' with 'name: type' lines under it"),
    ],
)
def test_columns_must_be_a_mapping(tmp_path: Path, columns: str, words: str) -> None:
    text = COLUMNS.sub(f"  columns: {columns}\n", FLIGHTS)
    (problem,) = problems_of(tmp_path, text)
    assert f":{line_of(text, '  columns:')}: source.columns: {words}" in problem


@pytest.mark.parametrize(
    ("old", "new", "words"),
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
def test_an_error_shows_which_shape_a_field_must_have(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    text = re.sub(r" *#.*", "", FLIGHTS)
    assert text.count(old) == 1
    assert words in problems_of(tmp_path, text.replace(old, new))[0]


def test_windows_and_alerts_must_be_mappings(tmp_path: Path) -> None:
    text = FLIGHTS[: FLIGHTS.index("  hourly:")] + "  hourly: sliding\n"
    (problem,) = problems_of(tmp_path, text)
    assert (
        "windows.hourly: 'sliding' is not a mapping; write 'hourly:' with 'kind: ...' an" in problem
    )
    text = FLIGHTS[: FLIGHTS.index("      disruption:")] + "      late: record_count > 3\n"
    (problem,) = problems_of(tmp_path, text)
    assert "is not a mapping; write 'late:' with 'when: ...' and 'severity: ...' lines" in problem


@pytest.mark.parametrize(
    ("path", "line", "words"),
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
def test_an_error_about_a_missing_path_has_the_field_to_write(
    tmp_path: Path, path: str, line: str, words: str
) -> None:
    text = re.sub(r"  path: .*\n", path, FLIGHTS)
    (problem,) = problems_of(tmp_path, text)
    assert f":{line_of(text, line)}: {words}" in problem


def test_a_topic_must_be_declared_with_known_fields(tmp_path: Path) -> None:
    text = re.sub(r"  (path|arrival): .*\n", "", changed("format: jsonl", "format: kafka"))
    (problem,) = problems_of(tmp_path, text)
    assert "source.kafka: has no value; write 'kafka: {servers: ..., topic: ...}'" in problem
    text = text.replace("format: kafka", "format: kafka\n  kafka: {servers: a:1, tpic: b}")
    missing, unknown = problems_of(tmp_path, text)
    assert "source.kafka.topic: is missing; write 'topic: ...' in source.kafka" in missing
    assert "'tpic' is not a field here; did you mean 'topic'?" in unknown
