"""Who lands files reaches no other file: links, and names that other programs read as patterns."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from windows_pipeline.config.source import Source
from windows_pipeline.sources.landed_files import read_landed
from windows_pipeline.sources.landing import LandingFolder

DAY = date(2013, 1, 1)
NAMES = [
    "*.jsonl",
    "[a-z].jsonl",
    "{a,b}.jsonl",
    "a,b.jsonl",
    "a?.jsonl",
    "b\\c.jsonl",
    "%2e%2e%2fsecret.jsonl",
    "a b'\".jsonl",
    "..jsonl",
    "$(touch x).jsonl",
    "a\nb.jsonl",
]
READ = [name for name in NAMES if not name.startswith(".")]


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    """A folder with a day, beside a file that is none of the source's."""
    (tmp_path / "secret.jsonl").write_text('{"id": "secret"}\n')
    (tmp_path / "landing" / str(DAY)).mkdir(parents=True)
    return tmp_path / "landing"


def test_links_in_landing_are_not_followed_and_are_named(landing: Path) -> None:
    day = landing / str(DAY)
    (day / "own.jsonl").write_text('{"id": "own"}\n')
    (day / "link.jsonl").symlink_to(landing.parent / "secret.jsonl")
    (landing / "2013-01-02").symlink_to(landing.parent)
    assert LandingFolder(str(landing)).days == [DAY]
    assert [file.name for file in LandingFolder(str(landing)).files([DAY])] == ["own.jsonl"]
    link = "a link, which is not followed"
    assert LandingFolder(str(landing)).skipped([DAY]) == [
        f"2013-01-01/link.jsonl: {link}",
        f"2013-01-02: {link}",
    ]
    with pytest.raises(FileNotFoundError, match="must be a folder, but is a link"):
        LandingFolder(str(landing)).files([date(2013, 1, 2)])


def test_a_file_name_is_no_pattern(landing: Path, spark: SparkSession) -> None:
    for name in NAMES:
        (landing / str(DAY) / name).write_text(f'{{"id": "{NAMES.index(name)}"}}\n')
    fields = {"path": "data", "format": "jsonl", "columns": {"id": "string", "at": "timestamp"}}
    source = Source.model_validate({**fields, "key": "id", "event_time": "at"})
    rows = read_landed(
        spark, source, LandingFolder(str(landing)), LandingFolder(str(landing)).files([DAY])
    ).collect()
    expected = sorted((name, str(NAMES.index(name))) for name in READ)
    assert sorted((row.file, row.id) for row in rows) == expected
