"""What becomes of files of a table that change after they were written; no Spark."""

from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from tests.support.damage import FLIPS, data_files, flipped, flips, log_files
from windows_pipeline.storage import delta_rs
from windows_pipeline.storage.files.check import check_files
from windows_pipeline.storage.files.damage import TableDamagedError, damage_in, damage_of
from windows_pipeline.storage.files.digests import (
    LIST_NAME,
    forget_deleted,
    known_files,
    remember,
)

DAYS = [date(2026, 11, 1), date(2026, 11, 2)]
ROWS = 300


def rows(number: int) -> pa.Table:
    """The rows of a write; no two writes have the same."""
    values = [float(number * ROWS + row) for row in range(ROWS)]
    return pa.table({"arrival_unit": [DAYS[number % 2]] * ROWS, "v": values})


def written(folder: Path, times: int = 11) -> Path:
    """A table of some writes, with a checkpoint and a commit after it, and its digests."""
    DeltaTable.create(folder, rows(0).schema, partition_by=["arrival_unit"])
    remember(str(folder))
    for number in range(times):
        delta_rs.append(str(folder), rows(number), "tests", number)
        remember(str(folder))
    return folder


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table to damage, which each test leaves as it was."""
    return written(tmp_path_factory.mktemp("tables") / "pipeline" / "raw_events", 12)


def values(table: Path) -> list[float]:
    paths = delta_rs.live_files(str(table))
    return sorted(
        value for path in paths for value in pq.ParquetFile(table / path).read()["v"].to_pylist()
    )


@pytest.mark.parametrize("kind", ["data", "footer", ".json", ".checkpoint.parquet", LIST_NAME])
def test_every_flipped_bit_is_found(table: Path, kind: str) -> None:
    if kind in {"data", "footer"}:
        files, part = data_files(table), kind
    else:
        files, part = [table / LIST_NAME] if kind == LIST_NAME else log_files(table, kind), "all"
    for file, byte, bit in flips(files, 1, FLIPS, part):
        with flipped(file, byte, bit):
            damages = check_files(str(table)).damages
        last_line_end = kind == LIST_NAME and byte == file.stat().st_size - 1
        name = str(file.relative_to(table))
        assert last_line_end or name in {damage.file for damage in damages}, (file, byte, bit)
    assert check_files(str(table)).damages == []


def test_a_flipped_bit_of_the_last_checkpoint_is_found_or_changes_nothing(table: Path) -> None:
    file = table / "_delta_log" / "_last_checkpoint"
    before = values(table)
    for _, byte, bit in flips([file], 1, FLIPS):
        with flipped(file, byte, bit):
            assert check_files(str(table)).damages or values(table) == before


def test_readers_refuse_flipped_values_that_the_driver_wrote(table: Path) -> None:
    """Gzip's checksum covers the values; a flip in a page's header may change nothing."""
    before = values(table)
    outcomes: Counter[str] = Counter()
    for file, byte, bit in flips(data_files(table), 2, FLIPS, "data"):
        with flipped(file, byte, bit):
            try:
                outcomes["same" if values(table) == before else "other values"] += 1
            except (OSError, pa.ArrowInvalid):
                outcomes["refused"] += 1
    assert outcomes["other values"] == 0
    assert outcomes["refused"] > outcomes["same"]


def test_the_driver_writes_gzip(tmp_path: Path) -> None:
    (file,) = data_files(written(tmp_path / "t", 1))
    column = pq.read_metadata(file).row_group(0).column(0)
    assert column.compression == "GZIP"


def test_a_file_that_is_gone_cut_or_longer_is_found(table: Path) -> None:
    for file in (data_files(table)[0], *log_files(table, ".json")[-2:]):
        content = file.read_bytes()
        name = str(file.relative_to(table))
        for changed, what in (
            (content[:-1], " bytes, and had "),
            (content + b"\n", " bytes, and "),
        ):
            file.write_bytes(changed)
            found = {one.file: one.what for one in check_files(str(table)).damages}
            assert what in found[name]
        file.unlink()
        found = {one.file: one.what for one in check_files(str(table)).damages}
        assert found[name] == "is gone"
        file.write_bytes(content)
    assert check_files(str(table)).damages == []


def test_a_killed_run_leaves_files_without_digest_and_no_damage(tmp_path: Path) -> None:
    """Killed between commit and digests, or while it wrote the list."""
    table = written(tmp_path / "t", 3)
    names = set(known_files(str(table)).files)
    delta_rs.append(str(table), rows(3), "tests", 3)
    with (table / LIST_NAME).open("ab") as file:
        file.write(b"0123abcd 12")
    assert set(known_files(str(table)).files) == names
    assert known_files(str(table)).damaged_lines == []
    delta_rs.append(str(table), rows(4), "tests", 4)
    remember(str(table))
    known = known_files(str(table))
    assert known.damaged_lines == []
    wanted = {
        str(path.relative_to(table)) for path in (*data_files(table), *log_files(table, ".json"))
    }
    assert set(known.files) == wanted
    checked = check_files(str(table))
    assert (checked.damages, checked.new, checked.compared) == ([], 0, len(wanted))


def test_files_without_digest_are_read_and_get_one(tmp_path: Path) -> None:
    """Tables of an older release have no list; a lost list is made again."""
    table = written(tmp_path / "t", 3)
    (table / LIST_NAME).unlink()
    file = data_files(table)[-1]
    byte = len(file.read_bytes()) // 3
    with flipped(file, byte, 3):
        (damage,) = check_files(str(table)).damages
        assert damage.file == str(file.relative_to(table))
        assert "cannot be read" in damage.what
    checked = check_files(str(table))
    assert (checked.damages, checked.new) == ([], 1)
    assert check_files(str(table)).new == 0


def test_digests_of_deleted_files_are_dropped_and_of_missing_ones_stay(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 4)
    write_deltalake(table, rows(9), mode="overwrite")
    unused = DeltaTable(table).vacuum(0, dry_run=False, enforce_retention_duration=False)
    remember(str(table))
    (live,) = delta_rs.live_files(str(table))
    (table / live).unlink()
    newest = log_files(table, ".json")[-2]
    newest.unlink()
    with (table / LIST_NAME).open("rb+") as file:
        file.write(b"x")  # damages the first line
    forget_deleted(str(table), {live})
    known = known_files(str(table))
    assert unused
    assert not set(unused) & set(known.files)
    assert {live, f"_delta_log/{newest.name}"} <= set(known.files)
    assert known.damaged_lines == []


def test_a_path_out_of_the_table_is_never_read(tmp_path: Path) -> None:
    """A log is no place from which other files are to be read."""
    table = written(tmp_path / "t", 1)
    commit = log_files(table, ".json")[1]
    secret = tmp_path / "secret.parquet"
    secret.write_bytes(b"secret")
    (table / LIST_NAME).unlink()
    name = data_files(table)[0].relative_to(table)
    for path in ("../secret.parquet", str(secret), f"file://{secret}"):
        commit.write_text(commit.read_text().replace(str(name), path))
        remember(str(table))
        assert not any("secret" in known for known in known_files(str(table)).files)
        name = Path(path)


def test_an_error_names_table_file_and_command(table: Path) -> None:
    file = log_files(table, ".json")[-1]
    with flipped(file, 0, 0), pytest.raises(TableDamagedError) as refused:
        delta_rs.version(str(table))
    said = str(refused.value).splitlines()
    assert len(said) <= 5
    assert "damaged or gone" in said[0]
    assert said[-1].endswith(" --files")
    assert "<unknown>" not in str(refused.value)


@pytest.mark.parametrize(
    "error",
    [
        CommitFailedError("Parquet error: of another run"),
        PermissionError(13, "Permission denied", "/w/p/raw_events/a.parquet"),
        KeyError("No such file"),
        OSError(28, "No space left on device"),
    ],
)
def test_what_is_no_damage_stays_as_it_is(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, damage_of("p/raw_events"):
        raise error
    assert raised.value is error
    assert damage_in(error) is None


def test_only_tables_of_a_pipeline_are_named(tmp_path: Path) -> None:
    """A landed file that is damaged is no damage of a table."""
    (tmp_path / "w" / "flights" / "arrival_log").mkdir(parents=True)
    table = tmp_path / "w" / "flights" / "hourly" / "alerts"
    (table / "_delta_log").mkdir(parents=True)
    landed = tmp_path / "data" / "2026-11-01" / "a.parquet"
    landed.parent.mkdir(parents=True)
    for path in (landed, table / "a b.parquet"):
        path.write_bytes(b"PAR1")
    text = "Task 1/2: [FAILED_READ_FILE.NO_HINT] Error while reading file file://{}. SQLSTATE: 1\n"
    text += "Caused by: java.lang.RuntimeException: {} is not a Parquet file"
    assert damage_in(RuntimeError(text.format(landed, landed))) is None
    found = damage_in(RuntimeError(text.format(table / "a b.parquet", "it")))
    assert found is not None
    assert (found.table, found.file) == ("flights/hourly/alerts", str(table / "a b.parquet"))
    assert found.cause == "it is not a Parquet file"
    gone = "[PATH_NOT_FOUND] Path does not exist: file:{}. SQLSTATE: 42K03"
    assert damage_in(RuntimeError(gone.format(landed.with_name("b.parquet")))) is None
    found = damage_in(RuntimeError(gone.format(table / "arrival_unit=2026-11-01" / "b.parquet")))
    assert found is not None
    assert (found.table, found.cause) == ("flights/hourly/alerts", "is gone")
