"""How CSV files are written stands in a pipeline's file; mistakes are named with line and fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pipeline_texts import changed, line_of, load_text, problems_of
from windows_pipeline.config.definition import table_definition

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
