"""Any landed bytes become records, rejected records or bad files, and nothing else (A5, A6, A8)."""

from __future__ import annotations

import gzip
import io
import json
import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tests.support.landed_texts import PACKED, records_of_csv, records_of_json
from tests.support.mutations import mutated
from tests.support.small_project import SmallProject
from tests.support.stored_rows import named_rows

COLUMNS = {
    "k": "string", "t": "bigint", "v": "double", "n": "bigint", "amount": "decimal(12,2)",
    "at": "timestamp", "day": "date", "ok": "boolean", "s": "timestamp_s", "ns": "timestamp_ns",
    "note": "string",
}  # fmt: skip
WINDOWS = {
    "kind": "tumbling",
    "size": "1 hour",
    "grace": "1 hour",
    "aggregates": {"total": "sum(v)", "exact": "sum(amount)", "some": "max(note)"},
    "alerts": {"any": {"when": "record_count > 1", "severity": "total"}},
}
SIGNS = [
    *(
        b'"',
        b"'",
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b",",
        b";",
        b"\n",
        b"\r",
        b"\t",
        b" ",
        b"\x00",
    ),
    *(b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xf0\x9f\x98\x80"),
    *(b"null", b"NaN", b"-Infinity", b"1e999", b"1e-999", b"-0.0", b"0x1p3", b"7d", b"9" * 400),
    *(b"9" * 3_000, b"[" * 2_000, b'{"a":' * 1_200, b"\\ud800", b"\\u0000", b'""', b"1" * 19),
    *(b"0001-01-01", b"9999-12-31T23:59:59Z", b"-290000-01-01", b"2026-02-30", b"today", b"24:00"),
]
VALUES: list[object] = [
    *(0, 1, -1, 2**63 - 1, -(2**63), 2**63, 1.5, -0.0, 1e308, 5e-324, 10**25, None, True, "", " "),
    *(
        "2026-11-01T00:00:00Z",
        "2026-11-01 10:00:00+14:00",
        "2026-11-01",
        "0001-01-01",
        "+12345-01-01",
    ),
    *("9999-12-31T23:59:59.999999Z", "-9999-01-01", "1.10", "1e2", "NaN", "Infinity", "true", "t"),
    *("1793491200", "1793491200000", "1793491200000000000", "\u2028", "\U0001f600", "\x00", "a,b"),
    *('"', "'", "9" * 500, "x" * 2_000, [1, "a"], {"a": {"b": None}}, "\ufeff", "\\", "0.005"),
]
WINDOWS_OF_NUMBERS = {"kind": "tumbling", "size": "1 hour", "grace": "0 ms"}
MOST_BYTES = 2_000_000
DAYS = 7
FILES = 3
LINES = 12
DAMAGED_DAY = DAYS + 1


def record(random: Random) -> dict[str, object]:
    """A record that is right, but for one or two values now and then."""
    whole: dict[str, object] = {
        "k": random.choice("ab"),
        "t": 1_793_491_200_000 + random.randrange(-(10**8), 10**7),
        "v": random.choice([0.5, 2, -3.25, None]),
        "amount": "12.30",
        "at": "2026-11-01T01:02:03Z",
        "day": "2026-11-01",
        "ok": "true",
        "note": random.choice(["n", "", None, "\u00e9"]),
    }
    for _ in range(random.choice((0, 0, 1, 2))):
        whole[random.choice(list(COLUMNS))] = random.choice(VALUES)
    return whole


def json_lines(random: Random) -> bytes:
    lines = "".join(json.dumps(record(random)) + "\n" for _ in range(LINES))
    return mutated(random, lines.encode(errors="replace"), SIGNS)


def csv_field(value: object) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value)
    return '"' + text.replace('"', '""') + '"' if re.search('[,"\n\r]', text) or not text else text


def csv_lines(random: Random) -> bytes:
    rows = [[csv_field(record(random).get(name)) for name in COLUMNS] for _ in range(LINES)]
    body = "".join(",".join(row) + "\n" for row in rows).encode(errors="replace")
    return ",".join(COLUMNS).encode() + b"\n" + mutated(random, body, SIGNS)


WRITERS: dict[str, tuple[Callable[[Random], bytes], Callable[[bytes], list[str]]]] = {
    "jsonl": (json_lines, records_of_json),
    "csv": (csv_lines, records_of_csv),
}


