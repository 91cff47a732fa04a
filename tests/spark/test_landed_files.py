"""Landed files of each format are read completely, and no other files are read."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import random
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import zstandard
from pyspark.sql import DataFrame, Row, SparkSession

from windows_pipeline.arrival.lines import in_line_order
from windows_pipeline.config.source import Source
from windows_pipeline.sources.bad_files import bad_file_in
from windows_pipeline.sources.landed_files import read_landed
from windows_pipeline.sources.landing import LandingFolder
from windows_pipeline.sources.validation import judged_records

DAY = date(2013, 1, 1)
NEXT = date(2013, 1, 2)
COLUMNS = {"id": "string", "at": "timestamp", "n": "double"}


def source_of(kind: str, columns: Mapping[str, object] | None = None) -> Source:
    names = columns or COLUMNS
    fields = {"path": "data", "format": kind, "columns": names, "key": "id", "event_time": "at"}
    return Source.model_validate(fields)


def land(root: Path, day: date, name: str, content: str | bytes) -> Path:
    folder = root / str(day)
    folder.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    (folder / name).write_bytes(data)
    return folder / name


def landed(spark: SparkSession, source: Source, root: Path, *days: date) -> DataFrame:
    return read_landed(
        spark, source, LandingFolder(str(root)), LandingFolder(str(root)).files(days or (DAY,))
    )


def read(spark: SparkSession, source: Source, root: Path, *days: date) -> list[Row]:
    rows = landed(spark, source, root, *days).collect()
    return sorted(rows, key=lambda row: (row.arrival_unit, row.file, row.original))


def values(row: Row, *names: str) -> tuple[Any, ...]:
    return tuple(row[name] for name in names or ("id", "at", "n"))


def test_landed_days_are_the_day_folders_in_order(tmp_path: Path) -> None:
    for name in ("2013-01-02", "2012-12-31", "2013-02-30", "2013-1-3", "_delta_log", "x2013-01-04"):
        (tmp_path / name).mkdir()
    (tmp_path / "2013-01-05").write_text("a file, no folder")
    expected = [date(2012, 12, 31), date(2013, 1, 2)]
    assert LandingFolder(str(tmp_path)).days == expected
    assert LandingFolder(tmp_path.as_uri()).days == expected


def test_an_error_names_a_missing_path_and_the_fix(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere: there is no such folder; land"):
        assert LandingFolder(str(tmp_path / "nowhere")).days == []


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_a_day_without_folder_is_an_error_and_an_empty_folder_is_not(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    (tmp_path / str(DAY)).mkdir()
    found = landed(spark, source_of(kind), tmp_path)
    assert set(found.columns) == {
        *("arrival_unit", "file", "original", "malformed", "_block", "_line"),
        *("id", "at", "n"),
    }
    assert found.count() == 0
    with pytest.raises(FileNotFoundError, match=r"2013-01-02: there is no such folder.*empty"):
        landed(spark, source_of(kind), tmp_path, DAY, NEXT)


def test_json_fields_are_taken_by_exact_name_as_text(spark: SparkSession, tmp_path: Path) -> None:
    line = ' {"n": 1.5, "ID": "no", "id": {"a": [1, "x"]}, "more": 7}'
    land(tmp_path, DAY, "a.jsonl", f'{line}\n\n   \n{{"id":"b","at":null,"n":NaN}}\r\n')
    second, first = sorted(read(spark, source_of("jsonl"), tmp_path), key=lambda row: -len(row.id))
    assert (second.arrival_unit, second.file, second.original) == (DAY, "a.jsonl", line)
    assert values(second) == ('{"a":[1,"x"]}', None, "1.5")
    assert first.original == '{"id":"b","at":null,"n":NaN}'
    assert values(first) == ("b", None, "NaN")
    assert not first.malformed
    assert not second.malformed


def test_decimals_keep_every_digit_of_a_json_number(spark: SparkSession, tmp_path: Path) -> None:
    """Rule G2: a number within a text, or next to one, stays unchanged."""
    line = (
        '{"at": "x \\"1.5, ", "much": -12345678901234567.890, "id": [0.10, {"b": -2}], '
        '"x": -Infinity, "little":1e-7, "text": "0.3000000000000000000004", "none": null}'
    )
    land(tmp_path, DAY, "a.jsonl", f'{line}\n{{"much": {{"deep": 1.50}}, "id": "b"}}\n')
    names = dict.fromkeys(("much", "little", "text", "none"), "decimal(38,10)")
    source = source_of("jsonl", COLUMNS | names)
    first, nested = read(spark, source, tmp_path)
    assert values(first, "id", "at", *names) == (
        '[0.1,{"b":-2}]',
        'x "1.5, ',
        "-12345678901234567.890",
        "1e-7",
        "0.3000000000000000000004",
        None,
    )
    assert (nested.malformed, nested.none) == (False, None)


def test_numbers_of_json_keep_every_digit_whatever_their_type(
    spark: SparkSession, tmp_path: Path
) -> None:
    """For text columns, too: two numbers with the same nearest double stay different."""
    lines = ['{"id": 9007199254740993.0, "at": 9007199254740993.0, "n": 1e400}']
    lines += ['{"id": 1.10, "at": "1.50", "n": 1e-400}', '{"id": "1E5", "at": -1, "n": -0.0}']
    lines += ['{"id": Infinity, "at": null, "n": -Infinity}']
    land(tmp_path, DAY, "a.jsonl", "\n".join(lines))
    source = source_of("jsonl", {"id": "string", "at": "bigint", "n": "double"})
    rows = {row.original: values(row) for row in read(spark, source, tmp_path)}
    assert [rows[line] for line in lines] == [
        ("9007199254740993.0", "9007199254740993.0", "1e400"),
        ("1.10", "1.50", "1e-400"),
        ("1E5", "-1", "-0.0"),
        ("Infinity", None, "-Infinity"),
    ]


def test_a_line_that_is_not_one_json_object_is_malformed(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = [
        "junk",
        '{"id":"a"',
        '{"id":"a"} junk',
        '{"id":"a"}{"id":"b"}',
        '{"id":"a"},{"id":"b"}',
        '[{"id":"a"}]',
        '"a"',
        "3",
        "null",
        "]",
        "{'id':'a'}",
        '{"id":"a"}],[{"id":"b"}',
    ]
    land(tmp_path, DAY, "a.jsonl", "\n".join([*lines, '{"id":"good"}']))
    malformed = {row.original: row.malformed for row in read(spark, source_of("jsonl"), tmp_path)}
    assert malformed == {**dict.fromkeys(lines, True), '{"id":"good"}': False}


OF_ONE_NAME = {
    '"c": {"v": 1}, "c": {"v": 2}': ("2", None),
    '"c": {"v": 1}, "c": 5': (None, None),
    '"c": {"v": 1}, "c": "x"': (None, None),
    '"c": {"v": 1}, "c": ""': (None, None),
    '"c": {"v": 1}, "c": true': (None, None),
    '"c": {"v": 1}, "c": [{"v": 2}]': (None, None),
    '"c": {"v": 1}, "c": null': (None, None),
    '"c": {"v": 1}, "c": {}': (None, None),
    '"c": {"v": 1}, "c": "{\\"v\\": 2}"': (None, None),
    '"c": {"v": 1}, "\\u0063": 5': (None, None),
    '"c": 5, "c": {"v": 1}': ("1", None),
    '"c": {"v": 1}, "c": 5, "c": {"v": 3}': ("3", None),
    '"c": {"v": 1.50, "v": 2.50}': ("2.5", None),
    '"c": {"v": "\\"}", "d": "\\"c\\""}': ('"}', None),
    '"c": {"v": 1, "d": {"w": 2}}': ("1", "2"),
    '"c": {"v": 1, "d": {"w": 2}, "d": 5}': ("1", None),
    '"c": {"v": 1, "d": {"w": 2}}, "c": {"v": 3, "d": [4]}': ("3", None),
    '"c": {"d": {"w": 2}, "d": 5, "d": {"w": 6}}': (None, "6"),
    '"c": {"d": {"w": 2}}, "c": {"d": 5}, "x": {"c": {"d": {"w": 7}}}': (None, None),
    '"x": {"c": 1}, "c": {"d": {"w": 2}}, "y": "c"': (None, "2"),
}
"""Fields of a record, and the values at `$.c.v` and `$.c.d.w`."""


def test_of_json_fields_of_one_name_the_last_counts(spark: SparkSession, tmp_path: Path) -> None:
    lines = {f'{{"id": "a", "id": "b", "at": 1, {fields}}}': fields for fields in OF_ONE_NAME}
    land(tmp_path, DAY, "a.jsonl", "\n".join(lines))
    nested = {"v": {"type": "double", "from": "$.c.v"}, "w": {"type": "double", "from": "$.c.d.w"}}
    source = source_of("jsonl", {"id": "string", "at": "bigint", **nested})
    rows = read(spark, source, tmp_path)
    assert {(row.malformed, row.id) for row in rows} == {(False, "b")}
    assert {lines[row.original]: values(row, "v", "w") for row in rows} == OF_ONE_NAME


def test_text_of_any_kind_survives_json_and_csv(spark: SparkSession, tmp_path: Path) -> None:
    generator = random.Random(5)
    alphabet = "a,\"'\\ {}[]:\té\U0001f600#;|"
    texts = ["".join(generator.choices(alphabet, k=generator.randrange(1, 8))) for _ in range(400)]
    records = [{"id": f"{i}", "at": text, "n": "1"} for i, text in enumerate(texts)]
    land(tmp_path / "json", DAY, "a", "".join(json.dumps(record) + "\n" for record in records))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=list(COLUMNS))
    writer.writeheader()
    writer.writerows(records)
    land(tmp_path / "csv", DAY, "a", buffer.getvalue())
    for kind, folder in (("jsonl", "json"), ("csv", "csv")):
        rows = read(spark, source_of(kind), tmp_path / folder)
        assert {int(row.id): row.at for row in rows} == dict(enumerate(texts))
        assert not any(row.malformed for row in rows)


def test_compressed_files_are_read_and_hidden_ones_are_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = b'{"id":"a"}\n{"id":"b"}\n'
    land(tmp_path, DAY, "plain+[1] {x}*%41.jsonl", lines)
    land(tmp_path, DAY, "packed.jsonl.gz", gzip.compress(lines))
    land(tmp_path, DAY, "_SUCCESS", "junk")
    land(tmp_path, DAY, ".part.crc", "junk")
    rows = read(spark, source_of("jsonl"), tmp_path)
    expected = [("packed.jsonl.gz", "a"), ("packed.jsonl.gz", "b")]
    expected += [("plain+[1] {x}*%41.jsonl", "a"), ("plain+[1] {x}*%41.jsonl", "b")]
    assert [(row.file, row.id) for row in rows] == expected
    land(tmp_path / "csv", DAY, "a.csv.gz", gzip.compress(b"id,at,n\nx,y,1\n"))
    assert [values(row) for row in read(spark, source_of("csv"), tmp_path / "csv")] == [
        ("x", "y", "1")
    ]


def test_csv_columns_are_matched_by_name_in_each_folder(
    spark: SparkSession, tmp_path: Path
) -> None:
    land(tmp_path, DAY, "a.csv", '\ufeffid,at,n\na,2013-01-01,1\n"b, c",,""\n\n')
    land(tmp_path, DAY, "b.csv", '"id","at","n"\r\nd,x,2\r\n')
    land(tmp_path, DAY, "empty.csv", "")
    land(tmp_path, NEXT, "a.csv", "n,extra,ID,id,at\n3,e,no,f,y\n")
    rows = read(spark, source_of("csv"), tmp_path, DAY, NEXT)
    assert [(row.arrival_unit, row.file, row.original, *values(row)) for row in rows] == [
        (DAY, "a.csv", '"b, c",,""', "b, c", None, None),
        (DAY, "a.csv", "a,2013-01-01,1", "a", "2013-01-01", "1"),
        (DAY, "b.csv", "d,x,2", "d", "x", "2"),
        (NEXT, "a.csv", "3,e,no,f,y", "f", "y", "3"),
    ]


def test_csv_records_of_other_lengths_or_with_open_quotes_are_malformed(
    spark: SparkSession, tmp_path: Path
) -> None:
    """An open quote takes the rest of the file."""
    land(tmp_path, DAY, "a.csv", 'id,at,n\na,b\na,b,1,2\n,,\na,b,"open\n,,\n')
    rows = read(spark, source_of("csv"), tmp_path)
    malformed = {row.original: row.malformed for row in rows}
    assert malformed == {"a,b": True, "a,b,1,2": True, ",,": False, 'a,b,"open\n,,\n': True}


def test_csv_records_are_numbered_by_file_and_line(spark: SparkSession, tmp_path: Path) -> None:
    """Rule A1: a task numbers on through its files, and no two tasks share a number."""
    for number in range(40):
        lines = [f'{number},"{line}\n",{line}' for line in range(5)]
        land(tmp_path, DAY, f"{number:02}.csv", "\n".join(["id,at,n", *lines]))
    land(tmp_path, DAY, "40.csv", "id,at,n\n" + f"40,{'x' * 999_999},1\n" * 40)
    found = landed(spark, source_of("csv"), tmp_path)
    assert found.rdd.getNumPartitions() > 1
    rows = [row for part in found.rdd.glom().collect() for row in part]
    numbers = [row["_line"] for row in rows]
    assert len(numbers) == len(set(numbers)) == 240
    of_files = [[row for row in rows if row.file == f"{number:02}.csv"] for number in range(41)]
    for of_file in of_files[:-1]:
        assert [row.n for row in of_file] == ["0", "1", "2", "3", "4"]
        assert [row["_line"] for row in of_file] == sorted(row["_line"] for row in of_file)
    assert {row["_block"] for row in rows} == {0}


def test_compressed_csv_files_are_read_as_streams(spark: SparkSession, tmp_path: Path) -> None:
    """A file may be several compressed files, one after the other."""
    first, second = b'id,at,n\na,"x\n', b'y",1\nb,z,2\n'
    land(tmp_path, DAY, "a.csv.gz", gzip.compress(first) + gzip.compress(second))
    land(tmp_path, DAY, "b.csv.bz2", bz2.compress(first) + bz2.compress(second))
    land(tmp_path, DAY, "c.csv.zst", zstandard.compress(first) + zstandard.compress(second))
    rows = read(spark, source_of("csv"), tmp_path)
    assert [values(row) for row in rows] == [("a", "x\ny", "1"), ("b", "z", "2")] * 3


def test_a_damaged_csv_file_is_an_error_that_names_it(spark: SparkSession, tmp_path: Path) -> None:
    whole = gzip.compress(b"id,at,n\n" + random.Random(3).randbytes(3_000_000).hex().encode())
    land(tmp_path, DAY, "cut.csv.gz", whole[:-100_000])
    found = landed(spark, source_of("csv"), tmp_path)
    with pytest.raises(Exception, match=r"2013-01-01/cut\.csv\.gz: ") as failed:
        found.collect()
    bad_file = bad_file_in(failed.value)
    assert bad_file is not None
    assert str(bad_file).startswith("2013-01-01/cut.csv.gz: ")


def test_parquet_columns_become_text_whatever_their_type(
    spark: SparkSession, tmp_path: Path
) -> None:
    time = datetime(2013, 1, 1, 10, 0, 0, 123456)
    first = pd.DataFrame({"id": ["a"], "at": [time], "n": [1]})
    second = pd.DataFrame({"id": [7, None], "n": [1.5, None], "mo.`re": [[1, 2], None]})
    for day, name, frame in ((DAY, "a", first), (DAY, "b", second), (NEXT, "a", first)):
        (tmp_path / str(day)).mkdir(exist_ok=True)
        frame.to_parquet(tmp_path / str(day) / f"{name}.parquet", coerce_timestamps="us")
    rows = read(spark, source_of("parquet"), tmp_path, DAY, NEXT)
    text = "2013-01-01 10:00:00.123456"
    assert [(row.arrival_unit, row.file, *values(row)) for row in rows] == [
        (DAY, "a.parquet", "a", text, "1"),
        (DAY, "b.parquet", "7.0", None, "1.5"),
        (DAY, "b.parquet", None, None, None),
        (NEXT, "a.parquet", "a", text, "1"),
    ]
    assert json.loads(rows[0].original) == {"id": "a", "at": text.replace(" ", "T"), "n": 1}
    assert json.loads(rows[2].original) == {"id": None, "n": None, "mo.`re": None}
    assert not any(row.malformed for row in rows)


def test_parquet_files_of_two_schemas_share_no_number(spark: SparkSession, tmp_path: Path) -> None:
    """Rule A1: else offsets would be there twice."""
    (tmp_path / str(DAY)).mkdir()
    for name, values_of_n in (("a", [1, 2]), ("b", [1.5, 2.5]), ("c", ["3", "4"])):
        frame = pd.DataFrame({"id": name, "at": "2013-01-01", "n": values_of_n})
        frame.to_parquet(tmp_path / str(DAY) / f"{name}.parquet")
    found = landed(spark, source_of("parquet"), tmp_path)
    source = source_of("parquet")
    ordered = in_line_order(judged_records(found, source, ["_block", "_line"]))
    rows = ordered.records.orderBy("offset").collect()
    ordered.cached.unpersist()
    assert [(row.offset, row.n) for row in rows] == list(enumerate([1, 2, 1.5, 2.5, 3, 4]))
