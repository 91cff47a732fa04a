"""`check --files` compares tables with each other, from files alone; no Spark."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from math import nan
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from deltalake import write_deltalake

from tests.support.damage import data_files
from windows_pipeline.checks.files import Finding, Fix, check_pipeline_files
from windows_pipeline.checks.stored_rows import differing_rows
from windows_pipeline.config import Pipeline, load_pipeline
from windows_pipeline.jobs.days.repair import RepairRefusedError, plan_repair
from windows_pipeline.settings import Settings
from windows_pipeline.storage.files.digests import LIST_NAME, remember
from windows_pipeline.storage.files.hadoop_checksums import files_that_differ
from windows_pipeline.storage.files.stream_checkpoint import PUT_BACK, damaged_files, way_out

DAYS = [date(2026, 11, 1), date(2026, 11, 2)]
DECLARED = {
    "name": "p",
    "source": {
        "path": "data",
        "format": "csv",
        "columns": {"k": "string", "t": "bigint", "v": "double"},
        "key": "k",
        "event_time": "t",
    },
    "partitions": {"start": "2026-11-01"},
    "windows": {
        "w": {
            "kind": "tumbling",
            "size": "10 ms",
            "grace": "0 ms",
            "aggregates": {"s": "sum(v)"},
        }
    },
}


def pipeline_in(folder: Path) -> Pipeline:
    file = folder / "p.yaml"
    file.write_text(yaml.safe_dump(json.loads(json.dumps(DECLARED))))
    return load_pipeline(file)


def settings_in(folder: Path) -> Settings:
    return Settings(warehouse=str(folder), pipelines=folder, landing=str(folder), spark={})


def store(
    folder: Path, name: str, rows: Sequence[Mapping[str, object]], *, partitioned: bool
) -> Path:
    table = folder / "p" / name
    by = ["arrival_unit"] if partitioned else None
    empty = pa.schema([("arrival_unit", pa.date32()), ("n", pa.int64())])
    stored = pa.Table.from_pylist(list(rows), None if rows else empty)
    write_deltalake(table, stored, partition_by=by)
    remember(str(table))
    return table


def store_all(
    folder: Path,
    *,
    raw: int = 2,
    rejected: int = 1,
    final: float = 1.5,
    closed: bool = True,
    batches: Sequence[int | None] = (None, None),
) -> None:
    """Tables of two days, each with two records, a rejected record and a final window."""
    log = [
        {"arrival_unit": day, "rows": 2, "arrival_unit_rejected": 1, "batch": batch, "n": 0}
        for day, batch in zip(DAYS, batches, strict=True)
    ]
    raw_rows = [{"arrival_unit": DAYS[0], "v": 1.0}] * 2 + [
        {"arrival_unit": DAYS[1], "v": 1.0}
    ] * raw
    rejects = [{"arrival_unit": DAYS[0], "n": 1}] + [{"arrival_unit": DAYS[1], "n": 1}] * rejected
    window = {"key": "a", "window_end": datetime(2026, 11, 1, tzinfo=UTC), "record_count": 2}
    keyed = [window | {"arrival_unit": day, "s": 1.5, "closed": True, "batch": 1} for day in DAYS]
    keyed[1]["closed"] = closed
    # An open window is in no final result.
    keyed.append(keyed[0] | {"key": "b", "closed": False})
    finals = [window | {"arrival_unit": day, "s": 1.5} for day in DAYS]
    finals[1]["s"] = final
    store(folder, "arrival_log", log, partitioned=False)
    store(folder, "raw_events", raw_rows, partitioned=True)
    store(folder, "rejected_records", rejects, partitioned=True)
    store(folder, "w/keyed_windows", keyed, partitioned=True)
    store(folder, "w/final_windows", finals, partitioned=True)
    for name in ("late_records", "corrections", "alerts", "failed_windows"):
        store(folder, f"w/{name}", [], partitioned=True)


def found_in(folder: Path) -> list[tuple[str, Fix, date | None]]:
    findings = check_pipeline_files(pipeline_in(folder), str(folder)).findings
    return [(one.table, one.fix, one.arrival_unit) for one in findings]


def test_tables_that_agree_have_no_findings(tmp_path: Path) -> None:
    store_all(tmp_path)
    result = check_pipeline_files(pipeline_in(tmp_path), str(tmp_path))
    assert (result.findings, result.tables, result.new) == ([], 9, 0)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"raw": 1}, ("p/raw_events", Fix.SOURCE, DAYS[1])),
        ({"raw": 3}, ("p/raw_events", Fix.RUN, DAYS[1])),
        ({"rejected": 0}, ("p/rejected_records", Fix.SOURCE, DAYS[1])),
        ({"final": 1.75}, ("p/w/final_windows", Fix.REPAIR, DAYS[1])),
        ({"closed": False}, ("p/w/final_windows", Fix.REPAIR, DAYS[1])),
    ],
)
def test_tables_that_disagree_are_named_with_the_day(
    tmp_path: Path, changed: dict[str, object], expected: tuple[str, Fix, date]
) -> None:
    """Rules A2 and E1: the log counts the records; final windows are closed windows."""
    store_all(tmp_path, **changed)  # type: ignore[arg-type]
    assert found_in(tmp_path) == [expected]


def test_a_published_day_without_final_windows_is_named(tmp_path: Path) -> None:
    """A repair that is killed after it set a damaged file aside leaves such a day."""
    store_all(tmp_path)
    (tmp_path / "p" / "w" / "final_windows").rename(tmp_path / "elsewhere")
    window = {"key": "a", "window_end": datetime(2026, 11, 1, tzinfo=UTC), "record_count": 2}
    one_day = [window | {"arrival_unit": DAYS[0], "s": 1.5}]
    store(tmp_path, "w/final_windows", one_day, partitioned=True)
    assert found_in(tmp_path) == []
    store(tmp_path, "w/_computed_days", [{"arrival_unit": DAYS[1]}], partitioned=False)
    assert found_in(tmp_path) == [("p/w/final_windows", Fix.REPAIR, DAYS[1])]


@pytest.mark.parametrize("batches", [(None, None), (0, 1)], ids=["by days", "as a stream"])
def test_a_missing_table_is_named(tmp_path: Path, batches: tuple[int | None, ...]) -> None:
    store_all(tmp_path, batches=batches)
    if batches[0] is None:
        store(tmp_path, "w/_computed_days", [{"arrival_unit": DAYS[1]}], partitioned=False)
    folder = tmp_path / "p"

    def found_without(name: str) -> dict[str, Fix]:
        (folder / name).rename(tmp_path / "aside")
        found = {table: fix for table, fix, _ in found_in(tmp_path) if table != "p/_stream"}
        (tmp_path / "aside").rename(folder / name)
        return found

    for name in ("keyed_windows", "late_records", "final_windows", "alerts", "failed_windows"):
        assert found_without(f"w/{name}") == {f"p/w/{name}": Fix.REPAIR}
    assert found_without("w/corrections") == {"p/w/corrections": Fix.BACKUP}
    assert found_without("w") == {"p/w/keyed_windows": Fix.RUN}
    for name in ("raw_events", "rejected_records"):
        assert found_without(name) == {f"p/{name}": Fix.SOURCE}


def test_a_damaged_file_is_named_once_and_not_compared(tmp_path: Path) -> None:
    store_all(tmp_path)
    file = data_files(tmp_path / "p" / "w" / "final_windows")[1]
    file.write_bytes(b"PAR1")
    assert found_in(tmp_path) == [("p/w/final_windows", Fix.REPAIR, DAYS[1])]
    damaged = data_files(tmp_path / "p" / "arrival_log")[0]
    damaged.unlink()
    assert [table for table, *_ in found_in(tmp_path)] == ["p/arrival_log", "p/w/final_windows"]


def test_no_repair_while_what_it_reads_is_damaged(tmp_path: Path) -> None:
    finding = Finding("p/raw_events", "a.parquet", "is gone", Fix.SOURCE)
    with pytest.raises(RepairRefusedError, match="p/raw_events must be undamaged"):
        plan_repair(pipeline_in(tmp_path), settings_in(tmp_path), [finding])


def test_a_damaged_list_of_digests_is_mended_alone(tmp_path: Path) -> None:
    store_all(tmp_path)
    with (tmp_path / "p" / "raw_events" / LIST_NAME).open("rb+") as file:
        file.write(b"x")
    assert found_in(tmp_path) == [("p/raw_events", Fix.REPAIR, None)]
    findings = check_pipeline_files(pipeline_in(tmp_path), str(tmp_path)).findings
    plan = plan_repair(pipeline_in(tmp_path), settings_in(tmp_path), findings)
    assert [table.name for table in plan.lists] == ["p/raw_events"]
    assert (plan.of_windows, plan.bookkeeping) == ([], [])


@pytest.mark.parametrize(
    ("table", "file", "steps", "corrects"),
    [
        ("keyed_windows", "arrival_unit=2026-11-02/a.parquet", {"keyed_windows"}, False),
        ("late_records", "_delta_log/0.json", {"keyed_windows"}, False),
        ("alerts", "arrival_unit=2026-11-02/a.parquet", {"alerts"}, False),
        ("final_windows", "arrival_unit=2026-11-02/a.parquet", set(), True),
        ("final_windows", None, {"keyed_windows"}, True),
    ],
)
def test_a_repair_computes_what_is_damaged_and_final_windows_by_a_correction(
    tmp_path: Path, table: str, file: str | None, steps: set[str], *, corrects: bool
) -> None:
    """Rule E1: only a correction changes a final window."""
    finding = Finding(f"p/w/{table}", file, "", Fix.REPAIR, DAYS[1])
    (repair,) = plan_repair(pipeline_in(tmp_path), settings_in(tmp_path), [finding]).of_windows
    assert (repair.steps, repair.corrects) == (steps, corrects)
    assert repair.corrected == ({DAYS[1]} if corrects else set())


def test_rows_are_compared_by_their_bits_and_as_often_as_they_are_there() -> None:
    first = pa.table(
        {
            "key": [{"a": "x", "b": None}, {"a": "x", "b": 1}, None, {"a": "y", "b": 2}],
            "d": pa.array([Decimal("1.10"), None, Decimal("2.00"), None], pa.decimal128(38, 2)),
            "v": [nan, 0.0, 1.0, None],
            "only": [1, 2, 3, 4],
        }
    )
    assert differing_rows(first, first.drop(["only"])) == (0, 0)
    assert differing_rows(first, first.take([3, 2, 1, 0])) == (0, 0)
    assert differing_rows(first, pa.concat_tables([first, first.slice(2, 1)])) == (0, 1)
    negative = first.set_column(2, "v", pa.array([nan, -0.0, 1.0, None]))
    assert differing_rows(first, negative) == (1, 1)
    assert differing_rows(first, first.slice(0, 0)) == (4, 0)


def store_checkpoint(folder: Path) -> Path:
    """The files of a checkpoint of two micro-batches, each with its checksum file."""
    checkpoint = folder / "p" / "_stream"
    for name in ("metadata", "offsets/0", "offsets/1", "commits/0", "commits/1", "sources/0/1"):
        file = checkpoint / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(name.encode())
        crc = struct.pack(">4sII", b"crc\x00", 512, zlib.crc32(name.encode()))
        file.with_name(f".{file.name}.crc").write_bytes(crc)
    return checkpoint


Damage = Callable[[Path], object]


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda at: (at / "sources/0/1").write_text("sources/0/0"), ("sources/0/1", Fix.STREAM)),
        (lambda at: (at / "offsets/0").write_text("offsets/9"), ("offsets/0", Fix.STREAM)),
        (lambda at: (at / "commits/1").write_text("commits/9"), ("commits/1", Fix.COMMIT)),
        (lambda at: (at / "commits/1").write_text(""), ("commits/1", Fix.COMMIT)),
        (lambda at: (at / "commits/1").unlink(), ("commits/1", Fix.COMMIT)),
        (lambda at: (at / "metadata").unlink(), ("metadata", Fix.STREAM)),
    ],
)
def test_a_damaged_file_of_a_checkpoint_is_named_with_the_fix(
    tmp_path: Path, damage: Damage, expected: tuple[str, Fix]
) -> None:
    """H1: only a commit can be deleted; other files say which records the tables have."""
    store_all(tmp_path)
    checkpoint = store_checkpoint(tmp_path)
    assert found_in(tmp_path) == []
    damage(checkpoint)
    findings = check_pipeline_files(pipeline_in(tmp_path), str(tmp_path)).findings
    assert [(one.file, one.fix) for one in findings] == [expected]
    assert list(damaged_files(checkpoint)) == [expected[0]]


def test_an_empty_file_of_a_checkpoint_needs_no_checksums_to_be_found(tmp_path: Path) -> None:
    checkpoint = store_checkpoint(tmp_path)
    (checkpoint / "commits" / "1").write_bytes(b"")
    (checkpoint / "commits" / ".1.crc").unlink()
    assert damaged_files(checkpoint) == {"commits/1": "is empty"}


@pytest.mark.parametrize(
    ("gone", "words"),
    [
        (".", "holds no checkpoint of that stream"),
        ("offsets", "its tables end with micro-batch 1, which its checkpoint must have"),
        ("metadata", "/metadata is missing"),
    ],
)
def test_a_checkpoint_that_tables_of_a_stream_need_is_named(
    tmp_path: Path, gone: str, words: str
) -> None:
    """H1: without it, or with another one, a stream would bring records again."""
    store_all(tmp_path, batches=(0, 1))
    checkpoint = store_checkpoint(tmp_path)
    assert found_in(tmp_path) == []
    (checkpoint / ".metadata.crc").unlink()
    (checkpoint / gone).rename(tmp_path / "elsewhere")
    (finding,) = check_pipeline_files(pipeline_in(tmp_path), str(tmp_path)).findings
    assert (finding.table, finding.file, finding.fix) == ("p/_stream", None, Fix.STREAM)
    assert words in finding.what


def test_tables_that_were_filled_by_days_need_no_checkpoint(tmp_path: Path) -> None:
    store_all(tmp_path)
    assert not (tmp_path / "p" / "_stream").exists()
    assert found_in(tmp_path) == []


def test_what_a_killed_stream_leaves_is_no_damage(tmp_path: Path) -> None:
    """Spark writes `.2.UUID.tmp` and renames it; Hadoop renames its checksum file afterwards."""
    checkpoint = store_checkpoint(tmp_path)
    offsets = checkpoint / "offsets"
    (offsets / "2").write_bytes(b"renamed, its checksums not yet")
    (offsets / "..2.0-1.tmp.crc").write_bytes(b"crc\x00")
    (offsets / ".3.0-2.tmp").write_bytes(b"")
    (offsets / "..3.0-2.tmp.crc").write_bytes(b"")
    assert damaged_files(checkpoint) == {}


def test_commits_are_deleted_with_their_checksum_files() -> None:
    """Hadoop writes no file where the checksum file of an older one lies."""
    one = way_out("/w h/_stream", ["commits/3"])
    assert "(rm -f '/w h/_stream/commits/3' '/w h/_stream/commits/.3.crc')" in one
    two = way_out("/w", ["commits/2", "commits/3"])
    assert "(rm -f /w/commits/2 /w/commits/.2.crc /w/commits/3 /w/commits/.3.crc)" in two
    assert way_out("/w", ["commits/3", "offsets/3"]) == PUT_BACK


def test_a_checksum_file_of_hadoop_says_whether_its_file_changed(tmp_path: Path) -> None:
    """The format: `crc`, a zero byte, the block size, then a CRC-32 of each block."""
    content = bytes(range(256)) * 5
    blocks = [content[start : start + 512] for start in range(0, len(content), 512)]
    crcs = b"".join(struct.pack(">I", zlib.crc32(block)) for block in blocks)
    (tmp_path / "offsets").mkdir()
    file = tmp_path / "offsets" / "3"
    checksums = tmp_path / "offsets" / ".3.crc"
    file.write_bytes(content)
    (tmp_path / "offsets" / "4").write_bytes(b"has none")
    checksums.write_bytes(b"crc\x00" + struct.pack(">I", 512) + crcs)
    assert files_that_differ(tmp_path) == {}
    for changed in (content[:-1], content + b"x", b"", bytes([content[0] ^ 1]) + content[1:]):
        file.write_bytes(changed)
        assert list(files_that_differ(tmp_path)) == [file]
    file.write_bytes(content)
    checksums.write_bytes(b"crc")
    assert list(files_that_differ(tmp_path)) == [file]
    file.unlink()
    assert files_that_differ(tmp_path) == {file: "is gone; its checksum file is there"}
