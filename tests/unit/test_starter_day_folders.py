"""A copy into day folders holds each line once, unchanged, on its arrival day."""

from __future__ import annotations

import csv
import gzip
import io
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windows_pipeline.starter.day_folders import ArrivalDay, CopiedDays, copy_by_day
from windows_pipeline.starter.files import find_files
from windows_pipeline.starter.sample import Share, read_sample

BY_TIME = ArrivalDay("ts", "timestamp", by_line=False)
BY_LINE = ArrivalDay("ts", "timestamp", by_line=True)


def copied(source: Path, target: Path, arrival: ArrivalDay = BY_TIME) -> CopiedDays:
    return copy_by_day(find_files(source), target, target.parent, arrival)


def contents(folder: Path) -> dict[str, bytes]:
    """What the files of day folders hold, by path."""
    return {
        path.relative_to(folder).as_posix(): gzip.decompress(path.read_bytes())
        if path.suffix == ".gz"
        else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


FIELDS = st.text(st.sampled_from('ab,"\n é;'), max_size=6)
ROWS = st.lists(
    st.tuples(FIELDS, st.one_of(st.integers(0, 4), st.none()), FIELDS), min_size=1, max_size=12
)


@given(rows=ROWS, end=st.sampled_from(["\n", "\r\n"]), bom=st.booleans(), compress=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_csv_is_split_between_records(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, int | None, str]],
    end: str,
    bom: bool,  # noqa: FBT001
    compress: bool,  # noqa: FBT001
) -> None:
    folder = tmp_path_factory.mktemp("split")
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator=end)
    writer.writerow(["x", "ts", "y"])
    lines: list[tuple[int | None, str]] = []
    for x, day, y in rows:
        start = stream.tell()
        writer.writerow([x, "" if day is None else f"2026-03-{day + 1:02}T23:59:59Z", y])
        lines.append((day, stream.getvalue()[start:]))
    text = stream.getvalue().encode("utf-8-sig" if bom else "utf-8")
    source = folder / ("a.csv.gz" if compress else "a.csv")
    source.write_bytes(gzip.compress(text) if compress else text)
    first = next((day for day, _ in lines if day is not None), None)
    if first is None:
        return
    copied(source, folder / "data")
    expected: dict[int, str] = {}
    current = first
    for day, line in lines:
        current = current if day is None else day
        expected[current] = expected.get(current, f"x,ts,y{end}") + line
    assert contents(folder / "data") == {
        f"2026-03-{day + 1:02}/{source.name}": text.encode() for day, text in expected.items()
    }


def test_lines_that_arrive_in_their_order_never_go_back_a_day(tmp_path: Path) -> None:
    days = [1, 2, 1, 4, None, 3]
    lines = [
        f'{{"n": {n}, "ts": "2026-03-{day:02}"}}' if day else f'{{"n": {n}}}'
        for n, day in enumerate(days)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(["", *lines, ""]))
    landed = copied(tmp_path / "a.jsonl", tmp_path / "data", BY_LINE)
    found = {
        name[8:10]: text.decode().splitlines() for name, text in contents(landed.folder).items()
    }
    assert found == {"01": lines[:1], "02": lines[1:3], "04": lines[3:]}
    assert landed.empty == (date(2026, 3, 3),)
    assert list((landed.folder / "2026-03-03").iterdir()) == []


def test_a_time_after_tomorrow_says_no_day(tmp_path: Path) -> None:
    far = (datetime.now(UTC) + timedelta(days=800)).isoformat()
    (tmp_path / "a.csv").write_text(f"ts\n2026-03-08\n{far}\n2026-03-09\n")
    for number, arrival in enumerate((BY_TIME, BY_LINE)):
        landed = copied(tmp_path / "a.csv", tmp_path / f"data{number}", arrival)
        assert landed.days == (date(2026, 3, 8), date(2026, 3, 9))
        assert far in (landed.folder / "2026-03-08" / "a.csv").read_text()


def test_files_of_a_folder_keep_their_names(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (source / "a.csv").write_text("ts\n2026-03-08\n2026-03-09")
    (source / "b.csv").write_text("ts\n2026-03-09\n")
    (source / "_SUCCESS").touch()
    (source / "link.csv").symlink_to(source / "a.csv")
    landed = copied(source, tmp_path / "data")
    assert contents(landed.folder) == {
        "2026-03-08/a.csv": b"ts\n2026-03-08\n",
        "2026-03-09/a.csv": b"ts\n2026-03-09\n",
        "2026-03-09/b.csv": b"ts\n2026-03-09\n",
    }
    (source / "b.csv").write_text("other\n2026-03-09\n")
    with pytest.raises(ValueError, match="one header"):
        copied(source, tmp_path / "data2")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "in"]


