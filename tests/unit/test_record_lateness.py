"""How late records are, all at once, is what each record met (rules A2 to A5)."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.pipeline_texts import FLIGHTS, load_text
from windows_pipeline.query.records.record_times import RecordTimes
from windows_pipeline.query.tables.arrival_days import LogPart

DAY = timedelta(days=1)
FIRST = date(2013, 1, 1)
START = datetime(2013, 1, 1, tzinfo=UTC)
HOUR_MS = 3_600_000
START_MS = 1_356_998_400_000
SCHEMA = pa.schema(
    [
        ("arrival_unit", pa.date32()),
        ("source_partition", pa.string()),
        ("offset", pa.int64()),
        ("batch", pa.int64()),
        ("event_time", pa.timestamp("us", "UTC")),
        ("running_max", pa.timestamp("us", "UTC")),
    ]
)


def part(day: int, partition: str, latest: int, watermark: int, batch: int | None) -> LogPart:
    """A row of the log; times are hours from the start of the first day."""
    latest_ms, watermark_ms = (START_MS + hours * HOUR_MS for hours in (latest, watermark))
    return LogPart(FIRST + day * DAY, partition, 9, latest_ms, 0, watermark_ms, batch)


@pytest.mark.parametrize("batches", [(None, None), (0, 1)])
def test_lateness_is_what_each_record_met(
    tmp_path: Path, batches: tuple[int | None, int | None]
) -> None:
    """Of two source partitions, on a day in the log, the day after it, and one that waits."""
    log = [
        part(0, "a", 20, 10, batches[0]),
        part(0, "b", 10, 10, batches[0]),
        part(1, "a", 40, 30, batches[1]),
        part(1, "b", 30, 30, batches[1]),
    ]
    times = RecordTimes(load_text(tmp_path, FLIGHTS), log, 0)
    draw = random.Random(42)
    seen = 0
    for day in (0, 1, 2):
        rows: list[dict[str, object]] = []
        for _ in range(200):
            event, ahead = draw.randrange(0, 40), draw.randrange(0, 5)
            # A micro-batch that the log lacks is not in the tables' results yet.
            batch = None if batches[0] is None else draw.randrange(3)
            moments = [START + timedelta(hours=hours) for hours in (event, event + ahead)]
            row = [FIRST + day * DAY, draw.choice("ab"), len(rows), batch, *moments]
            rows.append(dict(zip(SCHEMA.names, row, strict=True)))
        table = pa.Table.from_pylist(rows, SCHEMA)
        expected = [
            max(met.stream_ms, met.watermark_ms or met.stream_ms) - met.event_ms
            for met in times.of(table)
            if met is not None
        ]
        assert times.behind_ms(table).tolist() == expected
        seen += len(expected)
    assert seen > 200
    assert times.behind_ms(pa.Table.from_pylist([], SCHEMA)).tolist() == []
