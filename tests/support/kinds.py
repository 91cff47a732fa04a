"""A pipeline of every kind of window, on tiny records of three arrival units, for tests."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import NamedTuple

from pyspark.sql import SparkSession

from tests.support.oracle.expressions import Computed, call_of
from tests.support.oracle.firings import Policy
from tests.support.oracle.windows import (
    Definition,
    ForwardDefinition,
    Record,
    SessionDefinition,
    SlidingDefinition,
    TimeDefinition,
)
from tests.support.pipelines import settings_in
from tests.support.spark_cases import EPOCH, texts
from tests.support.stored_rows import stored_rows
from windows_pipeline.config import Pipeline, load_pipeline
from windows_pipeline.jobs import Job, RawEventsJob
from windows_pipeline.jobs.days.chain import window_jobs
from windows_pipeline.jobs.job import run_job
from windows_pipeline.settings import Settings
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import PipelineTables, WindowTables, tables_of

FIRST_DAY = date(2026, 11, 1)
ARRIVAL_UNITS = 3
RECORDS_A_DAY = 26
DAYS_WHOLE = (range(RECORDS_A_DAY),)
DAYS = [FIRST_DAY + timedelta(days=arrival_unit) for arrival_unit in range(ARRIVAL_UNITS)]
EXPRESSIONS: dict[str, tuple[str, str | Computed]] = {
    "total": ("sum", "whole"),
    "many": ("count", Computed(None, (">", "whole", 3))),
    "weighed": ("sum", Computed(("*", ("+", "whole", 1), ("neg", "whole")), (">", "whole", 2))),
    "apart": ("max", Computed(("abs", ("-", "whole", 4)))),
    "nearest": ("min_by", Computed("whole", by=("abs", ("-", "whole", 4)))),
    "dearest": ("max_by", Computed(("neg", "whole"), (">", "whole", 2), by="amount")),
}
"""Aggregates with conditions, expressions and a second column."""
AGGREGATES: dict[str, dict[str, tuple[str, str | Computed]]] = {
    "hops": {
        "total": ("sum", "whole"),
        "exact": ("sum", "amount"),
        "least": ("min", "amount"),
        "most": ("max", "amount"),
        "mean": ("avg", "amount"),
        **EXPRESSIONS,
    },
    "sessions": {**EXPRESSIONS, "listed": ("collect_list", "whole")},
    "slides": {**EXPRESSIONS, "listed": ("collect_list", "amount")},
    "forwards": {**EXPRESSIONS},
}
DECIMALS = {
    "exact": "decimal(30,2)",
    "least": "decimal(20,2)",
    "most": "decimal(20,2)",
    "mean": "decimal(24,6)",
}
"""Rule G2: the types of a decimal(20, 2)'s aggregates."""
DEFINITIONS: dict[str, Definition] = {
    "hops": TimeDefinition(size=10, advance=4, grace=4, first_window_start=-18),
    "sessions": SessionDefinition(gap=4, grace=6),
    "slides": SlidingDefinition(time_difference=6, grace=5, emit_empty=True),
    "forwards": ForwardDefinition(size=6, grace=5),
}
WINDOWS: dict[str, dict[str, object]] = {
    "hops": {
        "kind": "hopping", "size": "10 ms", "advance": "4 ms", "grace": "4 ms",
        "first_window_start": "1969-12-31T23:59:59.982Z",
    },
    "sessions": {"kind": "session", "gap": "4 ms", "grace": "6 ms"},
    "slides": {
        "kind": "sliding", "time_difference": "6 ms", "grace": "5 ms", "emit_empty": True,
    },
    "forwards": {"kind": "forward", "size": "6 ms", "grace": "5 ms"},
}  # fmt: skip
POLICIES = {
    "hops": Policy(size=10, advance=4, lateness=4, interval=3, final=True),
    "sessions": Policy(gap=4, lateness=4, out_of_orderness=2, every_n=2, discarding=True),
    "slides": Policy(
        difference=6, lateness=4, out_of_orderness=1, every_n=2, emit_empty=True, final=True
    ),
}
"""The windows of `DEFINITIONS` that fire early; the grace is out-of-orderness and lateness."""
TRIGGERS: dict[str, dict[str, object]] = {
    "hops": {"early_every": "3 ms", "late": True, "final": True},
    "sessions": {"early_every": "2 records", "panes": "discarding", "out_of_orderness": "2 ms"},
    "slides": {
        "early_every": "2 records", "out_of_orderness": "1 ms", "late": True, "final": True,
    },
    "forwards": {"final": True},
}  # fmt: skip
BUSY = {"busy": {"when": "record_count >= 2", "severity": "total"}}
LARGE = Decimal("12345678901234567.89")
"""No double holds it, nor a tenth."""
LARGE_ALERT = {"large": {"when": f"exact >= {LARGE}", "severity": "exact"}}
ALERTS = {"hops": BUSY | LARGE_ALERT, "sessions": BUSY, "slides": BUSY, "forwards": BUSY}


