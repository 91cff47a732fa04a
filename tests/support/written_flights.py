"""Two days of the flights as delta-rs writes them without Spark, for what explains records."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from tests.support.pipeline_texts import FLIGHTS, changed, load_text
from tests.support.written_tables import Row, write_rows
from windows_pipeline.config import Pipeline
from windows_pipeline.query import WindowStore
from windows_pipeline.storage.catalog import PipelineTables, TableSpec, WindowTables, specs_of

NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
FILTERED = changed("    grace: 6 hours", "    where: dep_delay > 5\n    grace: 6 hours")
OWN_KEY = changed("    grace: 6 hours", "    key: [carrier, origin]\n    grace: 6 hours")


class Flights(NamedTuple):
    """A pipeline and its warehouse."""

    pipeline: Pipeline
    warehouse: str

    @property
    def source(self) -> PipelineTables[TableSpec]:
        return specs_of(self.pipeline, self.warehouse)

    @property
    def windows(self) -> WindowTables[TableSpec]:
        return specs_of(self.pipeline, self.warehouse).of("hourly")

    @property
    def store(self) -> WindowStore:
        return WindowStore(self.pipeline, "hourly", self.warehouse)


def flights(
    folder: Path, text: str = FLIGHTS, computed: int = 2, *, with_windows: bool = True
) -> Flights:
    """A day with flights at noon, 12:30 and 12:15; the next day closes their windows.

    Args:
        folder: The folder of the pipeline's file and of the tables.
        text: The pipeline.
        computed: How many of the days have their windows computed.
        with_windows: Whether windows of noon's flight are among the results.
    """
    pipeline = load_text(folder, text)
    warehouse = str(folder / "warehouse")
    source = specs_of(pipeline, warehouse)
    tables = specs_of(pipeline, warehouse).of("hourly")
    flown = [(1, 0, "JFK", 0, 5.0), (1, 1, "JFK", 30, 30.0), (1, 2, "LGA", 15, 1.0)]
    raw, latest = [], NOON
    for day, offset, origin, minute, delay in [*flown, (2, 0, "JFK", 1_440, 9.0)]:
        latest = max(latest, NOON + minute * MINUTE)
        raw.append(
            {
                "arrival_unit": date(2013, 1, day),
                "source_partition": "0",
                "offset": offset,
                "key": origin,
                "event_time": NOON + minute * MINUTE,
                "running_max": latest,
                "carrier": "UA",
                "dep_delay": delay,
            }
        )
    write_rows(source.raw_events, raw)
    parts = {date(2013, 1, 1): NOON + 30 * MINUTE, date(2013, 1, 2): NOON + 1_440 * MINUTE}
    common = {"source_partition": "0", "rows": 1, "arrival_unit_rejected": 0}
    write_rows(
        source.arrival_log,
        [{**common, "arrival_unit": day, "max_event_time": at} for day, at in parts.items()],
    )
    write_rows(
        specs_of(pipeline, warehouse).of("hourly").computed_days,
        [{"arrival_unit": day} for day in list(parts)[:computed]],
    )
    write_rows(tables.final_windows, [])
    write_rows(tables.late_records, [])
    starts = (-60, -30, 0) if with_windows else ()
    write_rows(tables.keyed_windows, [window(text, start) for start in starts])
    return Flights(pipeline, warehouse)


def window(text: str, minute: int) -> Row:
    """A window of JFK that starts some minutes after noon."""
    key = {"carrier": "UA", "origin": "JFK"} if text == OWN_KEY else "JFK"
    start = NOON + minute * MINUTE
    return {
        "arrival_unit": date(2013, 1, 2),
        "key": key,
        "window_start": start,
        "window_end": start + 60 * MINUTE,
        "record_count": 2,
        "closed": True,
    }
