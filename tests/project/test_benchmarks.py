"""The benchmark's data are the same each time, and a wrong answer stops it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from benchmarks.answers import CHECKSUMS, Answer, DifferentAnswersError, require_same
from benchmarks.data import Dataset, Keys
from benchmarks.results import with_entry
from benchmarks.spark_engine import WAYS, checksums
from benchmarks.workload import (
    MAX_RECORDS_IN_MEMORY,
    Kind,
    Workload,
)

FEW = Dataset(2_000, 5)
SLIDING = Workload(FEW, records_per_window=10)
HOPPING = Workload(FEW, Kind.HOPPING, records_per_window=10, advances=5)
SESSION = Workload(FEW, Kind.SESSION, records_per_window=10)


@pytest.mark.parametrize("spread", list(Keys))
def test_the_same_description_gives_the_same_records(spread: Keys) -> None:
    data = replace(FEW, spread=spread)
    first, second = (pa.concat_tables(data.tables()) for _ in range(2))
    assert first.equals(second)
    assert first.num_rows == FEW.records
    other = pa.concat_tables(replace(data, seed=data.seed + 1).tables())
    assert not first.equals(other)


def test_records_are_written_once(tmp_path: Path) -> None:
    folder = FEW.write(tmp_path)
    (file,) = folder.iterdir()
    written = file.stat().st_mtime_ns
    assert FEW.write(tmp_path) == folder
    assert file.stat().st_mtime_ns == written
    assert pq.read_table(folder).equals(pa.concat_tables(FEW.tables()))


def test_keys_are_spread_as_they_say() -> None:
    def most(spread: Keys) -> float:
        table = pa.concat_tables(replace(FEW, spread=spread).tables())
        keys: list[int] = table.column("key").to_pylist()
        return max(map(keys.count, set(keys))) / len(keys)

    assert most(Keys.SINGLE) == 1
    assert 0.55 < most(Keys.HALF) < 0.65  # half, and a fifth of the other half
    assert most(Keys.UNIFORM) < 0.25
    assert 0.4 < most(Keys.ZIPF) < 0.5  # 1 / (1 + 2**-1.1 + ... + 5**-1.1)


def test_a_wrong_answer_is_refused() -> None:
    answer = Answer(*range(1, 9))
    require_same("work", {"ours": answer, "other": answer})
    with pytest.raises(DifferentAnswersError, match="work: ours and other: sums 3 and 4"):
        require_same("work", {"ours": answer, "other": replace(answer, sums=4)})


@pytest.mark.long
@pytest.mark.parametrize(
    ("way", "work", "left_only"),
    [
        ("spark-range", SLIDING, False),
        ("spark-range-left", SLIDING, True),
        ("spark-window", HOPPING, False),
        ("spark-session-window", SESSION, False),
    ],
)
def test_sparks_own_ways_answer_as_ours_does_and_one_lost_record_shows(
    spark: SparkSession, tmp_path: Path, way: str, work: Workload, *, left_only: bool
) -> None:
    records = spark.read.parquet(str(FEW.write(tmp_path))).select(*work.columns)
    ours = checksums("ours", WAYS["ours"](records, work), left_only=left_only)
    assert ours.windows > 0
    assert len(CHECKSUMS) == 8
    require_same("all", {"ours": ours, way: checksums(way, WAYS[way](records, work))})
    last_ms = max(pa.concat_tables(FEW.tables()).column("time_ms").to_pylist())
    fewer = records.where(records["time_ms"] != last_ms)
    with pytest.raises(DifferentAnswersError, match=way):
        require_same("fewer", {"ours": ours, way: checksums(way, WAYS[way](fewer, work))})


def test_a_way_that_is_not_measured_again_keeps_its_row() -> None:
    on_two, on_one = {"median_s": 1.0, "cores": 2}, {"median_s": 2.0, "cores": 1}
    earlier = {"work": {"keys": 5, "ways": {"ours": on_two, "duckdb": on_two}}, "other": {}}
    now = {"keys": 5, "ways": {"ours": on_one, "polars": on_one}}
    entries = with_entry(earlier, "work", now)
    ways = {"ours": on_one, "duckdb": on_two, "polars": on_one}
    assert entries == {"work": {"keys": 5, "ways": ways}, "other": {}}


def test_answers_of_few_records_are_compared_where_all_do_not_fit() -> None:
    fits = replace(SLIDING, dataset=Dataset(10_000_000, 1_000))
    assert fits.checked(MAX_RECORDS_IN_MEMORY) == fits
    assert fits.checked(200_000).dataset == Dataset(200_000, 20)
    too_large = replace(SLIDING, dataset=Dataset(100_000_000, 1_000))
    assert too_large.checked(MAX_RECORDS_IN_MEMORY).dataset == Dataset(1_000_000, 10)
