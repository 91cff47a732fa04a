"""A sample is landed whole, in the folder of one day; its first records are read."""

from __future__ import annotations

import gzip
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windows_pipeline.starter.files import find_files
from windows_pipeline.starter.landing import land, require_free
from windows_pipeline.starter.sample import read_sample
from windows_pipeline.starter.types import SampleColumn

DAY = date(2026, 3, 8)


def landed(source: Path, target: Path) -> Path:
    require_free(target, target.parent)
    return land(find_files(source), target, DAY)


def contents(folder: Path) -> dict[str, bytes]:
    """What the files of day folders hold, by path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_files_keep_their_names_and_bytes(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (source / "a.csv").write_bytes(b'\xef\xbb\xbfts,x\r\n2026-03-08,"a\r\nb"\r\n2026-03-09,\xff')
    (source / "b.csv.gz").write_bytes(gzip.compress(b"ts,x\n2026-03-09,c\n"))
    (source / "_SUCCESS").touch()
    (source / "link.csv").symlink_to(source / "a.csv")
    assert contents(landed(source, tmp_path / "data")) == {
        f"2026-03-08/{name}": (source / name).read_bytes() for name in ("a.csv", "b.csv.gz")
    }


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_parquet_are_written_as_spark_reads_them(tmp_path: Path, unit: str) -> None:
    times = [datetime(2026, 3, 8 + n % 3, 5, 6, 7, tzinfo=UTC) for n in range(30)]
    table = pa.table({"ts": pa.array(times, pa.timestamp(unit, "UTC")), "n": range(30)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=7)
    folder = landed(tmp_path / "a.parquet", tmp_path / "data")
    rows = pq.read_table(folder / str(DAY) / "a.parquet", partitioning=None)
    assert rows.column("n").to_pylist() == list(range(30))
    assert rows.column("ts").to_pylist() == times
    assert rows.schema.field("ts").type == pa.timestamp("us", "UTC")


def test_nothing_is_overwritten_or_left_behind(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts\n2026-03-08\n")
    (tmp_path / "data").mkdir()
    with pytest.raises(ValueError, match="is not overwritten"):
        landed(tmp_path / "a.csv", tmp_path / "data")
    files = find_files(tmp_path / "a.csv")
    (tmp_path / "a.csv").unlink()
    with pytest.raises(FileNotFoundError):
        land(files, tmp_path / "other", DAY)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


def test_a_link_does_not_lead_out_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "data").symlink_to(tmp_path / "elsewhere")
    project = tmp_path / "project"
    with pytest.raises(ValueError, match="a link leads out"):
        require_free(project / "data" / "p", project)
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("length", [100, 20_000])
def test_a_quote_that_nothing_closes_hides_no_record(tmp_path: Path, length: int) -> None:
    lines = [f"{n},x{n},2026-03-08" for n in range(length)]
    lines[10] = '10,"x10,2026-03-08'
    (tmp_path / "a.csv").write_text("n,x,ts\n" + "\n".join(lines) + "\n")
    assert read_sample(find_files(tmp_path / "a.csv")).record_count == length


@pytest.mark.parametrize("ending", ["csv", "jsonl", "csv.gz", "parquet"])
def test_of_a_large_sample_the_first_records_are_read(tmp_path: Path, ending: str) -> None:
    """The latest time is that of all records."""
    for name, first in (("a", 0), ("b*[1]", 1_000)):
        numbers = range(first, first + 1_000)
        path = tmp_path / f"{name}.{ending}"
        if ending == "parquet":
            pq.write_table(pa.table({"n": numbers}), path, row_group_size=300)
            continue
        is_csv = ending.startswith("csv")
        lines = [f"{n},x" if is_csv else f'{{"n": {n}}}' for n in numbers]
        text = ("n,x\n" * is_csv + "\n".join(lines) + "\n").encode()
        path.write_bytes(gzip.compress(text) if ending.endswith("gz") else text)
    files = find_files(tmp_path)
    few = read_sample(files, 1_400)
    assert few.is_share
    assert few.columns["n"].to_pylist() == [str(n) for n in range(1_400)]
    assert few.latest_us(SampleColumn("n", "timestamp_us", few.columns["n"]), 1_990) == 1_989
    whole = read_sample(files)
    assert (whole.record_count, whole.is_share) == (2_000, False)


def test_names_of_fields_are_read_as_they_are(tmp_path: Path) -> None:
    """No name ends a query; names that differ in case, and those of DuckDB's own, stay apart."""
    names = ["a'b", 'c"d', "e/f~g", "$.h", "filename", "json", "V", "v", ""]
    (tmp_path / "a.csv").write_text(
        ",".join('"{}"'.format(name.replace('"', '""')) for name in names) + "\n1,2,3,4,5,6,7,8,9\n"
    )
    pq.write_table(pa.table({name: ["x"] for name in names[:-3]}), tmp_path / "a.parquet")
    pairs = ", ".join(f'"{name}": {n}'.replace('c"d', r"c\"d") for n, name in enumerate(names))
    (tmp_path / "a.jsonl").write_text(f"{{{pairs}}}\n")
    for ending, wanted in (("csv", names), ("jsonl", names), ("parquet", names[:-3])):
        assert [*read_sample(find_files(tmp_path / f"a.{ending}")).columns] == wanted
