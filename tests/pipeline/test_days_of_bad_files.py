"""Rule A8: a bad file makes its day, or its micro-batch, incomplete, and nothing else."""

from __future__ import annotations

import gzip
import io
import json
import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.small_project import HEADER, SmallProject
from tests.support.stored_rows import named_rows
from windows_pipeline.arrival.log import ArrivalLog
from windows_pipeline.checks.run import Batch
from windows_pipeline.jobs import RawEventsJob
from windows_pipeline.jobs.job import Rows, run_job
from windows_pipeline.sources.bad_files import BadFileError

MOST = 200
"""A `max_record_bytes` below some of the tests' records."""
NAME = {"csv": "b.csv.gz", "jsonl": "b.jsonl.gz", "parquet": "b.parquet"}


def records(kind: str, first: int, count: int = 3) -> bytes:
    """Records of distinct times from `first` ms on, in the form of a kind of file."""
    times = range(first, first + count)
    if kind == "parquet":
        words = [random.Random(time).randbytes(20).hex() for time in times]
        columns = {"k": ["a"] * count, "t": list(times), "v": [1.0] * count, "word": words}
        sink = io.BytesIO()
        pq.write_table(pa.table(columns), sink, compression="none", use_dictionary=False)
        return sink.getvalue()
    if kind == "csv":
        return (HEADER + "".join(f"a,{time},1\n" for time in times)).encode()
    return "".join(json.dumps({"k": "a", "t": time, "v": 1.0}) + "\n" for time in times).encode()


