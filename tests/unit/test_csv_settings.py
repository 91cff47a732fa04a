"""How CSV files are written stands in a pipeline's file; mistakes are named with line and fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pipeline_texts import changed, line_of, load_text, problems_of, table_definition

LATIN = "delimiter: ';'\n  encoding: Latin-1\n  max_record_bytes: 4096"


def csv_text(*fields: str) -> str:
    return changed("format: jsonl", "\n  ".join(["format: csv", *fields]))


def test_a_source_of_csv_files_says_how_they_are_written(tmp_path: Path) -> None:
    source = load_text(tmp_path, csv_text(LATIN)).source
    assert (source.delimiter, source.encoding, source.max_record_bytes) == (";", "iso8859-1", 4096)
    tabs = load_text(tmp_path, csv_text('delimiter: "\\t"', "encoding: UTF16")).source
    assert (tabs.delimiter, tabs.encoding) == ("\t", "utf-16")


def test_defaults_that_are_written_are_no_other_definition(tmp_path: Path) -> None:
    """The limit of a record's size changes no row, so it is no part of the definition."""

    def definition(*fields: str) -> dict[str, str]:
        return table_definition(load_text(tmp_path, csv_text(*fields)), None, "raw_events")

    same = definition("delimiter: ','", "encoding: UTF8", "max_record_bytes: 10")
    assert definition() == same
    assert definition("delimiter: ';'")["source.delimiter"] == ";"
    assert definition("encoding: latin1")["source.encoding"] == "iso8859-1"


@pytest.mark.parametrize(
    ("field", "value", "fix"),
    [
        ("delimiter", "';;'", "write one in quotes, such as ';' or, for a tab, \"\\t\""),
        ("delimiter", "''", "is not one character"),
        ("delimiter", "'\"'", "has a meaning of its own in CSV; write another character"),
        ("delimiter", '"\\n"', "has a meaning of its own in CSV"),
        ("encoding", "latin-99", "is not a known encoding; write the name of an encoding, such as"),
        ("encoding", "hex", "is not a known encoding"),
        ("encoding", "unicode_escape", "is not an encoding of files"),
        ("max_record_bytes", "0", "must be 1 to 268435456 bytes"),
        ("max_record_bytes", "300000000", "must be 1 to 268435456 bytes"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_fix(
    tmp_path: Path, field: str, value: str, fix: str
) -> None:
    text = csv_text(f"{field}: {value}")
    (problem,) = problems_of(tmp_path, text)
    assert f"flights.yaml:{line_of(text, f'{field}: {value}')}: source.{field}" in problem
    assert fix in problem


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("jsonl", "delimiter", "';'"),
        ("jsonl", "encoding", "utf-8"),
        ("parquet", "delimiter", "';'"),
        ("parquet", "encoding", "utf-8"),
        ("parquet", "max_record_bytes", "10"),
    ],
)
def test_what_is_for_other_formats_is_refused(
    tmp_path: Path, kind: str, field: str, value: str
) -> None:
    text = changed("format: jsonl", f"format: {kind}\n  {field}: {value}")
    (problem,) = problems_of(tmp_path, text)
    assert f"flights.yaml:{line_of(text, f'{field}: {value}')}: source.{field}" in problem
    assert f"must be left out with format: {kind}: " in problem
    assert problem.endswith(f"remove {field}")


@pytest.mark.parametrize("way", ["stop", "skip"])
def test_what_becomes_of_bad_files_is_no_part_of_the_definition(tmp_path: Path, way: str) -> None:
    """Rule A8: a bad file changes no row that a table holds already."""
    plain = load_text(tmp_path, csv_text())
    pipeline = load_text(tmp_path, csv_text(f"on_bad_file: {way}"))
    assert pipeline.source.skips_bad_files == (way == "skip")
    definitions = [table_definition(each, None, "raw_events") for each in (plain, pipeline)]
    assert definitions[0] == definitions[1]


def test_another_word_for_bad_files_is_named_with_its_line_and_fix(tmp_path: Path) -> None:
    text = csv_text("on_bad_file: ignore")
    (problem,) = problems_of(tmp_path, text)
    line = line_of(text, "on_bad_file: ignore")
    text = "source.on_bad_file: 'ignore' is not a known value; use 'stop' or 'skip'"
    assert problem.endswith(f"flights.yaml:{line}: {text}")


def test_a_source_without_files_has_no_bad_files(tmp_path: Path) -> None:
    text = changed("format: jsonl", "format: delta\n  on_bad_file: skip")
    problems = problems_of(tmp_path, text)
    line = line_of(text, "on_bad_file: skip")
    expected = (
        f"flights.yaml:{line}: source.on_bad_file: 'skip' must be left out with format: delta: it "
        "has no landed files; remove on_bad_file"
    )
    assert any(problem.endswith(expected) for problem in problems)
