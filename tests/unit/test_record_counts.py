"""Rule A6: landed records are counted without the readers of a run, whatever a file holds."""

from __future__ import annotations

import bz2
import gzip
import io
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windows_pipeline.config.source import Source
from windows_pipeline.sources import record_counts
from windows_pipeline.sources.bad_files import BadFileError
from windows_pipeline.sources.csv.records import header_of, names_in, record_columns
from windows_pipeline.sources.csv.scan import CsvForm
from windows_pipeline.sources.landing import LandingFolder
from windows_pipeline.sources.record_counts import landed_counts

DAY, NEXT = date(2026, 11, 1), date(2026, 11, 2)
BOM = b"\xef\xbb\xbf"


def counted(root: Path, kind: str, files: dict[str, bytes], **fields: object) -> dict[date, int]:
    """What is counted in files, whose names begin with their day's folder."""
    for name, data in files.items():
        file = root / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(data)
    landing = LandingFolder(str(root))
    columns = {"k": "string", "t": "bigint"}
    declared = {"path": str(root), "format": kind, "columns": columns, "key": "k"}
    source = Source.model_validate(declared | {"event_time": "t"} | fields)
    return landed_counts(source, landing, landing.files(landing.days))


CSV: list[tuple[bytes, int]] = [
    (b"", 0),
    (b" \n\r\n", 0),
    (b"k,t", 0),
    (b"k,t\na,1\nb,2\n", 2),
    (b"k,t\na,1\nb,2", 2),  # no line break at the end
    (b"k,t\r\na,1\r\nb,2\r\n", 2),
    (b"k,t\ra,1\rb,2\r", 2),
    (b"k,t\na,1\r\n\r\rb,2\n", 2),  # mixed line breaks around blank lines
    (b"\n \t\nk,t\n\na,1\n \v\f\n", 1),
    (b"k,t\na,1\nk,t\nb,2\nk,t", 2),  # the header again
    (b'k,t\na,1\n"k",t\n', 2),  # the header's fields, but not its text
    (BOM + b"k,t\na,1\nk,t\n", 1),
    (b"k,t\n,\n#a,1\n", 2),  # nothing, and no comment
    (b'k,t\n"a\nb",1\n"c\r\n\r\nd",2\ne,3\n', 3),  # line breaks in quotes
    (b'k,t\n"a""\n""b",1\nc,2\n', 2),  # doubled quotes around a line break
    (b'k,t\na"\nb",1\n', 2),  # a quote opens a field only at its start
    (b'k,t\n"a"b\nc,1\n', 2),  # text after a closing quote
    (b'k,t\n""\n"\n', 2),  # no blank line, and a quote that is not closed
    (b'k,t\n"a\nb,1\nk,t\n', 1),
    (b'"k\nk",k,t\na,b,1\n"k\nk",k,t\n', 1),  # a header of two lines
    (b"k,t\na,1,2\nb\n\xff\x00,1\n", 3),  # malformed
    (b"k,t\n\xc2\x85\n\x1c\n", 2),  # signs that are blanks or line breaks elsewhere
]  # fmt: skip


@pytest.mark.parametrize(("data", "count"), CSV)
def test_csv_records_are_counted(tmp_path: Path, data: bytes, count: int) -> None:
    # Declared columns are those of any header; a count needs none.
    assert counted(tmp_path, "csv", {f"{DAY}/a.csv": data}) == {DAY: count}


def test_csv_files_of_other_forms_are_counted(tmp_path: Path) -> None:
    text = "k\tt\n\t\na\t1\n\n \n"
    files = {f"{DAY}/a.csv": text.encode("utf-16"), f"{DAY}/b.csv.gz": b""}
    files[f"{DAY}/b.csv.gz"] = gzip.compress(text.encode("utf-16"))
    files[f"{NEXT}/c.csv.bz2"] = bz2.compress(text.encode("utf-16"))
    # A record of two empty fields is no blank line, where a tab separates them.
    form = {"delimiter": "\t", "encoding": "utf-16"}
    assert counted(tmp_path, "csv", files, **form) == {DAY: 4, NEXT: 2}


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (b"", 0),
        (b'{"k": 1}\n{"k": 2}\n', 2),
        (b'{"k": 1}\r\n\r\n \t\r{"k": "\\n"}', 2),
        (BOM + b"\n{}\n", 1),
        (BOM, 0),
        (b'null\n[1]\nno JSON "\n"\n\xff\n\xc2\x85\n{"k": 1} {"k": 2}\n', 7),
    ],
)
def test_json_lines_are_counted(tmp_path: Path, data: bytes, count: int) -> None:
    assert counted(tmp_path, "jsonl", {f"{DAY}/a.jsonl": data}) == {DAY: count}


def test_rows_of_parquet_are_counted(tmp_path: Path) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"k": ["a", None, "b"]}), sink, row_group_size=2)
    files = {f"{day}/{name}.parquet": sink.getvalue() for day in (DAY, NEXT) for name in "ab"}
    assert counted(tmp_path, "parquet", files) == {DAY: 6, NEXT: 6}


@pytest.mark.parametrize(("kind", "data"), [("csv.gz", b"\x1f\x8bno"), ("parquet", b"PAR1")])
def test_files_that_can_not_be_read_are_named(tmp_path: Path, kind: str, data: bytes) -> None:
    files = {f"{DAY}/{name}.{kind}": data for name in "ab"}
    with pytest.raises(BadFileError, match=rf"/a\.{kind}: can't be read .*/b\.{kind}"):
        counted(tmp_path, kind.removesuffix(".gz"), files)


@settings(deadline=None)
@given(st.text('ab,"\n\r \t', max_size=30), st.integers(1, 5))
def test_any_csv_text_has_as_many_records_as_a_run_reads(text: str, size: int) -> None:
    """Wherever the text is cut."""
    form, data = CsvForm(), f"k,t\n{text}".encode()
    chunks = [data[begin : begin + size] for begin in range(0, len(data), size)]
    header = header_of(chunks, form, "f")
    assert header is not None
    of_file = (header, len(names_in(header, form, "f")), {0: True})
    read = sum(len(columns[0]) for columns in record_columns(chunks, form, "f", *of_file))
    assert record_counts.csv_count(chunks, form) == read
