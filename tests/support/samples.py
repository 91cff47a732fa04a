"""Samples of records as users have them: payments, heartbeats, and a project to try them in."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml

FIRST_DAY = datetime(2026, 3, 8, tzinfo=UTC)
PAYMENT_COLUMNS = ("order_id", "card", "amount", "paid_at", "received_at")


def iso(time: datetime) -> str:
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")


def payments(count: int = 2_000, seed: int = 1) -> list[tuple[str, str, str, str, str]]:
    """Payments of 20 cards over about three days, in the order in which they were received.

    Every 50th is received ten minutes late, and every 100th costs twenty times as much.
    """
    draw = random.Random(seed)
    rows = []
    time = FIRST_DAY
    for number in range(count):
        time += timedelta(seconds=draw.randint(60, 200))
        delay = timedelta(seconds=600 if number % 50 == 7 else draw.randint(0, 3))
        amount = draw.randint(500, 5_000) / 100 * (20 if number % 100 == 3 else 1)
        card = f"card-{draw.randrange(20):02}"
        rows.append(
            (time + delay, (f"o{number:05}", card, f"{amount:.2f}", iso(time), iso(time + delay)))
        )
    return [row for _, row in sorted(rows, key=lambda row: row[0])]


def csv_text(
    rows: Sequence[Sequence[str]], header: Sequence[str] = PAYMENT_COLUMNS, end: str = "\n"
) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator=end)
    writer.writerow(header)
    writer.writerows(rows)
    return stream.getvalue()


def heartbeats(days: int = 2) -> str:
    """Six pumps that say each minute that they are alive; pump-3 is silent for an hour."""
    lines = []
    for minute in range(days * 1_440):
        for pump in range(6):
            if pump == 3 and 600 <= minute < 660:
                continue
            time = FIRST_DAY + timedelta(minutes=minute, seconds=pump)
            record = {"device": f"pump-{pump}", "ts": int(time.timestamp() * 1_000)}
            lines.append(json.dumps(record))
    return "\n".join(lines) + "\n"


def make_project(folder: Path) -> Path:
    """Makes a folder with settings, and nothing else."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"warehouse": "warehouse", "pipelines": "pipelines", "landing": ".", "spark": {}}
    (folder / "settings.yaml").write_text(yaml.safe_dump(settings))
    return folder
