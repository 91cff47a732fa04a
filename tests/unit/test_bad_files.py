"""Rule A8: a landed file that is bad is named, with cause and fix, before Spark reads records."""

from __future__ import annotations

import bz2
import gzip
import io
import os
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from pyarrow.fs import LocalFileSystem

from windows_pipeline.config.source import Source
from windows_pipeline.sources.bad_files import BadFileError, bad_file_in, naming_bad_files
from windows_pipeline.sources.file_checks import LandedFile, parquet_schemas, require_readable
from windows_pipeline.sources.landed_files import require_readable_days
from windows_pipeline.sources.landing import LandingFolder

DAY = date(2013, 1, 1)
HEADER = b"id,at,n\n"
GOOD = {"jsonl": b'{"id": "a", "at": "x", "n": 1}\n', "csv": HEADER + b"a,x,1\n"}
NOBODY = 65534


def source_of(kind: str) -> Source:
    fields = {"path": "data", "format": kind, "key": "id", "event_time": "at"}
    columns = {"id": "string", "at": "timestamp", "n": "bigint"}
    return Source.model_validate({**fields, "columns": columns})


def parquet(**arrays: pa.Array) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(arrays), sink)
    return sink.getvalue()


IDS = {"id": pa.array(["a", "b"]), "at": pa.array(["x", "y"]), "n": pa.array([1, 2])}


def land(folder: Path, name: str | bytes, data: bytes) -> None:
    day = folder / str(DAY)
    day.mkdir(exist_ok=True)
    text = name if isinstance(name, str) else os.fsdecode(name)
    (day / text).write_bytes(data)


def problem(folder: Path, kind: str) -> BadFileError:
    with pytest.raises(BadFileError) as raised:
        require_readable_days(source_of(kind), LandingFolder(str(folder)), [DAY])
    return raised.value


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
@pytest.mark.parametrize(
    ("name", "make", "fix"),
    [
        ("a.gz", None, "compress it, or rename it"),
        ("a.bz2", None, "compress it, or rename it"),
        ("a.zst", None, "compress it, or rename it"),
        ("a.txt", gzip.compress, "rename it"),
        ("a.txt", bz2.compress, "rename it"),
        ("a.txt", zstandard.compress, "rename it"),
        ("a:b", bytes, "rename it"),
        (b"caf\xe9", bytes, "rename it"),
    ],
)
def test_a_file_is_what_its_name_says(
    tmp_path: Path, kind: str, name: str | bytes, make: type[bytes] | None, fix: str
) -> None:
    land(tmp_path, "good", GOOD[kind])
    land(tmp_path, name, make(GOOD[kind]) if make else GOOD[kind])
    found = problem(tmp_path, kind)
    shown = name if isinstance(name, str) else "caf\\xe9"
    assert (found.file, found.fix, found.others) == (f"2013-01-01/{shown}", fix, ())
    assert found.days == {DAY}


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_compressed_files_and_files_without_a_byte_are_right(tmp_path: Path, kind: str) -> None:
    land(tmp_path, "a.gz", gzip.compress(GOOD[kind]))
    land(tmp_path, "a.bz2", bz2.compress(GOOD[kind]))
    land(tmp_path, "a.zst", zstandard.compress(GOOD[kind]))
    land(tmp_path, "empty", b"")
    land(tmp_path, "empty.bz2", bz2.compress(b""))
    require_readable_days(source_of(kind), LandingFolder(str(tmp_path)), [DAY])


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
@pytest.mark.parametrize("ending", [".gz", ".bz2", ".zst"])
def test_a_compressed_file_without_a_byte_is_cut(tmp_path: Path, kind: str, ending: str) -> None:
    """A failed upload looks like this; a compressed empty text has bytes."""
    land(tmp_path, f"a{ending}", b"")
    found = problem(tmp_path, kind)
    assert found.cause == (
        f"has no byte, and a file whose name ends with {ending} is never empty: it is cut"
    )
    assert found.fix == "land the file again, or remove it"