def land_texts(project: SmallProject, kind: str, seed: int, days: int) -> dict[int, Counter[str]]:
    """Lands changed files, some compressed, on each day; returns the records' texts by day."""
    write, records = WRITERS[kind]
    texts: dict[int, Counter[str]] = {}
    for day in range(1, days + 1):
        texts[day] = Counter()
        for number in range(FILES):
            random = Random(f"{seed} {day} {number}")
            data = write(random)
            ending = random.choice(list(PACKED))
            project.land(day, PACKED[ending](data), f"{number}.{kind}{ending}")
            texts[day] += Counter(records(data))
    return texts


def require_readable(folder: Path) -> None:
    """Every table can be read whole by pandas, Polars and DuckDB, with equal numbers of rows."""
    tables = [log.parent for log in folder.rglob("_delta_log")]
    assert tables
    for table in tables:
        rows = len(DeltaTable(table).to_pandas())
        assert len(pl.read_delta(str(table))) == rows
        files = DeltaTable(table).file_uris()
        if files:
            with duckdb.connect() as connection:
                source = connection.read_parquet([uri.removeprefix("file://") for uri in files])
                assert len(source.fetchall()) >= rows
        for row in named_rows_of(table):
            json.dumps(row, default=str).encode()


def named_rows_of(table: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DeltaTable(table).to_pyarrow_table().to_pylist()
    return found


def require_accounted(project: SmallProject, texts: dict[int, Counter[str]]) -> Counter[str]:
    """Each landed record is accepted or rejected, and a rejected one has its text; the reasons."""
    raw = named_rows(project.source.raw_events, ["arrival_unit"])
    rejected = named_rows(project.source.rejected_records)
    for day, landed in texts.items():
        own = Counter(row["original"] for row in rejected if row["arrival_unit"].day == day)
        accepted = sum(row["arrival_unit"].day == day for row in raw)
        assert own <= landed, (day, own - landed)
        assert accepted + own.total() == landed.total(), day
    return Counter(row["reason"].partition(":")[0] for row in rejected)


def fuzz_texts(project: SmallProject, kind: str, seed: int, days: int) -> None:
    project.declare(WINDOWS, COLUMNS, format=kind, max_ahead="1000 d")
    texts = land_texts(project, kind, seed, days)
    # Damage that only the task finds that reads the file.
    random = Random(seed)
    packed = gzip.compress(b"".join(WRITERS[kind][0](random) for _ in range(50)))
    project.land(DAMAGED_DAY, packed[: len(packed) // 2], f"cut.{kind}.gz")
    status, said = project.call("run", "p")
    assert status == 3, said
    assert f"2026-11-{DAMAGED_DAY:02}/cut.{kind}.gz: " in said
    assert "Traceback" not in said
    reasons = require_accounted(project, texts)
    assert {"malformed", "wrong_type"} <= set(reasons)
    require_readable(project.folder / "warehouse")


@pytest.mark.parametrize("kind", WRITERS)
def test_changed_texts_are_accepted_or_rejected_whole(project: SmallProject, kind: str) -> None:
    fuzz_texts(project, kind, 1, DAYS)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 8))
@pytest.mark.parametrize("kind", WRITERS)
def test_many_changed_texts_are_accepted_or_rejected_whole(
    project: SmallProject, kind: str, seed: int
) -> None:
    fuzz_texts(project, kind, seed, DAYS)


def test_a_number_of_a_million_digits_is_rejected_in_time(project: SmallProject) -> None:
    """Rules A6, A8: where matching takes quadratic time; and a longer line makes its file bad."""
    columns = {name: kind for name, kind in COLUMNS.items() if name != "note"}
    project.declare(WINDOWS_OF_NUMBERS, columns, format="jsonl", max_record_bytes=MOST_BYTES)
    wrong = [name for name in columns if name not in {"k", "t"}]
    digits = "1" * 1_000_000
    lines = [
        json.dumps({"k": "a", "t": 1, name: text})
        for name in wrong
        for text in (digits, f"{digits}x")
    ]
    project.land(1, "\n".join([*lines, '{"k": "a", "t": 1, "v": 1e0}\n']), "a.jsonl")
    long = json.dumps({"k": "a", "t": 2, "note": "x" * MOST_BYTES}) + "\n"
    short = '{"k": "a", "t": 2}\n'
    project.land(2, short + long, "b c.jsonl")
    status, said = project.call("run", "p")
    assert status == 3, said
    assert (
        f"2026-11-02/b c.jsonl: a line must have at most {MOST_BYTES:,} bytes "
        f"(source.max_record_bytes), but the one at byte {len(short)} is longer; it begins with "
        f"{long[:60]} ...; end each record with a line break, or raise the limit"
    ) in " ".join(said.split())
    rows = named_rows(project.source.rejected_records, ["reason", "original"])
    assert Counter(row["reason"] for row in rows) == {f"wrong_type: {name}": 2 for name in wrong}
    assert sorted(row["original"] for row in rows) == sorted(lines)
    assert [row["v"] for row in project.raw("v")] == [1.0]


INSTANT = datetime(2026, 11, 1, 2, 3, 4, 5, tzinfo=UTC)
ARRAYS: list[pa.Array] = [
    *(pa.array([1, None], kind) for kind in (pa.int8(), pa.int64(), pa.uint8(), pa.uint64())),
    *(pa.array([1.5, float("nan")], kind) for kind in (pa.float32(), pa.float64())),
    pa.array([1, 2], pa.float16()),
    *(pa.array(["a", "2026-11-01"], kind) for kind in (pa.string(), pa.large_string())),
    *(
        pa.array([b"a", b"\xff\xfe"], kind)
        for kind in (pa.binary(), pa.binary(2), pa.large_binary())[::2]
    ),
    pa.array([b"ab", b"\xff\xfe"], pa.binary(2)),
    pa.array([Decimal("1.50"), None], pa.decimal128(12, 2)),
    pa.array([Decimal(10) ** 37, None], pa.decimal128(38, 0)),
    pa.array([Decimal(1), None], pa.decimal256(50, 0)),
    *(pa.array([INSTANT, None], pa.timestamp(unit, "UTC")) for unit in ("ms", "us", "ns")),
    pa.array([datetime(1, 1, 1), datetime(9999, 12, 31)], pa.timestamp("us")),
    pa.array([-(2**62), 2**62], pa.int64()).cast(pa.timestamp("us")),
    pa.array([date(1, 1, 1), None], pa.date32()),
    *(pa.array([time(1, 2), None], kind) for kind in (pa.time32("ms"), pa.time64("us"))),
    pa.array([timedelta(1), None], pa.duration("us")),
    pa.array([True, None]),
    pa.nulls(2),
    pa.array(["a", "b"]).dictionary_encode(),
    pa.array([[1], None], pa.list_(pa.int32())),
    pa.array([{"a": 1}, None], pa.struct([("a", pa.int8())])),
    pa.array([{"a": 1, "A": 2}, None], pa.struct([("a", pa.int8()), ("A", pa.int8())])),
    pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int8())),
]
NAMES = [
    "",
    " ",
    "a.b",
    "`",
    "K",
    "_metadata",
    "file",
    "original",
    "malformed",
    "\u00e9",
    "a\nb",
    "x" * 500,
]


