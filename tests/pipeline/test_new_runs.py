"""What `new` writes runs: every record of a sample is accepted, and its example rule alerts."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
import yaml

from tests.support.command_line import call
from tests.support.samples import csv_text, heartbeats, payments
from tests.support.stored_rows import named_rows
from windows_pipeline.config import load_pipeline
from windows_pipeline.settings import Settings, load_settings
from windows_pipeline.storage.tables import tables_of


@pytest.fixture
def folder(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project without pipelines, the working directory."""
    written = settings.model_dump(mode="json")
    written |= {"warehouse": "warehouse", "landing": ".", "pipelines": "pipelines"}
    (tmp_path / "settings.yaml").write_text(yaml.safe_dump(written))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("sample", "rule"),
    [
        ("payments.csv", "high_amount"),
        ("payments.parquet", "high_amount"),
        ("beats.jsonl", "silent"),
    ],
)
def test_a_sample_leads_to_alerts(
    folder: Path,
    sample: str,
    rule: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Windows, end of lines and byte order mark of the sample are such as spreadsheets write."""
    if sample.endswith("jsonl"):
        records = heartbeats(1)
        (folder / sample).write_text(records)
        count = records.count("\n")
    else:
        rows = payments(600)
        count = len(rows)
        text = csv_text(rows, end="\r\n").encode("utf-8-sig")
        (folder / "payments.csv").write_bytes(text)
        if sample.endswith("parquet"):
            table = pa_csv.read_csv(folder / "payments.csv")
            position = table.column_names.index("paid_at")
            times = table.column("paid_at").cast(pa.timestamp("ns", "UTC"))
            pq.write_table(table.set_column(position, "paid_at", times), folder / sample)
    status, said = call(capfd, monkeypatch, "new", "p", "--from", sample, "--yes")
    assert (status, f"a run accepts {count:,} of {count:,} records" in said) == (0, True), said
    status, said = call(capfd, monkeypatch, "run", "p")
    assert (status, f"p: {count:,} records accepted, 0 rejected" in said) == (0, True), said
    pipeline = load_pipeline(folder / "pipelines" / "p.yaml")
    warehouse = load_settings(folder).warehouse
    assert len(named_rows(tables_of(pipeline, warehouse).raw_events)) == count
    (name,) = pipeline.windows
    alerts = named_rows(tables_of(pipeline, warehouse).of(name).alerts)
    assert {alert["rule"] for alert in alerts} == {rule}


def test_what_the_reader_of_a_run_rejects_is_shown(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A type that it refuses becomes text: here times that lack seconds before their offset."""
    rows = [
        (
            *row[1:4],
            f"{row[3][:16]}Z",
            "24.10.2026",
            "1,5",
            "03/04/2026",
            "Zo\xeb" if n % 2 else "Zoe",
        )
        for n, row in enumerate(payments(400))
    ]
    header = ("card", "amount", "paid_at", "seen", "day", "rate", "when", "paid by")
    (folder / "a.csv").write_bytes(csv_text(rows, header).encode("latin-1"))
    status, said = call(capfd, monkeypatch, "new", "p", "--from", "a.csv", "--yes")
    assert status == 0, said
    for words in (
        "when: looks like a time, and its values fit dd/MM/yyyy as well as MM/dd/yyyy: take a sam",
        "left out: 'paid by' is not a column name",
        "a run accepts 200 of 400 records of the sample",
        "seen is text, as a run reads no other type: 200 records (wrong_type: seen), such as ",
        "rejected: 200 records (malformed), such as ",
        "name the encoding in the pipeline's source, such as 'encoding: latin-1'",
    ):
        assert words in said
    declared = {"card": "string", "amount": "decimal(18,2)", "paid_at": "timestamp"}
    declared |= dict.fromkeys(("seen", "when"), "string")
    source = load_pipeline(folder / "pipelines" / "p.yaml").source
    assert {name: source.columns[name] for name in declared} == declared
    forms = {
        name: column.model_dump(exclude_none=True) for name, column in source.long_forms.items()
    }
    assert forms == {
        "day": {"type": "date", "format": "dd.MM.yyyy"},
        "rate": {"type": "double", "decimal": ","},
    }


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a.csv.gz", "a.csv.gz: "),
        ("a.parquet", "a.parquet: has a column that Spark can't read"),
        ("a.csv", "a run must accept some record, but rejects all 20"),
    ],
)
def test_a_sample_that_no_run_reads_leaves_nothing(
    folder: Path,
    name: str,
    words: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Damaged in the middle; of a type that Spark cannot read; or of times in a form of its own."""
    if name == "a.parquet":
        rows = payments(40)
        table = pa.table({"card": [row[1] for row in rows], "ts": [row[3] for row in rows]})
        pq.write_table(table.append_column("v", pa.nulls(40, pa.float16())), folder / name)
    elif name == "a.csv":
        lines = [f"k{n % 3},2026-03-08T10:{n:02}Z" for n in range(20)]
        (folder / name).write_text("\n".join(["card,ts", *lines]))
    else:
        data = bytearray(gzip.compress(csv_text(payments(1_000)).encode()))
        data[2_000:2_100] = bytes(100)
        (folder / name).write_bytes(data)
    before = sorted(folder.rglob("*"))
    status, said = call(capfd, monkeypatch, "new", "p", "--from", name, "--yes")
    assert status in {2, 3}
    assert words in said
    assert "Traceback" not in said
    left = [path for path in folder.rglob("*") if path.is_file() and ".windows" not in str(path)]
    assert {path for path in left if path.suffix != ".log"} <= set(before)