def test_a_bzip2_header_alone_is_a_cut_file(tmp_path: Path) -> None:
    land(tmp_path, "a.bz2", bz2.compress(GOOD["jsonl"])[:4])
    assert problem(tmp_path, "jsonl").cause == "can't be read (the compression is cut)"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "can't be read"),
        (b"no parquet at all", "can't be read"),
        (parquet(**IDS)[:-20], "can't be read"),
        (parquet(**IDS)[:-4] + b"PARE", "encrypted"),
        (parquet(**IDS, t=pa.array([1, 2], pa.time32("ms"))), "column 't' is time32[ms]"),
        (parquet(**IDS, t=pa.array([1, 2], pa.timestamp("ns"))), "column 't' is timestamp[ns]"),
    ],
    ids=["empty", "text", "cut", "encrypted", "TIME(MILLIS)", "nanoseconds"],
)
def test_a_parquet_file_has_a_footer_that_spark_reads(
    tmp_path: Path, data: bytes, words: str
) -> None:
    land(tmp_path, "good.parquet", parquet(**IDS))
    land(tmp_path, "bad.parquet", data)
    found = problem(tmp_path, "parquet")
    assert (found.file, words in found.cause) == ("2013-01-01/bad.parquet", True), str(found)


LARGE = "x" * ((16 << 20) + 1)
OF_LISTS = pa.list_(pa.struct([("t", pa.string())]))
OF_MAPS = pa.map_(pa.string(), pa.binary())


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", LARGE]),
        pa.array([b"", LARGE.encode()]),
        pa.array([LARGE, None]).dictionary_encode(),
        pa.array([[], [{"t": None}, {"t": LARGE}]], OF_LISTS),
        pa.array([{"a": LARGE.encode()}, None], OF_MAPS),
        pa.array([{LARGE: b""}, {}], OF_MAPS),
    ],
    ids=["text", "binary", "dictionary", "struct in a list", "map", "key of a map"],
)
def test_a_value_that_would_fill_memory_makes_a_parquet_file_bad(
    tmp_path: Path, values: pa.Array
) -> None:
    land(tmp_path, "good.parquet", parquet(**IDS))
    land(tmp_path, "bad.parquet", parquet(**IDS, t=values))
    found = problem(tmp_path, "parquet")
    assert found.file == "2013-01-01/bad.parquet"
    assert found.cause.startswith("a value must have at most 16,777,216 bytes, but column 't")
    assert found.cause.endswith(" has one of 16,777,217")


def test_a_parquet_file_may_have_many_values(tmp_path: Path) -> None:
    """More than one may have, together; and one of just the most bytes."""
    texts = pa.array([LARGE[:-1], *[str(number) * 100 for number in range(50_000)]])
    land(tmp_path, "a.parquet", parquet(id=texts, at=texts, t=texts.dictionary_encode()))
    require_readable_days(source_of("parquet"), LandingFolder(str(tmp_path)), [DAY])


def test_csv_headers_have_the_declared_columns(tmp_path: Path) -> None:
    """The first file that has them is what others must equal."""
    land(tmp_path, "a.csv", b"id,at\n")
    land(tmp_path, "b.csv", GOOD["csv"])
    land(tmp_path, "c.csv", b"at,id,n\n")
    first = problem(tmp_path, "csv")
    assert (first.file, "has no column 'n'" in first.cause) == ("2013-01-01/a.csv", True)
    (tmp_path / str(DAY) / "a.csv").unlink()
    second = problem(tmp_path, "csv")
    assert (second.file, "2013-01-01/b.csv" in second.cause) == ("2013-01-01/c.csv", True)


def test_a_header_of_another_delimiter_names_the_delimiter(tmp_path: Path) -> None:
    land(tmp_path, "a.csv", b"id;at;n\na;x;1,5\n")
    found = problem(tmp_path, "csv")
    assert found.cause == "its header ['id;at;n'] has no column 'id'"
    assert found.fix.startswith("source.delimiter is ','")
    assert found.fix.endswith("write 'delimiter: \";\"' in source")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path, kind: str) -> None:
    land(tmp_path, "a", GOOD.get(kind) or parquet(**IDS))
    (tmp_path / str(DAY) / "a").chmod(0o600)
    folders = [folder for folder in tmp_path.parents if folder.stat().st_uid == os.geteuid()]
    modes = {folder: folder.stat().st_mode for folder in [tmp_path, *folders]}
    for folder, mode in modes.items():
        folder.chmod(mode | 0o055)
    os.seteuid(NOBODY)
    try:
        found = problem(tmp_path, kind)
    finally:
        os.seteuid(0)
        for folder, mode in modes.items():
            folder.chmod(mode)
    assert (found.file, "Permission denied" in found.cause) == ("2013-01-01/a", True), str(found)