def test_day_folders_are_copied_as_they_are(tmp_path: Path) -> None:
    for day in ("2026-03-08", "2026-03-10"):
        (tmp_path / "in" / day).mkdir(parents=True)
    (tmp_path / "in" / "2026-03-10" / "a.csv").write_text("ts\n2020-01-01\n")
    landed = copied(tmp_path / "in", tmp_path / "data")
    assert contents(landed.folder) == {"2026-03-10/a.csv": b"ts\n2020-01-01\n"}
    assert sorted(path.name for path in landed.folder.iterdir()) == [
        "2026-03-08",
        "2026-03-09",
        "2026-03-10",
    ]
    assert landed.empty == (date(2026, 3, 9),)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_parquet_rows_are_written_per_day(tmp_path: Path, unit: str) -> None:
    times = [datetime(2026, 3, 8 + n % 3, 5, 6, 7, tzinfo=UTC) for n in range(30)]
    table = pa.table({"ts": pa.array(times, pa.timestamp(unit, "UTC")), "n": range(30)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=7)
    landed = copied(tmp_path / "a.parquet", tmp_path / "data")
    for number, day in enumerate(landed.days):
        rows = pq.read_table(landed.folder / str(day) / "a.parquet", partitioning=None)
        assert rows.column("n").to_pylist() == list(range(number, 30, 3))
        assert rows.schema.field("ts").type == pa.timestamp(
            "us" if unit == "ns" else table.schema.field("ts").type.unit if unit != "s" else "ms",
            "UTC",
        )
        assert rows.column("ts").to_pylist() == times[number::3]


def test_nothing_is_overwritten_or_left_behind(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts\n2026-03-08\n")
    (tmp_path / "data").mkdir()
    with pytest.raises(ValueError, match="is not overwritten"):
        copied(tmp_path / "a.csv", tmp_path / "data")
    (tmp_path / "b.csv").write_text("ts\n1026-03-08\n2026-03-08\n")
    with pytest.raises(ValueError, match="span at most"):
        copied(tmp_path / "b.csv", tmp_path / "other")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "b.csv", "data"]


def test_a_link_does_not_lead_out_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts\n2026-03-08\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "data").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="a link leads out"):
        copy_by_day(
            find_files(tmp_path / "a.csv"),
            tmp_path / "project" / "data" / "p",
            tmp_path / "project",
            BY_TIME,
        )
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("length", [100, 20_000])  # the csv module refuses long fields
def test_a_quote_that_nothing_closes_costs_only_its_own_line(tmp_path: Path, length: int) -> None:
    lines = [f"{n},x{n},2026-03-08" for n in range(length)]
    lines[10] = '10,"x10,2026-03-08'
    text = "n,x,ts\n" + "\n".join(lines) + "\n"
    (tmp_path / "a.csv").write_text(text)
    sample = read_sample(find_files(tmp_path / "a.csv"))
    assert (sample.record_count, sample.broken) == (length - 1, 1)
    landed = copied(tmp_path / "a.csv", tmp_path / "data")
    assert contents(landed.folder) == {"2026-03-08/a.csv": text.encode()}


@pytest.mark.parametrize("ending", ["csv", "jsonl", "csv.gz"])
def test_of_a_large_file_the_first_and_last_records_are_read(tmp_path: Path, ending: str) -> None:
    is_csv = ending.startswith("csv")
    lines = [f"{n},x" if is_csv else f'{{"n": {n}}}' for n in range(20_000)]
    text = ("n,x\n" if is_csv else "") + "\n".join(lines) + "\n"
    data = gzip.compress(text.encode()) if ending.endswith("gz") else text.encode()
    (tmp_path / f"a.{ending}").write_bytes(data)
    files = find_files(tmp_path / f"a.{ending}")
    few = read_sample(files, Share(records=100, text_bytes=1 << 30))
    assert few.is_share
    assert few.columns["n"].to_pylist() == [str(n) for n in (*range(50), *range(19_950, 20_000))]
    small = read_sample(files, Share(records=10**6, text_bytes=20_000))
    numbers = [int(text) for text in small.columns["n"].to_pylist()]
    assert small.is_share
    assert 100 < len(numbers) < 10_000
    assert numbers == sorted(numbers)
    assert (numbers[0], numbers[-1] == 19_999) == (0, not ending.endswith("gz"))
    whole = read_sample(files)
    assert (whole.record_count, whole.is_share) == (20_000, False)


def test_of_large_parquet_the_first_and_last_rows_are_read(tmp_path: Path) -> None:
    for name, first in (("a", 0), ("b", 1_000)):
        table = pa.table({"n": range(first, first + 1_000)})
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=300)
    files = find_files(tmp_path)
    few = read_sample(files, Share(records=1_400))
    assert few.is_share
    numbers = [int(text) for text in few.columns["n"].to_pylist()]
    assert numbers == [*range(700), *range(1_300, 2_000)]
    assert read_sample(files).record_count == 2_000
