"""Any bytes of a landed file are records or a bad file, before Spark reads it (A6, A8)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.landed_texts import PACKED, records_of_csv
from tests.support.mutations import mutated
from windows_pipeline.config import Source
from windows_pipeline.sources.bad_files import BadFileError
from windows_pipeline.sources.csv.records import header_of, names_in, record_columns
from windows_pipeline.sources.csv.scan import CsvForm
from windows_pipeline.sources.landed_files import require_readable_days
from windows_pipeline.sources.landing import LandingFolder

DAY = date(2026, 11, 1)
CSV = b'k,t,note\na,1,x\n"b","2","y\n""z"""\n\n,3,\r\nc,4,5" pipe\n'
SIGNS = [
    *(b'"', b'""', b",", b"\n", b"\r", b"\r\n", b" ", b"\x00", b"\xff", b"\xc3", b"\xed\xa0\x80"),
    *(b"\xef\xbb\xbf", b"k,t,note\n", b"\xe2\x80\xa8", b"\x1f\x8b", b"BZh9", b"\x28\xb5\x2f\xfd"),
    *(b"PAR1", b"\x80" * 5, b"\x7f" * 9),
]


def source(kind: str) -> Source:
    return Source(
        path="data",
        format=kind,  # type: ignore[arg-type]
        columns={"k": "string", "t": "bigint"},
        key="k",
        event_time="t",
    )


def land(folder: Path, name: str, data: bytes) -> None:
    file = folder / DAY.isoformat() / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(data)


def is_bad(folder: Path, kind: str) -> BadFileError | None:
    """The error of the day's files; None if the driver sees nothing wrong with them."""
    try:
        require_readable_days(source(kind), LandingFolder(str(folder)), [DAY])
    except BadFileError as error:
        return error
    return None


def texts_of_csv(data: bytes, cut: int) -> list[str] | None:
    """The text of each record below the header; None if there is no header.

    Raises:
        BadFileError: The file is bad.
    """
    form, chunks = CsvForm(), [data[:cut], data[cut:]]
    header = header_of(chunks, form, "f")
    if header is None:
        return None
    count = len(names_in(header, form, "f"))
    found = record_columns(chunks, form, "f", header, count, dict.fromkeys(range(count), True))
    return [text for columns in found for text in columns[0].to_pylist()]


def require_csv(data: bytes, cut: int) -> bool:
    """Whether the bytes are records; each must be there once, with its text."""
    try:
        found = texts_of_csv(data, cut)
    except BadFileError:
        return False
    assert (found or []) == records_of_csv(data)
    return True


def fuzz_csv(seeds: range) -> None:
    found = set()
    for seed in seeds:
        random = Random(seed)
        data = mutated(random, CSV, SIGNS)
        found.add(require_csv(data, random.randrange(len(data) + 1)))
    assert found == {True, False}


def test_changed_csv_has_each_record_once_or_is_bad() -> None:
    fuzz_csv(range(400))


