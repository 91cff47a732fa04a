"""Rule A8: with `on_bad_file: skip` a day is published without its bad files, which are listed."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import zstandard
from pyspark.sql import SparkSession

from tests.pipeline.test_days_of_bad_files import NAME, bad_and_mended, days_of, records
from tests.support.small_project import HEADER, SmallProject
from tests.support.stored_rows import named_rows, stored_rows
from tests.support.streams import run_until_killed

GRACED = {
    "kind": "sliding",
    "time_difference": "10 ms",
    "grace": "100 s",
    "aggregates": {"s": "sum(v)"},
}


def quarantined(project: SmallProject) -> list[tuple[int, str]]:
    """The arrival day and the file of each row of quarantined_files."""
    table = project.source.quarantined_files
    return sorted((row["arrival_unit"].day, row["file"]) for row in named_rows(table))


def test_a_day_is_published_without_its_bad_file_until_it_is_mended(project: SmallProject) -> None:
    """Mended, the file enters when its day is ingested again, and final windows by a correction.

    Checks and runs name the file before, and a rebuild from the files gives the same rows. Of files
    that a stream leaves out other tests have the other forms.
    """
    bad, mended = bad_and_mended("jsonl")
    bad_name = f"2026-11-02/{NAME['jsonl']}"
    project.declare(format="jsonl", on_bad_file="skip")
    project.land(1, records("jsonl", 0), "a")
    project.land(2, records("jsonl", 90_000), "a")
    file = project.land(2, bad, NAME["jsonl"])
    project.land(3, records("jsonl", 200_000), "a")
    again = ("run", "p", "--from", "2026-11-02", "--to", "2026-11-02")
    status, said = project.call("run", "p")
    assert (status, f"{bad_name}: left out: " in said) == (0, True), said
    assert f"windows-pipeline {' '.join(again)}" in said
    assert quarantined(project) == [(2, bad_name)]
    assert days_of(project, "keyed_windows") == [1, 2, 3]
    assert len(project.raw("key")) == 9
    status, said = project.call("check", "p")
    assert (status, f"{bad_name}: left out: " in said) == (0, True), said
    assert "no_file_quarantined" in said
    file.write_bytes(mended)
    status, said = project.call("run", "p")
    assert (status, "1 file changed since" in said) == (1, True), said
    status, said = project.call(*again)
    assert (status, "windows-pipeline correct p" in said) == (1, True), said
    assert (quarantined(project), "left out" in said) == ([], False), said
    assert len(project.raw("key")) == 9 + 5_000
    from_day = ("--windows", "w", "--from", "2026-11-02")
    status, said = project.call("correct", "p", *from_day, "--cause", "a mended file")
    assert status == 0, said
    corrections = named_rows(project.windows.corrections)
    # Its records advance the watermark earlier, so windows of other files become final in another
    # arrival unit, too.
    assert {row["cause"] for row in corrections} == {"a mended file"}
    assert days_of(project, "keyed_windows") == [1, 2, 3]
    mended_later = project.all_rows()
    status, said = project.call("rebuild", "p", "--from", "raw_events")
    assert status == 0, said
    assert project.all_rows() == mended_later


def test_bad_files_of_every_sort_are_left_out_together(project: SmallProject) -> None:
    project.declare(max_record_bytes=200, on_bad_file="skip")
    project.land(1, records("csv", 0))
    project.land(2, "k,t\na,1\n")
    project.land(3, f"{HEADER}{'a' * 200},1,1\n")
    project.land(4, records("csv", 100), "a.csv.zst")
    folder = project.land(4, records("csv", 200)).parent
    Path(f"{folder}/caf\udce9.csv").write_bytes(records("csv", 300))
    (folder / "a:b.csv").write_bytes(records("csv", 400))
    status, said = project.call("run", "p")
    assert status == 0, said
    files = ["2026-11-02/a.csv", "2026-11-03/a.csv"]
    files += ["2026-11-04/a.csv.zst", "2026-11-04/a:b.csv", "2026-11-04/caf\\xe9.csv"]
    assert quarantined(project) == [(int(file[8:10]), file) for file in files]
    assert [row["event_time"].microsecond for row in project.raw("event_time")] == [
        *(0, 1_000, 2_000),
        *(200_000, 201_000, 202_000),
    ]
    assert days_of(project, "keyed_windows") == [1, 4]
    # The pipeline stops at bad files from now on, and the day is ingested again.
    (folder / "a:b.csv").unlink()
    for name in ("a.csv.zst", "caf\udce9.csv"):
        Path(f"{folder}/{name}").unlink()
    project.declare(max_record_bytes=200)
    assert project.call("run", "p", "--from", "2026-11-04", "--to", "2026-11-04")[0] == 0
    project.declare(max_record_bytes=200, on_bad_file="skip")
    assert quarantined(project) == [(int(file[8:10]), file) for file in files[:2]]


def test_a_text_file_is_read_to_its_very_end_or_left_out(project: SmallProject) -> None:
    """Else the records behind a cut would be missing without a word."""
    project.declare(format="jsonl", on_bad_file="skip", stream=True)
    text, more = records("jsonl", 0), records("jsonl", 10)
    project.land(1, zstandard.compress(text) + zstandard.compress(more), "a.zst")
    bad = {
        "cut.zst": zstandard.compress(text) + zstandard.compress(more)[:-2],
        "cut.bz2": bz2.compress(text) + bz2.compress(more)[:-9],
        "more.gz": gzip.compress(text) + b"garbage!",
        "long.zst": zstandard.compress(text + b"a" * 300_000_000),
    }
    for name, data in bad.items():
        project.land(1, data, name)
    status, said = project.call("stream", "p")
    assert status == 0, said
    assert quarantined(project) == [(1, f"2026-11-01/{name}") for name in sorted(bad)]
    assert "must have at most 1,048,576 bytes (source.max_record_bytes), but the" in said
    assert len(project.raw("key")) == 6
    name_once = "; a stream reads no name twice, so land the mended file under another name"
    assert said.count(name_once) == len(bad)


def test_a_stream_goes_on_without_a_bad_file(project: SmallProject) -> None:
    """Mended, the file is a new arrival; checks name it, and a correction finds none missing."""
    bad, mended = bad_and_mended("parquet")
    left_out = f"2026-11-02/{NAME['parquet']}: left out: "
    project.declare(GRACED, format="parquet", stream=True, on_bad_file="skip")
    project.land(1, records("parquet", 0), "a")
    project.land(2, records("parquet", 90_000), "a")
    project.land(2, bad, NAME["parquet"])
    status, said = project.call("stream", "p")
    assert (status, left_out in said) == (0, True), said
    assert quarantined(project) == [(2, f"2026-11-02/{NAME['parquet']}")]
    assert len(project.raw("key")) == 6
    project.land(3, mended, f"again-{NAME['parquet']}")
    status, said = project.call("stream", "p")
    assert (status, "left out" in said) == (0, False), said
    assert len(project.raw("key")) == 6 + 5_000
    status, said = project.call("check", "p")
    assert (status, left_out in said) == (0, True), said
    less = GRACED | {"grace": "50 s"}
    project.declare(less, format="parquet", stream=True, on_bad_file="skip")
    days = ("--from", "2026-11-01")
    status, said = project.call("correct", "p", "--windows", "w", *days, "--cause", "less grace")
    assert status == 0, said


def test_a_killed_micro_batch_leaves_out_the_same_files(
    project: SmallProject, spark: SparkSession
) -> None:
    """Killed before its log rows and after: what became of the file meanwhile changes nothing."""
    bad, mended = bad_and_mended("csv")
    project.declare(stream=True, on_bad_file="skip")
    project.land(1, records("csv", 0), "a")
    file = project.land(1, bad, NAME["csv"])
    for last, accepted in (("quarantined_files", 0), ("arrival_log", 3)):
        run_until_killed(spark, project.source, project.settings, last, "after")
        assert len(project.raw("key")) == accepted
        file.write_bytes(mended)
    status, said = project.call("stream", "p")
    assert status == 0, said
    assert quarantined(project) == [(1, f"2026-11-01/{NAME['csv']}")]
    assert len(project.raw("key")) == 3


def test_a_file_that_turns_bad_within_a_micro_batch_stops_it(
    project: SmallProject, spark: SparkSession
) -> None:
    """Its records are in raw_events already, so the file can't be left out any more."""
    bad, mended = bad_and_mended("csv")
    project.declare(stream=True, on_bad_file="skip")
    file = project.land(1, mended, NAME["csv"])
    run_until_killed(spark, project.source, project.settings, "raw_events", "after")
    assert stored_rows(project.source.quarantined_files) == []
    assert len(project.raw("key")) == 5_000
    file.write_bytes(bad)
    status, said = project.call("stream", "p")
    assert (status, f"2026-11-01/{NAME['csv']}: " in said) == (3, True), said
    file.write_bytes(mended)
    assert project.call("stream", "p")[0] == 0
    assert len(project.raw("key")) == 5_000
    assert quarantined(project) == []
