"""Contract of delta-rs: it still has the peculiarities that `compat/delta_rs.py` goes around.

Where one of these tests fails, delta-rs has changed: take its case out of that module.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from windows_pipeline.compat.delta_rs import (
    UNSUPPORTED_CHARACTERS,
    forget_last_checkpoint,
    supports_folder,
    understands_retention,
)

ROWS = pa.table({"n": [1]})


def holds_rows(folder: Path) -> bool:
    """Whether a table that is made there is one, and reads what was written."""
    try:
        write_deltalake(str(folder), ROWS)
        return bool(
            (folder / "_delta_log").is_dir()
            and DeltaTable(str(folder)).to_pyarrow_table().num_rows == 1
        )
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001  a panic of Rust's is no Exception
        return False


@pytest.mark.parametrize("character", sorted(UNSUPPORTED_CHARACTERS))
def test_a_folder_with_such_a_character_is_not_taken(tmp_path: Path, character: str) -> None:
    folder = tmp_path / f"a{character}20b"
    assert not supports_folder(str(folder))
    assert not holds_rows(folder)


@pytest.mark.parametrize("character", [*" *?{}#+=&:;,~'\"<>$!()@`", "ü", "窓"])
def test_a_folder_with_any_other_character_is_taken(tmp_path: Path, character: str) -> None:
    folder = tmp_path / f"a{character}20b"
    assert supports_folder(str(folder))
    assert holds_rows(folder)


@pytest.mark.parametrize(
    ("period", "is_read"),
    [("interval 60 days", True), ("interval 8 weeks 4 days", True), ("60 days", False)],
)
def test_what_a_period_keeps(tmp_path: Path, period: str, *, is_read: bool) -> None:
    """A commit of 40 days ago stays for 60 days, but for delta-rs' own default of 30."""
    properties = {"delta.logRetentionDuration": period}
    assert understands_retention(properties) is is_read
    for _ in range(3):
        write_deltalake(str(tmp_path), ROWS, mode="append", configuration=properties)
    log = tmp_path / "_delta_log"
    forty_days_ago = time.time() - 40 * 86_400
    for commit in log.glob("*.json"):
        os.utime(commit, (forty_days_ago, forty_days_ago))
    table = DeltaTable(str(tmp_path))
    table.create_checkpoint()
    table.cleanup_metadata()
    assert (len([*log.glob("*.json")]) == 3) is is_read


def test_a_checksum_of_the_last_checkpoint_is_left_by_it(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), ROWS)
    checksum = tmp_path / "_delta_log" / "._last_checkpoint.crc"
    checksum.write_bytes(b"of another")
    DeltaTable(str(tmp_path)).create_checkpoint()
    assert checksum.exists()
    forget_last_checkpoint(str(tmp_path))
    forget_last_checkpoint(str(tmp_path))
    assert not checksum.exists()