@given(st.binary(max_size=60) | st.lists(st.sampled_from(SIGNS), max_size=12).map(b"".join))
@settings(max_examples=200, deadline=None)
def test_any_bytes_of_csv_have_each_record_once_or_are_bad(data: bytes) -> None:
    require_csv(data, len(data) // 2)


def parquet(columns: dict[str, list[object]] | None = None) -> bytes:
    sink = io.BytesIO()
    rows = columns or {"k": ["a"], "t": [1], "s": [{"a": [1]}]}
    pq.write_table(pa.table(rows), sink)
    return sink.getvalue()


def fuzz_files(folder: Path, seeds: range) -> None:
    """Changed files of each format, packed before or after the change."""
    line = b'{"k": "a", "t": 1}\n'
    whole = [("csv", CSV), ("jsonl", line * 5), ("parquet", parquet())]
    found = set()
    for seed in seeds:
        random = Random(seed)
        kind, data = whole[seed % 3]
        ending = "" if kind == "parquet" else random.choice(list(PACKED))
        land(folder, f"a.{kind}{ending}", mutated(random, PACKED[ending](data), SIGNS))
        bad = is_bad(folder, kind)
        found.add((kind, bad is None))
        assert bad is None or bad.file == f"{DAY}/a.{kind}{ending}"
        (folder / DAY.isoformat() / f"a.{kind}{ending}").unlink()
    assert found == {(kind, is_good) for kind, _ in whole for is_good in (True, False)}


def test_changed_files_are_bad_by_name_or_left_to_spark(tmp_path: Path) -> None:
    fuzz_files(tmp_path, range(300))


def test_a_footer_that_ends_arrow_is_left_to_spark(tmp_path: Path) -> None:
    """Rule A8: of this one PyArrow throws, and catches nothing, where it reads a column's sizes."""
    land(tmp_path, "a.parquet", mutated(Random(2009), parquet(), SIGNS))
    assert is_bad(tmp_path, "parquet") is None


@pytest.mark.long
def test_many_changed_files_are_bad_by_name_or_left_to_spark(tmp_path: Path) -> None:
    fuzz_csv(range(1_000, 60_000))
    fuzz_files(tmp_path, range(1_000, 31_000))


def error_of(folder: Path, kind: str, data: bytes) -> str:
    land(folder, f"a.{kind}", data)
    return str(is_bad(folder, kind)).removeprefix(f"{DAY}/a.{kind}: ")


def names(count: int) -> list[str]:
    return ["k", "t", *(f"c{number}" for number in range(count - 2))]


def of_names(kind: str, wanted: Sequence[str]) -> bytes:
    if kind == "csv":
        return (",".join(wanted) + "\n").encode()
    return parquet({name: [None] for name in wanted})


@pytest.mark.parametrize(("kind", "most"), [("csv", 50_000), ("parquet", 5_000)])
def test_a_file_has_at_most_so_many_columns(tmp_path: Path, kind: str, most: int) -> None:
    assert error_of(tmp_path, kind, of_names(kind, names(most))) == "None"
    assert error_of(tmp_path, kind, of_names(kind, names(most + 1))) == (
        f"a file must have at most {most:,} columns, but has more; land the declared columns, or "
        "fewer others"
    )


def test_a_header_of_half_a_million_columns_is_refused_at_once(tmp_path: Path) -> None:
    """Each field of a header takes the driver a while; so no more are read than are allowed."""
    assert "at most 50,000 columns" in error_of(tmp_path, "csv", b"," * 500_000 + b"\n")


def test_a_column_name_must_be_utf8(tmp_path: Path) -> None:
    data = parquet({"k": ["a"], "t": [1], "wxyz": [1]})
    assert error_of(tmp_path, "parquet", data.replace(b"wxyz", b"wx\xffz")) == (
        "the name of a column is not UTF-8; write its name as UTF-8"
    )


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"a": [1], "A": [2]}, "columns 'a' and 'A' have one name to Spark; rename one of them"),
        (
            {"s": [{"a": 1, "A": 2}]},
            "fields of a column 'a' and 'A' have one name to Spark; rename one of them",
        ),
        (
            {"_Metadata": [1]},
            "column '_Metadata' has the name of a column that Spark adds to each file; rename it",
        ),
    ],
)
def test_names_must_differ_for_spark(
    tmp_path: Path, columns: dict[str, list[object]], words: str
) -> None:
    assert error_of(tmp_path, "parquet", parquet({"k": ["a"], "t": [1], **columns})) == words


def test_types_are_nested_at_most_so_deeply(tmp_path: Path) -> None:
    def nested(levels: int) -> bytes:
        kind = pa.int8()
        for _ in range(levels):
            kind = pa.struct([("a", kind)])
        sink = io.BytesIO()
        pq.write_table(pa.table({"k": ["a"], "s": pa.nulls(1, kind)}), sink)
        return sink.getvalue()

    assert error_of(tmp_path, "parquet", nested(50)) == "None"
    assert error_of(tmp_path, "parquet", nested(51)) == (
        "a column must have at most 50 levels of nested types, but has more; write it as text"
    )
