"""Tables of a drawn case that delta-rs writes without Spark, with the oracle's results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from tests.support.oracle.windows import Record, keyed_windows, late_records
from tests.support.strategies import ArrivalsOf
from tests.support.written_tables import Row, write_rows
from windows_pipeline.config import Pipeline
from windows_pipeline.storage.catalog import specs_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MS = timedelta(milliseconds=1)
FIRST_DAY = date(2013, 1, 1)
"""The first arrival day of the flights."""


def write_case(pipeline: Pipeline, warehouse: str, case: ArrivalsOf[Any]) -> None:
    """Writes the records of a case, the log, and its windows `hourly`, by days."""
    write_records(pipeline, warehouse, case.records, case.arrival_units)
    tables = specs_of(pipeline, warehouse).of("hourly")
    rows = keyed_windows(case.records, case.arrival_units, case.definition, {})
    keyed: list[Row] = [
        {
            "arrival_unit": FIRST_DAY + timedelta(days=row.arrival_unit),
            "key": row.key,
            "window_start": EPOCH + row.start * MS,
            "window_end": EPOCH + row.end * MS,
            "record_count": row.record_count,
            "closed": row.closed,
        }
        for row in rows
    ]
    write_rows(tables.keyed_windows, keyed)
    write_rows(
        tables.final_windows,
        [{name: row[name] for name in row if name != "closed"} for row in keyed if row["closed"]],
    )
    by_id = {record.id: record for record in case.records}
    late = late_records(case.records, case.arrival_units, case.definition)
    write_rows(
        tables.late_records,
        [
            {
                "arrival_unit": FIRST_DAY + timedelta(days=row.arrival_unit),
                "record_arrival_unit": FIRST_DAY + timedelta(days=by_id[row.record].arrival_unit),
                "source_partition": str(by_id[row.record].source_partition),
                "offset": by_id[row.record].offset,
                "key": by_id[row.record].key,
                "event_time": EPOCH + by_id[row.record].event_time * MS,
                "reason": row.reason,
            }
            for row in late
        ],
    )
    days = [
        {"arrival_unit": FIRST_DAY + timedelta(days=arrival_unit)}
        for arrival_unit in range(case.arrival_units)
    ]
    write_rows(specs_of(pipeline, warehouse).of("hourly").computed_days, days)


def write_records(
    pipeline: Pipeline, warehouse: str, records: Sequence[Record], arrival_units: int
) -> None:
    """Writes accepted records and the log, by days; `carrier` and `dep_delay` if they have them."""
    source = specs_of(pipeline, warehouse)
    raw, log = [], []
    for arrival_unit in range(arrival_units):
        day = FIRST_DAY + timedelta(days=arrival_unit)
        latest: dict[int, int] = {}
        counts: dict[int, int] = defaultdict(int)
        for record in (each for each in records if each.arrival_unit == arrival_unit):
            partition = record.source_partition
            latest[partition] = max(latest.get(partition, record.event_time), record.event_time)
            counts[partition] += 1
            raw.append(
                {
                    "arrival_unit": day,
                    "source_partition": str(partition),
                    "offset": record.offset,
                    "key": record.key,
                    "event_time": EPOCH + record.event_time * MS,
                    "running_max": EPOCH + latest[partition] * MS,
                    **{name: record.values.get(name) for name in ("carrier", "dep_delay")},
                }
            )
        part = {"arrival_unit": day, "arrival_unit_rejected": 0}
        log += [
            {
                **part,
                "source_partition": str(of),
                "rows": counts[of],
                "max_event_time": EPOCH + time * MS,
            }
            for of, time in latest.items()
        ] or [{**part, "rows": 0}]
    write_rows(source.raw_events, raw, row_group_rows=2)
    write_rows(source.arrival_log, log)
