"""What `stream` prints of a micro-batch."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from tests.support.pipeline_texts import FLIGHTS, changed, load_text
from windows_pipeline.cli.terminal.printed import PrintedBatches
from windows_pipeline.streaming.micro_batch import BatchResult


def of_day(day: int, *without_value: str) -> BatchResult:
    """A micro-batch of a day, in which these columns have no value."""
    arrival_units = [date(2013, 1, day)]
    return BatchResult(day, arrival_units, 5, 0, 0, 0, {}, {}, {}, list(without_value), [], [], 0)


def test_a_column_that_begins_later_is_not_missed_before(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Rule A6: it is null on earlier arrival days, whatever records hold."""
    long_form = "dest: {type: string, since: 2013-01-03}"
    batches = PrintedBatches(load_text(tmp_path, changed("dest: string", long_form)))
    batches.add(of_day(2, "dest", "flight"))
    out = capfd.readouterr().out
    assert "'flight'" in out
    assert "'dest'" not in out
    batches.add(of_day(3, "dest", "flight"))
    out = capfd.readouterr().out
    assert "no record of this run has a value in column 'dest' so far" in out
    assert "'flight'" not in out


def test_local_times_that_occur_twice_are_counted(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    batches = PrintedBatches(load_text(tmp_path, FLIGHTS))
    batches.add(of_day(2)._replace(ambiguous=4_800))
    batches.add(of_day(3))
    err = capfd.readouterr().err
    assert err.count("warning") == 1
    assert "4,800 records with a local time that occurs twice" in " ".join(err.split())


@pytest.mark.parametrize(
    ("accepted", "rejected", "late", "beyond"),
    [(6, 0, 46, []), (99, 0, 60, []), (100, 0, 60, ["late"]), (9, 60, 0, []), (0, 3, 0, ["rej"])],
)
def test_shares_of_few_records_exceed_no_limit(
    tmp_path: Path, accepted: int, rejected: int, late: int, beyond: list[str]
) -> None:
    """As the checks have it, a run of rejected records alone is wrong, however few they are."""
    batches = PrintedBatches(load_text(tmp_path, FLIGHTS))
    late_in = {"hourly": late}
    batches.add(of_day(2)._replace(accepted=accepted, rejected=rejected, late=late_in))
    found = [text.partition(" records are ")[2] for text in batches.beyond_limits]
    assert [text[: len(start)] for text, start in zip(found, beyond, strict=True)] == beyond