def parquet_file(random: Random) -> tuple[bytes, int]:
    """A file of odd types and names, and how many records it has."""
    columns: dict[str, pa.Array] = {
        "k": pa.array(["a", "b"]),
        "t": pa.array([1_793_491_200_000, None], pa.int64()),
    }
    for name in random.sample(list(COLUMNS), 2):
        columns[name] = random.choice(ARRAYS)
    if random.random() < 0.4:
        columns[random.choice(NAMES)] = random.choice(ARRAYS)
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, compression=random.choice(["none", "gzip", "zstd"]))
    return sink.getvalue(), 2


def fuzz_parquet(project: SmallProject, seed: int, days: int) -> None:
    project.declare(WINDOWS, COLUMNS, format="parquet", max_ahead="1000 d")
    counts: dict[int, int] = {}
    for day in range(1, days + 1):
        random = Random(f"{seed} {day}")
        data, counts[day] = parquet_file(random)
        if day % 5 == 0:
            # Of the footer, whose damage the driver finds.
            data = data[:-40] + mutated(random, data[-40:], [b"\x00", b"\xff"])
        project.land(day, data, "a.parquet")
    status, said = project.call("run", "p")
    assert status in (0, 1, 3), said
    assert "Traceback" not in said
    raw, rejected = (
        named_rows(table) for table in (project.source.raw_events, project.source.rejected_records)
    )
    found = Counter(row["arrival_unit"].day for row in (*raw, *rejected))
    bad = {int(day) for day in re.findall(r"2026-11-(\d\d)/a\.parquet: ", said)}
    assert found == {day: count for day, count in counts.items() if day not in bad}
    assert 0 < len(bad) < days
    require_readable(project.folder / "warehouse")


def test_parquet_of_odd_types_is_accepted_rejected_or_bad(project: SmallProject) -> None:
    fuzz_parquet(project, 1, 12)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 8))
def test_much_parquet_of_odd_types_is_accepted_rejected_or_bad(
    project: SmallProject, seed: int
) -> None:
    fuzz_parquet(project, seed, 20)
