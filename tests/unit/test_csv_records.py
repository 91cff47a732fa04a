"""CSV text is split into records and fields as RFC 4180 has them, wherever it is cut."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windows_pipeline.sources.bad_files import BadFileError, bad_file_in
from windows_pipeline.sources.csv.kernel import SKIPPED
from windows_pipeline.sources.csv.records import (
    fields_of,
    header_of,
    names_in,
    record_columns,
)
from windows_pipeline.sources.csv.scan import CsvForm, scanned

LINE_BREAKS = ("\n", "\r\n", "\r")
FIELDS = st.text('ab,;\t"\r\n é\U0001f600', max_size=4)
ROWS = st.lists(st.lists(FIELDS, min_size=1, max_size=4), max_size=6)
COMMAS = CsvForm()
CUTS = st.lists(st.integers(0, 10_000), max_size=6)
QUOTING = st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])


def pieces(data: bytes, cuts: Sequence[int]) -> Iterator[bytes]:
    """Some data, cut at positions."""
    bounds = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return (data[begin:end] for begin, end in pairwise(bounds))


def split(data: bytes, form: CsvForm, cuts: Sequence[int] = ()) -> list[tuple[bytes, bytes, int]]:
    """The text, the line break and the state of each record."""
    return [
        (scan.text(record), bytes(scan.data[bound[1] : bound[2]]), int(scan.states[record]))
        for scan in scanned(pieces(data, cuts), form, "f", piece_bytes=1)
        for record, bound in enumerate(scan.bounds.tolist())
    ]


def read(data: bytes, form: CsvForm = COMMAS, cuts: Sequence[int] = ()) -> list[list[object]]:
    """The text, whether it is malformed, and the fields of each record below the header."""
    header = header_of(pieces(data, cuts), form, "f")
    assert header is not None
    names = names_in(header, form, "f")
    of_file = (form, "f", header, len(names), dict.fromkeys(range(len(names)), True))
    batches = record_columns(pieces(data, cuts), *of_file)
    return [
        list(row)
        for batch in batches
        for row in zip(*(column.to_pylist() for column in batch), strict=True)
    ]


def python_rows(text: str, delimiter: str) -> list[list[str]]:
    """What Python's csv module reads; line breaks are left as they are."""
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))


