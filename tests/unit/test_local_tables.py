"""Tables that deltalake reads without Spark: exactly the wanted rows, whatever keys they have."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import inf, nan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from windows_pipeline.query.tables.local import LocalTable, NoTableError, UnreadableTableError
from windows_pipeline.query.tables.wanted import Span, Wanted
from windows_pipeline.storage.catalog import TableSpec
from windows_pipeline.storage.files.damage import TableDamagedError
from windows_pipeline.text.locations import storage_options, use_storage_options
from windows_pipeline.text.references import Referring

DAY = date(2013, 3, 8)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
INSTANT = pa.timestamp("us", "UTC")
PARTS = pa.struct([("carrier", pa.string()), ("flight", pa.int64())])
US = timedelta(microseconds=1)
LONG = "a" * 40
KEYS: dict[pa.DataType, tuple[Any, ...]] = {
    pa.string(): (
        *(None, "", "\0", "\n", '"', "$1", "%", "' OR 1=1 --", "''", "A", "[red]", "\\", "\\'"),
        *(
            "_",
            "`x`",
            "a/../b",
            f"{LONG}b",
            f"{LONG}c",
            "e\u0301",
            "{x}",
            "é",
            "\ufeff",
            "\uff5e",
            "\U0001f600",
        ),
    ),
    pa.int64(): (None, -(2**63), -(2**53) - 1, -1, 0, 1, 2**53 + 1, 2**63 - 1),
    pa.date32(): (None, date.min, date(1582, 10, 4), date(1969, 12, 31), DAY, date.max),
    INSTANT: (
        *(None, datetime(1, 1, 1, tzinfo=UTC), EPOCH - US, EPOCH, EPOCH + US),
        *(EPOCH + 999 * US, datetime(2300, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)),
    ),
    pa.float64(): (None, -inf, -1.5, -5e-324, 0.0, 0.1, 1e308, inf, nan),
    pa.decimal128(38, 2): (None, Decimal(-1), Decimal("0.01"), Decimal("9" * 36 + ".99")),
    pa.bool_(): (None, False, True),
    PARTS: (
        *((None, None), (None, 3), ("", None), ("", 1), ("a", None), ("a", 2), ("a", 10)),
        *(("a'b", -1), ("b", None), ("b", 2)),
    ),
}
"""Keys of each type, in order."""


def spec_of(folder: Path | str) -> TableSpec:
    return TableSpec("p/w/t", "", str(folder), (), (), {})


def write(folder: Path, kind: pa.DataType, keys: Sequence[Any], ends: Sequence[Any] = ()) -> None:
    """Appends keys as a file."""
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        keys = [dict(zip(names, key, strict=True)) for key in keys]
    columns = [
        pa.array([DAY] * len(keys)), pa.array(keys, kind),
        pa.array(ends or [EPOCH] * len(keys), INSTANT),
    ]  # fmt: skip
    rows = pa.table(columns, names=["arrival_unit", "key", "window_end"])
    write_deltalake(folder, rows, mode="append", partition_by=["arrival_unit"])


def found(table: LocalTable, wanted: Wanted) -> set[Any]:
    """The keys of the wanted rows."""
    keys = table.read(wanted)["key"].to_pylist()
    values = set_of([tuple(key.values()) if isinstance(key, dict) else key for key in keys])
    assert len(values) == len(keys)
    return values


def set_of(keys: Sequence[Any]) -> set[Any]:
    """Keys without their order; NaN is not equal to itself, so a text stands for it."""
    return {"nan" if key != key else key for key in keys}  # noqa: PLR0124  true of NaN


@pytest.mark.parametrize("kind", KEYS, ids=str)
@pytest.mark.parametrize("is_alone", [True, False], ids=["a file a key", "two files"])
def test_a_range_of_keys_has_both_bounds(
    tmp_path: Path, kind: pa.DataType, *, is_alone: bool
) -> None:
    """Rules G2: null is before all keys and NaN after all; files are skipped by statistics."""
    keys = KEYS[kind]
    count = len(keys) if is_alone else 2
    for number in range(count):
        write(tmp_path, kind, keys[number::count])
    table = LocalTable(spec_of(tmp_path))
    column = table.key
    values = [column.value(key, "key") for key in keys]
    for at, (key, value) in enumerate(zip(keys, values, strict=True)):
        assert found(table, Wanted(column.one(key, "key"))) == set_of([key])
        to = min(at + 2, len(keys) - 1)
        between = column.between(value, values[to])
        assert found(table, Wanted(between)) == set_of(keys[at : to + 1])
        assert found(table, Wanted(column.between(value, None))) == set_of(keys[at:])
        assert found(table, Wanted(column.between(None, value))) == set_of(keys[: at + 1])
    assert found(table, Wanted()) == set_of(keys)


def test_minus_zero_is_zero(tmp_path: Path) -> None:
    write(tmp_path, pa.float64(), [0.0, -0.0, 1.0])
    table = LocalTable(spec_of(tmp_path))
    for zero in (0.0, -0.0):
        rows = table.read(Wanted(table.key.one(zero, "key")))
        assert sorted(map(repr, rows["key"].to_pylist())) == ["-0.0", "0.0"]


def test_bounds_of_times_and_days_are_included(tmp_path: Path) -> None:
    times = [EPOCH - US, EPOCH, EPOCH + US, datetime(2300, 1, 1, tzinfo=UTC)]
    write(tmp_path, pa.int64(), [-1, 0, 1, 2], times)
    table = LocalTable(spec_of(tmp_path))
    for span, keys in (
        (Span(0, 1), {0, 1}),
        (Span(None, -1), {-1}),
        (Span(1, None), {1, 2}),
        (Span(2, 1), set()),
    ):
        assert found(table, Wanted(times={"window_end": span})) == keys
    for days, count in (({DAY}, 4), ({DAY, date.max}, 4), ({date.min}, 0), (set(), 0)):
        assert table.read(Wanted(days=frozenset(days))).num_rows == count
        assert len(table.parts(Wanted(days=frozenset(days)))) == bool(count)
    assert table.parts(Wanted(times={"window_end": Span(None, -1_001)})) == []


def test_times_of_older_writers_are_exact(tmp_path: Path) -> None:
    """Spark writes INT96 if a setting asks for it; these have days and nanoseconds."""
    times = [datetime(1, 1, 1, tzinfo=UTC), EPOCH + US, datetime(9999, 12, 31, tzinfo=UTC)]
    write(tmp_path, pa.int64(), [0, 1, 2], times)
    (file,) = tmp_path.glob("*/*.parquet")
    rows = pq.ParquetFile(file).read()
    size = file.stat().st_size
    pq.write_table(rows, file, use_deprecated_int96_timestamps=True)
    (commit,) = (tmp_path / "_delta_log").glob("*.json")
    commit.write_text(commit.read_text().replace(f'"size":{size}', f'"size":{file.stat().st_size}'))
    table = LocalTable(spec_of(tmp_path))
    assert table.read(Wanted())["window_end"].to_pylist() == times
    assert found(table, Wanted(times={"window_end": Span(1, 1)})) == {1}


def test_rows_come_in_the_same_order_each_time(tmp_path: Path) -> None:
    for number in range(20):
        write(tmp_path, pa.int64(), range(number * 100, number * 100 + 100))
    table = LocalTable(spec_of(tmp_path))
    keys = {tuple(table.read(Wanted())["key"].to_pylist()) for _ in range(10)}
    assert len(keys) == 1
    assert len(next(iter(keys))) == 2_000


def test_the_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Also where deltalake does not name it."""
    for number in range(3):
        write(tmp_path, pa.int64(), [number], [EPOCH + number * US])
    (file,) = (
        file
        for file in tmp_path.glob("*/*.parquet")
        if pq.read_table(file, columns=["key"])["key"].to_pylist() == [1]
    )
    whole = file.read_bytes()
    file.write_bytes(whole[:4] + bytes(byte ^ 255 for byte in whole[4:90]) + whole[90:])
    table = LocalTable(spec_of(tmp_path))
    assert found(table, Wanted(times={"window_end": Span(2, 2)})) == {2}
    with pytest.raises(TableDamagedError) as refused:
        table.read(Wanted(times={"window_end": Span(1, 2)}))
    assert (refused.value.table, refused.value.file) == (str(tmp_path), str(file))
    assert "(day 2013-03-08)" in refused.value.lines[1]