def arrived() -> list[Record]:
    """Records of three keys in three arrival units: before 1970 too, late, and on bounds."""
    random = Random(450)
    records = []
    time = -30
    for arrival_unit in range(ARRIVAL_UNITS):
        for offset in range(RECORDS_A_DAY):
            time += random.choice((0, 0, 1, 2, 4, 5))
            behind = random.choice((0, 0, 1, 3, 8, 14, 24))
            key, of_key = random.choice("ab"), time - behind
            if offset % 3 == 0:
                key, of_key = "c", time
            amount = random.choice((LARGE, Decimal("0.10"), Decimal("-7.35"), None))
            values = {"whole": random.randrange(9), "amount": amount}
            records.append(Record(arrival_unit, 0, offset, key, of_key, values))
    return records


def line(record: Record) -> str:
    """As it lands: amounts as numbers with all their digits."""
    amount = record.values["amount"]
    fields = {"n": record.offset, "k": record.key, "ms": record.event_time}
    text = json.dumps(fields | {"whole": record.values["whole"]})
    return f'{text[:-1]}, "amount": {"null" if amount is None else amount}}}\n'


class Ran(NamedTuple):
    """A pipeline with tables of its own, and what was landed for it."""

    pipeline: Pipeline
    settings: Settings
    records: list[Record]

    @property
    def source(self) -> PipelineTables:
        return tables_of(self.pipeline, self.settings.warehouse)

    def tables(self, name: str) -> WindowTables:
        return self.source.of(name)

    def rows(self, name: str) -> dict[str, list[str]]:
        tables = self.tables(name)
        named = (
            *(tables.keyed_windows, tables.late_records, tables.failed_windows),
            *(tables.final_windows, tables.alerts, tables.episodes),
        )
        notified = tables.notifications
        every = [*named, *tables.of_firings, *([notified] if notified.is_written else [])]
        # Which micro-batch brought a row is not what is compared.
        return {one.name: texts(stored_rows(one, "batch")) for one in every}

    def notifications(self, name: str) -> Table:
        table = self.tables(name).notifications
        assert table.is_written
        return table


def run_all(spark: SparkSession, settings: Settings, folder: Path) -> Ran:
    """Computes all windows of a pipeline as one range of days."""
    ran = declare(settings, folder, DAYS_WHOLE)
    jobs: list[Job] = [RawEventsJob(ran.source, ran.settings)]
    jobs += [job for name in WINDOWS for job in window_jobs(ran.source, name, ran.settings)]
    for job in jobs:
        result = run_job(job, spark, DAYS)
        failed = [check for check in result.checks if not check.passed]
        assert result.published, failed
    return ran


def declare(settings: Settings, folder: Path, pieces: Sequence[range], **fields: object) -> Ran:
    """The same, landed and not computed: a file a day and piece of its offsets.

    Args:
        settings: The tests' own.
        folder: An empty one.
        pieces: The offsets of a day's files.
        fields: What else to say of the source.
    """
    records = arrived()
    for arrival_unit, day in enumerate(DAYS):
        for number, piece in enumerate(pieces):
            landed = folder / "data" / day.isoformat() / f"{number}.jsonl"
            landed.parent.mkdir(parents=True, exist_ok=True)
            of_file = [
                one for one in records if one.arrival_unit == arrival_unit and one.offset in piece
            ]
            landed.write_text("".join(map(line, of_file)))
            written_at = 1_000_000_000 + arrival_unit * len(pieces) + number
            os.utime(landed, (written_at, written_at))
    # A number of more digits than its type has is rejected, not rounded.
    with landed.open("a") as file:
        file.write('{"n": 99, "k": "a", "ms": 0, "whole": 1, "amount": 0.005}\n')
    os.utime(landed, (written_at, written_at))
    source = {
        "path": "data", "format": "jsonl", "key": "k", "event_time": "ms", "arrival": "n",
        "columns": {
            "n": "bigint", "k": "string", "ms": "bigint", "whole": "bigint",
            "amount": "decimal(20, 2)",
        },
        **fields,
    }  # fmt: skip
    windows = {
        name: {
            **fields,
            "aggregates": {of: call_of(*what) for of, what in AGGREGATES[name].items()},
            "alerts": ALERTS[name],
            **({"trigger": TRIGGERS[name]} if name in TRIGGERS else {}),
        }
        for name, fields in WINDOWS.items()
    }
    partitions = {"start": FIRST_DAY.isoformat()}
    text = {
        "name": "kinds",
        "source": source,
        "partitions": partitions,
        "windows": windows,
        "notify": {"people": {"file": "sent.jsonl"}},
    }
    declared = folder / "pipelines" / "kinds.yaml"
    declared.parent.mkdir(parents=True)
    declared.write_text(json.dumps(text))
    return ran_in(settings, folder, "kinds")


def ran_in(settings: Settings, folder: Path, name: str) -> Ran:
    """What is declared, and maybe computed, in a folder."""
    pipeline = load_pipeline(folder / "pipelines" / f"{name}.yaml")
    return Ran(pipeline, settings_in(folder, settings), arrived())


def ms(instant: datetime) -> int:
    return (instant.replace(tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)
