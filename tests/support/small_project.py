"""A project folder of one small pipeline, used by the command line, for tests."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.command_line import call
from tests.support.shared_folders import made_once
from tests.support.stored_rows import named_rows, stored_rows
from windows_pipeline.config import Pipeline, load_pipeline
from windows_pipeline.settings import Settings, load_settings
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import PipelineTables, WindowTables, tables_of

HEADER = "k,t,v\n"
TUMBLING = {
    "kind": "tumbling",
    "size": "10 ms",
    "grace": "0 ms",
    "aggregates": {"s": "sum(v)", "c": "count(v)"},
}


@dataclass
class SmallProject:
    """Landed files, a pipeline `p` with the windows `w`, and a warehouse."""

    folder: Path
    base: Settings
    capfd: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch
    name: str = "w"
    """The windows that the tests look at."""

    def declare(
        self,
        windows: Mapping[str, object] = TUMBLING,
        columns: Mapping[str, str] | None = None,
        others: Mapping[str, Mapping[str, object]] | None = None,
        top: Mapping[str, object] | None = None,
        **source: object,
    ) -> None:
        """Writes the pipeline's file and the settings."""
        self.folder.mkdir(exist_ok=True, parents=True)
        settings = self.base.model_dump(mode="json")
        settings |= {"warehouse": "warehouse", "landing": ".", "pipelines": "pipelines"}
        (self.folder / "settings.yaml").write_text(yaml.safe_dump(settings))
        names = columns or {"k": "string", "t": "bigint", "v": "double"}
        fields = {"path": "data", "format": "csv", "columns": names, "key": "k", "event_time": "t"}
        declared = {
            "name": "p",
            "source": fields | source,
            "partitions": {"start": "2026-11-01"},
            "windows": {"w": windows, **(others or {})},
            **(top or {}),
        }
        (self.folder / "pipelines").mkdir(exist_ok=True)
        # Equal parts are written twice, not as YAML's aliases.
        text = yaml.safe_dump(json.loads(json.dumps(declared)))
        (self.folder / "pipelines" / "p.yaml").write_text(text)

    def land(self, day: int, lines: str | bytes, name: str = "a.csv", turn: int = -1) -> Path:
        """Lands a file in the folder of a day of November 2026.

        Args:
            day: The day of the month.
            lines: What the file holds.
            name: Its name.
            turn: Of files with a turn a stream reads the first first, with `max_per_batch: 1` each
                in a micro-batch of its own: one command then takes what several would.
        """
        file = self.folder / "data" / f"2026-11-{day:02}" / name
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_bytes(lines if isinstance(lines, bytes) else lines.encode())
        if turn >= 0:
            os.utime(file, (1_000_000_000 + turn, 1_000_000_000 + turn))
        return file

    def call(self, *args: str) -> tuple[int, str]:
        """Runs a command in its folder: the exit status, and what was printed."""
        self.monkeypatch.chdir(self.folder)
        return call(self.capfd, self.monkeypatch, *args)

    def ingest(self, way: str) -> tuple[int, str]:
        """Ingests what landed, by days (`run`) or as a stream (`stream`)."""
        return self.call(way, "p")

    def copy_of(self, kept: Path, make: Callable[[SmallProject], object]) -> SmallProject:
        """This project with the files and tables of another, which is made once for a module.

        Args:
            kept: Where the other project lies. A checkpoint of a stream holds paths, so only a
                project that runs by days may be copied.
            make: Makes the other project.
        """
        made_once(kept, lambda folder: make(replace(self, folder=folder)))
        shutil.copytree(kept, self.folder)
        return self

    def ingested_once(
        self, kept: Path, way: str, land: Callable[[SmallProject], object]
    ) -> tuple[SmallProject, str]:
        """Another project, which is made once for a module, and what its ingest printed.

        Args:
            kept: Where the other project lies. Tests only read there.
            way: How it is ingested, as `ingest` has it.
            land: Declares its pipeline and lands its files.
        """

        def make(folder: Path) -> None:
            made = replace(self, folder=folder)
            land(made)
            status, said = made.ingest(way)
            assert status == 0, said
            (folder / "said").write_text(said)

        made_once(kept, make)
        return replace(self, folder=kept), (kept / "said").read_text()

    @property
    def pipeline(self) -> Pipeline:
        return load_pipeline(self.folder / "pipelines" / "p.yaml", self.settings.modules)

    @property
    def settings(self) -> Settings:
        return load_settings(self.folder)

    @property
    def source(self) -> PipelineTables:
        return tables_of(self.pipeline, self.settings.warehouse)

    @property
    def windows(self) -> WindowTables:
        return self.source.of(self.name)

    @property
    def tables_by_name(self) -> dict[str, Table]:
        """The tables that every pipeline has, by their short names."""
        tables = (*self.source.of_source, *self.windows.of_every_definition)
        return {table.short_name: table for table in tables}

    def rejected(self) -> list[tuple[str, str | None]]:
        """The reason and text of each rejected record."""
        rows = named_rows(self.source.rejected_records, ["reason", "original"])
        return sorted((row["reason"], row["original"]) for row in rows)

    def raw(self, *columns: str, keys: Collection[str] = ()) -> list[dict[str, Any]]:
        """Accepted records, of some keys or all, by day and offset."""
        found = named_rows(self.source.raw_events)
        rows = [row for row in found if not keys or row["key"] in keys]
        in_order = sorted(rows, key=lambda row: (row["arrival_unit"], row["offset"]))
        return [{name: row[name] for name in columns} for row in in_order]

    def sums(self, *columns: str) -> list[tuple[Any, ...]]:
        """Columns of the stored windows, by key and bounds."""
        names = columns or ("c", "s")
        rows = named_rows(self.windows.keyed_windows)
        in_order = sorted(
            rows, key=lambda row: (row["key"], row["window_end"], row["arrival_unit"])
        )
        return [tuple(row[name] for name in names) for row in in_order]

    def all_rows(self) -> dict[str, list[tuple[object, ...]]]:
        """The rows of all results, without their arrival units and micro-batches."""
        tables = self.tables_by_name
        names = ("final_windows", "late_records", "rejected_records")
        return {
            name: sorted(stored_rows(tables[name], "arrival_unit", "record_arrival_unit"), key=repr)
            for name in names
        }

    def results_of(self, names: Sequence[str]) -> dict[str, list[tuple[object, ...]]]:
        """The results of some definitions, without arrival units, micro-batches and the folder."""
        found = {}
        for name in names:
            tables = self.source.of(name)
            of_name = [tables.final_windows, tables.alerts, tables.failed_windows]
            for table in [*of_name, *tables.of_firings]:
                arrival_units = (
                    "arrival_unit",
                    "record_arrival_unit",
                    "fired_after_arrival_unit",
                    "fired_after",
                )
                rows = [
                    tuple(map(self._without_folder, row))
                    for row in stored_rows(table, *arrival_units)
                ]
                found[table.name.removeprefix("p/")] = sorted(rows, key=repr)
        return found

    def _without_folder(self, value: object) -> object:
        return value.replace(str(self.folder), "") if isinstance(value, str) else value