def test_all_bad_files_are_named_together(tmp_path: Path) -> None:
    for name in ("a.gz", "b.bz2", "c:d"):
        land(tmp_path, name, GOOD["jsonl"])
    found = problem(tmp_path, "jsonl")
    assert [bad.file.split("/")[1] for bad in found.all] == ["a.gz", "b.bz2", "c:d"]
    assert str(found).endswith("(as bad: 2013-01-01/b.bz2, 2013-01-01/c:d)")
    assert not any(bad.others for bad in found.all)


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_file_that_is_gone_since_it_was_listed_is_named(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "2013-01-01" / "a"
    file = LandedFile(DAY, "a", str(path), path.as_uri())
    check = require_readable if kind == "jsonl" else parquet_schemas
    with pytest.raises(BadFileError, match=r"^2013-01-01/a: can't be read \(.*; land the file"):
        check(LocalFileSystem(), [file])


def test_files_that_changed_since_they_were_listed_are_named_together(tmp_path: Path) -> None:
    names = ["deleted", "grown", "replaced", "same"]
    for name in names:
        land(tmp_path, name, b"{}\n")
    landing = LandingFolder(str(tmp_path))
    listed = landing.files([DAY])
    land(tmp_path, "new", b"{}\n")
    assert landing.files([DAY]) == listed  # all who ask see the same files
    landing.require_unchanged(listed)  # what came later was not read
    folder = tmp_path / str(DAY)
    (folder / "deleted").unlink()
    land(tmp_path, "grown", b"{}\n{}\n")
    os.utime(folder / "replaced", (0, 0))
    with pytest.raises(BadFileError) as raised:
        landing.require_unchanged(listed)
    assert [file.name for file in landing.files([DAY])] == ["grown", "new", "replaced", "same"]
    assert [(bad.file, bad.cause) for bad in raised.value.all] == [
        ("2013-01-01/deleted", "was deleted or renamed while it was read"),
        ("2013-01-01/grown", "was changed while it was read"),
        ("2013-01-01/replaced", "was changed while it was read"),
    ]


def test_names_that_are_not_utf8_are_listed(tmp_path: Path) -> None:
    land(tmp_path, b"_caf\xe9", b"")
    land(tmp_path, b"caf\xe9", b"")
    land(tmp_path, "a", b"")
    assert [file.name for file in LandingFolder(str(tmp_path)).files([DAY])] == ["a", "caf\\xe9"]
    skipped = "2013-01-01/_caf\\xe9: its name begins with _ or ."
    assert LandingFolder(str(tmp_path)).skipped([DAY]) == [skipped]
    with pytest.raises(BadFileError, match=r"2013-01-01/caf\\xe9: its name must be UTF-8"):
        LandingFolder(str(tmp_path)).require_listed("csv")


@pytest.mark.parametrize(
    ("kind", "name", "what"),
    [
        ("csv", "a.csv.gz", "a file whose name ends with .gz"),
        ("jsonl", "a.zst", "a file whose name ends with .zst"),
        ("parquet", "a", "a Parquet file"),
    ],
)
def test_a_file_without_a_byte_is_named_before_a_stream_passes_over_it(
    tmp_path: Path, kind: str, name: str, what: str
) -> None:
    """Rule A8: Spark lists no such file, so no micro-batch would name it."""
    land(tmp_path, name, b"")
    land(tmp_path, "_SUCCESS", b"")
    with pytest.raises(BadFileError, match=f"2013-01-01/{name}: has no byte, and {what} is never"):
        LandingFolder(str(tmp_path)).require_listed(kind)
    (tmp_path / "2013-01-01" / name).rename(tmp_path / "2013-01-01" / "plain.csv")
    LandingFolder(str(tmp_path)).require_listed("csv")  # an empty file without compression is valid


def test_the_file_that_spark_failed_on_is_named() -> None:
    """A task's error has the path as in a URI, and its causes below."""
    path = "file:///data/2013-01-01/a%20b.c.gz"
    text = (
        "org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while "
        f"reading file {path}.  SQLSTATE: KD001\n\tat x\nCaused by: java.io.EOFException: "
        "Unexpected end of input stream\n\tat y\n"
    )
    found = bad_file_in(RuntimeError(text))
    assert found is not None
    assert found.file == "2013-01-01/a b.c.gz"
    assert "java.io.EOFException: Unexpected end of input stream" in found.cause
    gone = bad_file_in(RuntimeError(text.replace("NO_HINT", "FILE_NOT_EXIST")))
    assert gone is not None
    assert gone.cause == "was deleted or renamed while it was read"
    # The files of tables lie in no day's folder of landed files.
    assert bad_file_in(RuntimeError(text.replace("2013-01-01", "raw_events"))) is None


def test_other_errors_pass() -> None:
    with pytest.raises(KeyError, match="x"), naming_bad_files():
        raise KeyError("x")
