"""A project of the flights with rows of notifications and targets, for tests without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from tests.support.pipeline_texts import FLIGHTS, load_text
from tests.support.written_tables import write_rows
from windows_pipeline.config import Pipeline
from windows_pipeline.notify import Sent, deliver
from windows_pipeline.settings import Settings
from windows_pipeline.storage.catalog import specs_of

DAY = date(2013, 1, 1)
SINCE = datetime(2013, 1, 1, 8, tzinfo=UTC)
NOW = datetime(2013, 1, 2, 0, 30, tzinfo=UTC)
"""Half an hour after the end of the day."""


@dataclass
class Notified:
    """The project."""

    folder: Path
    targets: str
    number: int = 0
    commands: tuple[str, ...] = ()
    text: str = FLIGHTS
    ui_url: str | None = None

    @property
    def pipeline(self) -> Pipeline:
        return load_text(self.folder, f"{self.text}notify:\n{self.targets}")

    @property
    def settings(self) -> Settings:
        return Settings(
            warehouse=f"{self.folder}/warehouse",
            pipelines=self.folder,
            landing=".",
            spark={},
            commands=self.commands,
            ui_url=self.ui_url,
        )

    def happen(self, *rows: dict[str, Any]) -> list[str]:
        """Adds rows to the table of notifications; returns their ids."""
        spec = specs_of(self.pipeline, self.settings.warehouse).of("hourly").notifications
        assert spec is not None
        added = []
        for row in rows:
            self.number += 1
            added.append(
                {
                    "notification_id": f"id{self.number}",
                    "arrival_unit": DAY,
                    "rule": "disruption",
                    "key": "JFK",
                    "episode_start": SINCE,
                    "event": "opened",
                    "window_start": SINCE,
                    "window_end": SINCE + timedelta(hours=1),
                    "record_count": 12,
                    "aggregates": '{"avg_dep_delay":61.5}',
                    "severity": 61.5,
                    "since": SINCE,
                    "until": SINCE + timedelta(minutes=60 + self.number),
                    **row,
                }
            )
        write_rows(spec, added)
        return [row["notification_id"] for row in added]

    def retract(self, *ids: str) -> None:
        """Marks rows as retracted, as a correction does."""
        spec = specs_of(self.pipeline, self.settings.warehouse).of("hourly").notifications
        assert spec is not None
        for each in ids:
            DeltaTable(spec.location).update(
                predicate=f"notification_id = '{each}'", updates={"retracted_by": "1"}
            )

    def deliver(self, now: datetime = NOW, **options: Any) -> dict[str, Sent]:
        """Delivers, without waiting between attempts; what each target was notified."""
        sent = deliver(self.pipeline, self.settings, now=now, sleep=lambda _: None, **options)
        return {one.target: one for one in sent}

    @property
    def log(self) -> Path:
        """The log of what was delivered."""
        return self.folder / "warehouse" / "flights" / "_delivered.jsonl"