def bad_and_mended(kind: str) -> tuple[bytes, bytes]:
    """A file that only the task that reads it finds bad, and the file as it should be."""
    whole = records(kind, 100_000, 5_000)
    if kind == "parquet":
        at = len(whole) // 4
        return whole[:at] + b"\xff" * (at * 2) + whole[at * 3 :], whole
    packed = gzip.compress(whole)
    return packed[: len(packed) // 2], packed


def days_of(project: SmallProject, name: str) -> list[int]:
    tables = project.tables_by_name
    return sorted({row["arrival_unit"].day for row in named_rows(tables[name])})


def test_a_bad_file_keeps_back_its_day_alone(project: SmallProject) -> None:
    """Days before are computed, days after wait as for a missing day, until the file is mended.

    A day that was ingested before stays as it was. Of bad files in a stream, and of those that are
    left out, other tests have the other forms.
    """
    bad, mended = bad_and_mended("parquet")
    named = f"2026-11-02/{NAME['parquet']}: "
    project.declare(format="parquet")
    project.land(1, records("parquet", 0), "a")
    project.land(2, records("parquet", 90_000), "a")
    file = project.land(2, bad, NAME["parquet"])
    project.land(3, records("parquet", 200_000), "a")
    status, said = project.call("run", "p")
    assert (status, named in said, "blocked by a missing day" in said) == (3, True, True), said
    assert days_of(project, "arrival_log") == days_of(project, "raw_events") == [1, 3]
    assert days_of(project, "keyed_windows") == [1]
    file.write_bytes(mended)
    status, said = project.call("run", "p")
    assert status == 0, said
    assert days_of(project, "keyed_windows") == [1, 2, 3]
    assert len(project.raw("key")) == 9 + 5_000
    file.write_bytes(bad)
    status, said = project.call("run", "p", "--from", "2026-11-02", "--to", "2026-11-02")
    assert (status, named in said) == (3, True), said
    assert "2026-11-02: not ingested again, as a file is bad; the day stays as it was" in said
    assert not any(text in said for text in ("missing day", "to ingest it again", "accepted"))
    assert len(project.raw("key")) == 9 + 5_000


def test_bad_files_of_several_days_are_named_together(project: SmallProject) -> None:
    """A file without a byte whose name says no compression is right, and has no records."""
    project.declare(max_record_bytes=MOST)
    project.land(1, records("csv", 0))
    project.land(1, "", "b.csv")
    project.land(2, records("csv", 90_000))
    cut = project.land(2, "", "b.csv.gz")
    others = [
        project.land(3, "k,t\na,1\n"),
        project.land(4, f"{HEADER}{'a' * MOST},1,1\n"),
        project.land(5, records("csv", 100), "a.csv.zst"),
        project.land(6, f"k,t,v,{'x' * MOST}\n"),
        project.land(7, f'{HEADER}a,0,1\n"b,1,1\n' + "c,2,1\n" * MOST),
        project.land(8, "k;t;v\na;0;1,5\n"),
    ]
    status, said = project.call("run", "p")
    assert status == 3, said
    for named in (
        "2026-11-02/b.csv.gz: has no byte, and a file whose name ends with .gz",
        "2026-11-03/a.csv: its header ['k', 't'] has no column 'v'",
        "2026-11-04/a.csv: a record must have at most 200 bytes",
        "2026-11-05/a.csv.zst: a file whose name ends with .zst must begin",
        "2026-11-06/a.csv: a record must have at most 200 bytes",
        "2026-11-07/a.csv: a record must have at most 200 bytes",
        "opens in line 3 ",
        "2026-11-08/a.csv: its header ['k;t;v'] has no column 'k'",
        "write 'delimiter: \";\"' in source",
    ):
        assert named in said, said
    assert days_of(project, "arrival_log") == days_of(project, "keyed_windows") == [1]
    for file in others:
        shutil.rmtree(file.parent)
    cut.write_bytes(gzip.compress(records("csv", 100_000)))
    status, said = project.call("run", "p")
    assert status == 0, said
    assert len(project.raw("key")) == 9


def test_a_bad_file_stops_a_stream_before_its_micro_batch(project: SmallProject) -> None:
    """Until the file is mended, or is not there any more."""
    bad, mended = bad_and_mended("jsonl")
    project.declare(format="jsonl", stream=True)
    project.land(1, records("jsonl", 0), "a")
    assert project.call("stream", "p")[0] == 0
    for day, first in ((2, 90_000), (3, 200_000)):
        project.land(day, records("jsonl", first), "a")
        file = project.land(day, bad, NAME["jsonl"])
        for _ in range(4 - day):
            status, said = project.call("stream", "p")
            assert (status, f"2026-11-0{day}/{NAME['jsonl']}: " in said) == (3, True), said
            assert "p: the files' micro-batch is not ingested" in said
            assert "then: windows-pipeline stream p" in said
            before = list(range(1, day))
            assert days_of(project, "arrival_log") == days_of(project, "raw_events") == before
        if day == 2:
            file.write_bytes(mended)
        else:
            file.unlink()
        status, said = project.call("stream", "p")
        assert status == 0, said
        assert len(project.raw("key")) == 3 * day + 5_000


def test_a_stream_stops_at_each_file_that_spark_passes_over(project: SmallProject) -> None:
    """It does not list some names, and a compressed file without a byte has no record for it.

    Of a file that it lists, the stream finds out as it reads it.
    """
    project.declare(stream=True)
    folder = project.land(1, records("csv", 0)).parent
    latin = Path(f"{folder}/caf\udce9.csv")
    latin.write_bytes(records("csv", 10))
    colon = project.land(1, records("csv", 20), "a:b.csv")
    empty = project.land(1, b"", "b.csv.gz")
    other = project.land(1, records("csv", 100), "x.csv.bz2")
    names = ("a:b.csv: its name ", "caf\\xe9.csv: its name ", "b.csv.gz: has no byte")
    bad = [f"2026-11-01/{words}" for words in (*names, "x.csv.bz2: a file whose name ends with")]
    for found in (
        [True, True, True, False],
        [False, False, True, False],
        [False, False, False, True],
    ):
        status, said = project.call("stream", "p")
        assert (status, [words in said for words in bad]) == (3, found), said
        if found[0]:
            colon.rename(folder / "c.csv")
            latin.rename(folder / "d.csv")
        else:
            (empty if found[2] else other).unlink()
    project.land(1, gzip.compress(records("csv", 30)), "e.csv.gz")
    assert project.call("stream", "p")[0] == 0
    assert len(project.raw("key")) == 12


@dataclass(frozen=True)
class JobWithinChanges(RawEventsJob):
    """The job of a day whose file changes after its records are read, before they are counted."""

    change: Callable[[], object] = field(default=lambda: None, kw_only=True)

    def check_batches(
        self,
        spark: SparkSession,
        days: Sequence[date],
        rows: Rows,
        log: ArrivalLog,
    ) -> list[Batch]:
        self.change()
        return super().check_batches(spark, days, rows, log)


def replaced(file: Path, more: bytes) -> None:
    file.with_name(".new").write_bytes(more)
    file.with_name(".new").rename(file)


@pytest.mark.parametrize(
    ("kind", "change", "how"),
    [
        ("jsonl", replaced, "was changed while it was read"),
        ("jsonl", lambda file, more: file.write_bytes(file.read_bytes() + more), "was changed"),
        ("jsonl", lambda file, _: file.unlink(), "was deleted or renamed while it was read"),
        ("csv", lambda file, _: file.unlink(), "was deleted or renamed while it was read"),
        ("parquet", replaced, "was changed while it was read"),
        ("jsonl", lambda file, more: file.with_name("b").write_bytes(more), None),
    ],
    ids=["replaced", "grown", "deleted", "csv", "parquet", "another"],
)
def test_a_file_that_changes_while_its_day_is_read_is_bad(
    project: SmallProject,
    spark: SparkSession,
    kind: str,
    change: Callable[[Path, bytes], object],
    how: str | None,
) -> None:
    """Not so a file that comes meanwhile: a later run names it."""
    project.declare(format=kind)
    file = project.land(1, records(kind, 0), "a")
    more = records(kind, 10, 4)
    tables = project.source
    job = JobWithinChanges(tables, project.settings, change=lambda: change(file, more))
    day = date(2026, 11, 1)
    if how is None:
        assert run_job(job, spark, [day]).published
        status, said = project.call("run", "p")
        assert (status, "b came later" in said) == (1, True), said
    else:
        with pytest.raises(BadFileError, match=f"^2026-11-01/a: {how}"):
            run_job(job, spark, [day])
    assert days_of(project, "arrival_log") == ([1] if how is None else [])


def test_a_rebuild_empties_no_table_while_a_file_is_bad(project: SmallProject) -> None:
    project.declare()
    file = project.land(1, records("csv", 0))
    assert project.call("run", "p")[0] == 0
    before = project.all_rows()
    file.write_text("k,t\n")
    status, said = project.call("rebuild", "p", "--from", "raw_events")
    assert (status, "2026-11-01/a.csv: its header" in said) == (3, True), said
    assert project.all_rows() == before