@settings(deadline=None)
@given(
    ROWS,
    QUOTING,
    st.sampled_from(LINE_BREAKS),
    st.sampled_from([",", ";", "\t", "é", "\U0001f600"]),
    CUTS,
)
def test_what_a_csv_writer_writes_is_read_as_pythons_reader_reads(
    rows: list[list[str]], quoting: int, line_break: str, delimiter: str, cuts: list[int]
) -> None:
    """Records, fields and every byte of the file, whatever the quotes, line breaks and chunks."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(
        buffer,
        delimiter=delimiter,
        lineterminator=line_break,
        quoting=quoting,  # type: ignore[arg-type]
    )
    writer.writerows(rows)
    text = buffer.getvalue()
    found = split(text.encode(), CsvForm(delimiter), cuts)
    assert b"".join(record + end for record, end, _ in found) == text.encode()
    fields = [fields_of(record, delimiter) or [] for record, _, _ in found]
    expected = [row or [""] for row in python_rows(text, delimiter)]
    assert [[field or "" for field in row] for row in fields] == expected


@settings(deadline=None)
@given(st.text('ab,"\r\n \ufeffé', max_size=40), st.lists(st.integers(0, 10_000), max_size=6))
def test_any_text_has_the_records_that_pythons_reader_finds(text: str, cuts: list[int]) -> None:
    """Text that breaks the rules of quotes, too; a byte order mark is no part of the text."""
    without_mark = text.removeprefix("\ufeff")
    found = split(text.encode(), CsvForm(), cuts)
    assert b"".join(record + end for record, end, _ in found) == without_mark.encode()
    assert len(found) == len(python_rows(without_mark, ","))
    assert found == split(text.encode(), CsvForm())


@settings(deadline=None)
@given(ROWS, st.sampled_from(["latin-1", "utf-16", "utf-16-be", "utf-32", "shift_jis", "utf-7"]))
def test_any_encoding_gives_the_records_of_utf8(rows: list[list[str]], encoding: str) -> None:
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows(rows)
    text = buffer.getvalue().encode(encoding, "ignore").decode(encoding)
    cuts = range(1, 40)
    assert split(text.encode(encoding), CsvForm(encoding=encoding), cuts) == split(
        text.encode(), CsvForm()
    )


def test_empty_text_in_quotes_is_no_null() -> None:
    assert read(b'a,b,c\n"",,x\n"""",""" ""","a\r\nb"\n') == [
        ['"",,x', False, "", None, "x"],
        ['"""",""" ""","a\r\nb"', False, '"', '" "', "a\r\nb"],
    ]


def test_empty_text_in_quotes_is_null_where_it_is_no_text() -> None:
    """In the second field, as in a column of numbers."""
    records = record_columns([b'a,b\n"",""\n'], COMMAS, "f", b"a,b", 2, {0: True, 1: False})
    assert [[column.to_pylist() for column in batch[2:]] for batch in records] == [[[""], [None]]]


def test_a_quote_opens_a_field_only_at_its_start() -> None:
    assert read(b'a,b\n5" pipe, "x"\n') == [['5" pipe, "x"', False, '5" pipe', ' "x"']]


@pytest.mark.parametrize(
    "record", ['"x"y,1', '"x" ,1', "1", "1,2,3", '1,"open', '1,"open""', "é,1".encode("latin-1")]
)
def test_a_record_that_is_no_csv_is_malformed(record: str | bytes) -> None:
    """With its text, which is valid in any case, and without fields."""
    data = record if isinstance(record, bytes) else record.encode()
    (found,) = read(b"a,b\n" + data)
    assert found == [data.decode(errors="replace"), True, None, None]


@pytest.mark.parametrize("line_break", LINE_BREAKS)
def test_blank_lines_and_repeated_headers_are_skipped(line_break: str) -> None:
    """A line of delimiters is no blank line, and neither is a text of blanks in quotes."""
    lines = ["\ufeff", " \t", "k,v", "a,1", "", "k,v", " ", ",", "b,2", "k,V"]
    data = line_break.join(lines).encode()
    assert [row[0] for row in read(data)] == ["a,1", ",", "b,2", "k,V"]
    (blanks,) = split(b'" "', CsvForm())
    assert blanks[2] != SKIPPED


def test_bytes_that_are_no_text_of_the_encoding_reject_their_record_alone() -> None:
    form = CsvForm(encoding="utf-16-le")
    data = "k,v\na,1\nX,2\nb,3\n".encode("utf-16-le").replace(b"X\0", b"\0\xd8")
    assert [row[1] for row in read(data, form, cuts=(17,))] == [False, True, False]
    assert [row[2] for row in read(data, form)] == ["a", None, "b"]
    assert "\ufffd" in str(read(data, form)[1][0])


def test_a_header_may_be_long_and_have_line_breaks() -> None:
    header = '"a\nb",' + ",".join(f"column {number}" for number in range(30_000))
    ((_, malformed, *fields),) = read(f"{header}\n{',' * 30_000}\n".encode())
    assert len(header) > 64 * 1024
    assert (malformed, set(fields), len(fields)) == (False, {None}, 30_001)
    assert names_in(header.encode(), CsvForm(), "f")[:2] == ["a\nb", "column 0"]


@pytest.mark.parametrize("cuts", [(), range(0, 3_000, 7)])
@pytest.mark.parametrize("line_break", LINE_BREAKS)
def test_a_record_that_is_too_long_is_an_error_that_names_the_line(
    line_break: str, cuts: Sequence[int]
) -> None:
    """The line where the quote opened, or where the record begins."""
    form = CsvForm(max_record_bytes=1_000)
    lines = ["k,v", 'a,"', '"', f"b,{'x' * 998}", 'c,"open', *["d,1"] * 300]
    data = line_break.join(lines).encode()
    with pytest.raises(BadFileError, match=r"f: a record must have .* 1,000 .* opens in line 5 "):
        split(data, form, cuts)
    lines[4] = f"c,{'x' * 999}"
    with pytest.raises(BadFileError, match=r"the record that begins in line 5 is longer"):
        split(line_break.join(lines).encode(), form, cuts)
    del lines[4]
    assert len(split(line_break.join(lines).encode(), form, cuts)) == 303


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"k,\xe9\n", r"f: its header must be utf-8 text, .* source\.encoding, such as latin-1"),
        ("k,v\n".encode("utf-16"), "it begins as UTF-16 does: write 'encoding: utf-16' in source"),
        (b'k,"v"x\n', "f: its header must be a CSV record"),
        (b'k,"v\n' + b"a,1\n" * 300_000, "opens in line 1 makes"),
    ],
)
def test_a_header_that_can_not_be_read_is_an_error(data: bytes, words: str) -> None:
    with pytest.raises(BadFileError, match=words):
        read(data)


def test_a_file_that_was_changed_meanwhile_is_an_error() -> None:
    records = record_columns([b"k,w\na,1\n"], CsvForm(), "f", b"k,v", 2, {0: True, 1: True})
    with pytest.raises(BadFileError, match="f: the file was changed while it was read"):
        list(records)


def test_the_error_of_a_task_has_the_error_of_the_file() -> None:
    trace = (
        'Traceback:\n  raise BadFileError(f"{file}: no")\n'
        "some.BadFileError: a.csv: no; land it\n\tat x\n"
    )
    assert str(bad_file_in(RuntimeError(trace))) == "a.csv: no; land it"
    assert bad_file_in(RuntimeError("BadFileError")) is None


WITHIN_LIMITS = """
import json, resource, sys
from windows_pipeline.sources.csv.records import record_columns
from windows_pipeline.sources.csv.scan import CHUNK_BYTES, CsvForm

LINE = b'key,"a text of two\\nlines",1234567890\\n'
def chunks(size):
    piece = LINE * (CHUNK_BYTES // len(LINE))
    yield b"k,t,v\\n"
    for _ in range(size // len(piece)):
        yield piece

def count(size):
    of_file = (CsvForm(), "f", b"k,t,v", 3, {0: True, 1: True, 2: False})
    return sum(len(batch[0]) for batch in record_columns(chunks(size), *of_file))

count(4 << 20)  # loads compiled code
status = dict(line.split(":", 1) for line in open("/proc/self/status") if line.startswith("VmData"))
used = int(status["VmData"].split()[0]) << 10
resource.setrlimit(resource.RLIMIT_DATA, (used + (64 << 20),) * 2)
print(json.dumps([count(int(sys.argv[1])), (CHUNK_BYTES // len(LINE)) * (int(sys.argv[1]) // (
    CHUNK_BYTES // len(LINE) * len(LINE)))]))
"""


@pytest.mark.long
def test_memory_does_not_grow_with_the_file() -> None:
    """200 MB are read within 64 MB."""
    ran = subprocess.run(
        [sys.executable, "-c", WITHIN_LIMITS, str(200 << 20)],
        cwd=Path(__file__).parents[2], capture_output=True, check=True, text=True,
    )  # fmt: skip
    read_records, written = json.loads(ran.stdout)
    assert read_records == written > 5_000_000
