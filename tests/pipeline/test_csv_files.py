"""Landed CSV files are read as RFC 4180 has them: by days and as a stream (A1, A6)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.support.small_project import HEADER, SmallProject

WAYS = ["run", "stream"]
TEXTS = {"k": "string", "t": "bigint", "v": "double", "x": "string"}


@pytest.mark.parametrize("way", WAYS)
def test_a_quoted_field_may_hold_line_breaks(project: SmallProject, way: str) -> None:
    """No line of a text is a record of its own, and lines order the records (A1)."""
    project.declare(columns=TEXTS)
    lines = ["k,t,v,x", 'a,0,1,"first', "b,1000,100,middle", 'last"', 'c,1,2,"say ""hi"""']
    project.land(1, "\r\n".join(lines))
    assert project.ingest(way)[0] == 0
    assert project.raw("key", "event_time", "v", "x") == [
        {"key": "a", "event_time": ms(0), "v": 1.0, "x": "first\r\nb,1000,100,middle\r\nlast"},
        {"key": "c", "event_time": ms(1), "v": 2.0, "x": 'say "hi"'},
    ]


@pytest.mark.parametrize("way", WAYS)
def test_quotes_around_nothing_are_the_empty_text(project: SmallProject, way: str) -> None:
    """Nothing between delimiters is null, and so are quotes around nothing in another column."""
    project.declare(columns=TEXTS)
    project.land(1, 'k,t,v,x\na,0,"",""\nb,1,,\n')
    assert project.ingest(way)[0] == 0
    assert project.raw("key", "v", "x") == [
        {"key": "a", "v": None, "x": ""},
        {"key": "b", "v": None, "x": None},
    ]


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


@pytest.mark.parametrize("way", WAYS)
def test_a_header_of_more_than_64_kb_is_read(project: SmallProject, way: str) -> None:
    project.declare()
    names = ",".join(f"column_{number}" for number in range(8_000))
    project.land(1, f"{names},k,t,v\n{',' * 8_000}a,0,1\n")
    assert project.ingest(way)[0] == 0
    assert project.raw("key", "v") == [{"key": "a", "v": 1.0}]
    assert project.rejected() == []


@pytest.mark.parametrize("way", WAYS)
def test_bytes_that_are_no_text_reject_their_record(project: SmallProject, way: str) -> None:
    """Two keys stay out of the windows, and do not become one."""
    project.declare()
    project.land(1, HEADER.encode() + b'\xe9,0,1\n"\xe8\n",1,2\n' + b"b,2,3\n" * 3)
    assert project.ingest(way)[0] == 0
    assert [row["key"] for row in project.raw("key")] == ["b"] * 3
    assert project.rejected() == [("malformed", '"\ufffd\n",1,2'), ("malformed", "\ufffd,0,1")]


@pytest.mark.parametrize(
    ("way", "encoding"),
    [
        ("run", "latin-1"),
        ("stream", "utf-16"),
        pytest.param("stream", "latin-1", marks=pytest.mark.long),
        pytest.param("run", "utf-16", marks=pytest.mark.long),
    ],
)
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


@pytest.mark.parametrize("way", WAYS)
def test_a_header_of_another_delimiter_is_an_error_that_names_it(
    project: SmallProject, way: str
) -> None:
    project.declare()
    project.land(1, "k;t;v\na;0;1,5\nb;1;2\n")
    status, said = project.ingest(way)
    said = said.replace("\n", " ")
    assert status == 3
    assert "2026-11-01/a.csv: its header ['k;t;v'] has no column 'k'" in said
    assert "source.delimiter is ','" in said
    assert "write 'delimiter: \";\"' in source" in said


def ms(milliseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
