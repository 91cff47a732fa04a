"""Readers without Spark: one flipped bit gives the same rows, or an error that names the file."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.damage import flipped, flips
from tests.support.pipeline_texts import FLIGHTS, load_text
from tests.support.written_tables import Row, write_rows
from windows_pipeline.query import WindowStore
from windows_pipeline.storage.catalog import TableSpec, window_tables
from windows_pipeline.storage.files.damage import TableDamagedError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FLIPS = 300


class Stored:
    """The final windows of a pipeline in one file of one commit."""

    def __init__(self, folder: Path) -> None:
        self._pipeline = load_text(folder, FLIGHTS)
        self._warehouse = str(folder / "warehouse")
        write_rows(self.final, [row_of(number) for number in range(40)], compression="GZIP")
        (self.data,) = Path(self.final.location).rglob("*.parquet")

    @property
    def final(self) -> TableSpec:
        return window_tables(self._pipeline, "hourly", self._warehouse).final_windows

    @property
    def newest_commit(self) -> Path:
        return max((Path(self.final.location) / "_delta_log").glob("*.json"))

    def rows(self) -> list[Row]:
        """All columns of all windows, by a store that is opened now."""
        store = WindowStore(self._pipeline, "hourly", self._warehouse)
        rows: list[Row] = store.fetch_keys().to_arrow().to_pylist()
        return rows


def row_of(number: int) -> Row:
    start = EPOCH + timedelta(minutes=number)
    return {
        "arrival_unit": date(2013, 3, 8),
        "key": f"key {number % 4}",
        "window_start": start,
        "window_end": start + timedelta(hours=1),
        "first_event_time": start,
        "last_event_time": start,
        "record_count": number + 1,
        "avg_dep_delay": number / 4,
        "failed": [],
    }


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    return Stored(tmp_path)


def outcome(stored: Stored, file: Path, whole: list[Row]) -> str:
    """What a reader sees of a damaged file."""
    try:
        return "same" if stored.rows() == whole else "other"
    except TableDamagedError as damaged:
        return "named" if file.name in str(damaged) else f"no name: {damaged}"


@pytest.mark.parametrize("part", ["data", "footer"])
def test_a_flipped_bit_of_a_data_file_is_harmless_or_named(stored: Stored, part: str) -> None:
    whole, outcomes = stored.rows(), Counter[str]()
    for file, byte, bit in flips([stored.data], 5, FLIPS, part):
        with flipped(file, byte, bit):
            outcomes[outcome(stored, file, whole)] += 1
    assert outcomes["named"] > 0
    assert set(outcomes) <= {"same", "named"}, outcomes


def test_an_empty_commit_is_named(stored: Stored) -> None:
    """delta-rs takes it for a commit that changed nothing: its rows would be missing."""
    write_rows(stored.final, [row_of(40)])
    whole = stored.rows()
    newest = stored.newest_commit
    newest.write_bytes(b"")
    assert outcome(stored, newest, whole) == "named"


def test_a_log_without_a_column_is_named(stored: Stored) -> None:
    only = stored.newest_commit
    only.write_text(only.read_text().replace("record_count", "recorc_count"))
    with pytest.raises(TableDamagedError, match="record_count"):
        stored.rows()
