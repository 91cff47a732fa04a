"""What `new` writes runs: every record of a sample is accepted, and its example rule alerts."""

from __future__ import annotations

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
from windows_pipeline.storage.tables import source_tables, window_tables


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
    assert status == 0, said
    status, said = call(capfd, monkeypatch, "run", "p")
    assert (status, f"p: {count:,} records accepted, 0 rejected" in said) == (0, True), said
    pipeline = load_pipeline(folder / "pipelines" / "p.yaml")
    warehouse = load_settings(folder).warehouse
    assert len(named_rows(source_tables(pipeline, warehouse).raw_events)) == count
    (name,) = pipeline.windows
    alerts = named_rows(window_tables(pipeline, name, warehouse).alerts)
    assert {alert["rule"] for alert in alerts} == {rule}
