"""Landed CSV files are read as RFC 4180 has them: by days and as a stream (A1, A6)."""

from __future__ import annotations

import pytest

from tests.support.small_project import SmallProject

WAYS = ["run", "stream"]
TEXTS = {"k": "string", "t": "bigint", "v": "double", "x": "string"}


@pytest.mark.parametrize("way", WAYS)
def test_a_record_that_is_too_long_makes_its_file_bad(project: SmallProject, way: str) -> None:
    """The error names the file and the line where the quote opened; nothing is ingested."""
    project.declare(columns=TEXTS, max_record_bytes=1_000)
    lines = ['a,0,1,"x\ny"', 'b,1,1,"open', *["c,2,1,z"] * 200]
    project.land(1, "k,t,v,x\n" + "\n".join(lines), "bad.csv")
    status, said = project.ingest(way)
    assert status == 3
    assert "2026-11-01/bad.csv: a record must have at most 1,000 bytes" in said.replace("\n", " ")
    assert "opens in line 4 " in said.replace("\n", " ")
    assert "Traceback" not in said
    assert project.raw("key") == []
    project.land(1, "k,t,v,x\n" + "\n".join(lines).replace('"open', "open"), "bad.csv")
    assert project.ingest(way)[0] == 0
    assert len(project.raw("key")) == 202


@pytest.mark.parametrize(("way", "encoding"), [("run", "latin-1"), ("stream", "utf-16")])
def test_another_encoding_and_delimiter_may_be_named(
    project: SmallProject, way: str, encoding: str
) -> None:
    project.declare(columns=TEXTS, encoding=encoding, delimiter=";")
    project.land(1, 'k;t;v;x\né;0;1;1,5\nè;1;2;"y;z"\n'.encode(encoding))
    assert project.ingest(way)[0] == 0
    assert [(row["key"], row["x"]) for row in project.raw("key", "x")] == [
        ("é", "1,5"),
        ("è", "y;z"),
    ]