def test_a_table_is_opened_by_its_uri_and_storage_options(tmp_path: Path) -> None:
    """Without options only Spark reads tables at a URI."""
    folder = tmp_path / "a b" / "t"
    folder.mkdir(parents=True)
    uri = f"{tmp_path.as_uri()}/a%20b"
    spec = spec_of(f"{uri}/t")
    with pytest.raises(UnreadableTableError, match=r"lies in file:///.*; set storage_options"):
        LocalTable(spec)
    use_storage_options(uri, {})
    with pytest.raises(NoTableError):
        LocalTable(spec)
    for number in range(2):
        write(folder, pa.string(), [f"{number}"])
    table = LocalTable(spec)
    assert (table.version, table.days, table.row_count) == (1, {DAY}, 2)
    assert found(table, Wanted(table.key.one("1", "key"))) == {"1"}
    (first, _) = sorted(folder.glob("*/*.parquet"), key=lambda file: file.stat().st_mtime)
    DeltaTable(folder).delete("key = '0'")
    first.unlink()
    with pytest.raises(UnreadableTableError, match=r"version 1 must be there.*Call refresh\(\)"):
        table.read(Wanted())
    assert found(LocalTable(spec), Wanted()) == {"1"}
    with pytest.raises(UnreadableTableError, match="must have version 9 in its log"):
        LocalTable(spec, 9)


def test_a_store_that_does_not_answer_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The longest URI counts; options come from the environment, and no error shows them."""
    monkeypatch.setenv("STORE_SECRET", "s3cret-s3cret")
    use_storage_options("s3://lake", {"aws_region": "other"})
    use_storage_options(
        "s3://lake/warehouse/",
        {
            "aws_endpoint_url": "http://127.0.0.1:1",
            "aws_allow_http": "true",
            "aws_region": "x",
            "aws_access_key_id": "me",
            "max_retries": "0",
            "aws_secret_access_key": Referring("${env:STORE_SECRET}", "settings.yaml:1: x"),
        },
    )
    assert storage_options("s3://lake/warehouses") == {"aws_region": "other"}
    assert storage_options("s3://lakes/warehouse") is None
    assert storage_options(str(tmp_path)) == {}
    with pytest.raises(UnreadableTableError, match="must be reachable with the storage_op") as no:
        LocalTable(spec_of("s3://lake/warehouse/p/w/t"))
    assert "s3cret" not in str(no.value)
    assert "\x1b" not in str(no.value)
