"""Loads the YAML of pages: a whole pipeline, or a part in a small one or in small settings."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.doc_blocks import Block, blocks_of
from windows_pipeline.config import Pipeline, Source, load_pipeline
from windows_pipeline.config.windows.kinds import KINDS
from windows_pipeline.settings import SETTINGS_VARIABLE, Settings, load_settings
from windows_pipeline.text.yaml_text import read_yaml

_MODULE = re.compile(r"# (\w+\.py)\n")
PARTS = ("settings", "pipeline", "windows", "source", "other")
"""What a block may be, as the comment `<!-- yaml: word -->` before the block says it."""
# The columns that parts of pages name, besides those that they declare.
_BASE: dict[str, Any] = {
    "name": "flights",
    "source": {
        "path": "data/flights",
        "format": "jsonl",
        "columns": {
            "origin": "string",
            "departed_at": "timestamp",
            "dep_delay": "double",
            "amount": "decimal(12,2)",
            "delay": "double",
            "carrier": "string",
            "arr_delay": "double",
        },
        "key": "origin",
        "event_time": "departed_at",
    },
    "partitions": {"start": "2013-01-01"},
    "windows": {"hourly": {"kind": "tumbling", "size": "1 hour", "grace": "6 hours"}},
}
_SETTINGS: dict[str, Any] = {
    "warehouse": "warehouse",
    "pipelines": "pipelines",
    "landing": ".",
    "spark": {"spark.master": "local[2]"},
}


def load_block(block: Block, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Loads a block as what it is; returns which of `PARTS`.

    Raises:
        ConfigError: It has a mistake.
        SettingsError: The same, of a part of the settings.
        AssertionError: It is neither a pipeline nor a part of one, nor of the settings.
    """
    text = textwrap.dedent(block.code)
    file = folder / "block.yaml"
    file.write_text(text)
    document = read_yaml(file)
    data: Any = yaml.safe_load(text)
    assert document.problems == [], f"{block}: {document.problems}"
    part = block.marker or part_of(data)
    assert part in PARTS, f"{block}: what is it? Write <!-- yaml: {'|'.join(PARTS)} --> before it"
    if part == "pipeline" and "name" in data:  # a whole one: nothing may be missing
        load_pipeline(file)
    elif part == "settings":
        (folder / "settings.yaml").write_text(yaml.safe_dump({**_SETTINGS, **data}))
        monkeypatch.delenv(SETTINGS_VARIABLE, raising=False)
        load_settings(folder)
    elif part != "other":
        file.write_text(yaml.safe_dump(in_a_pipeline(part, data), sort_keys=False))
        load_pipeline(file, modules_of(block.page, folder))
    return part


def modules_of(page: Path, folder: Path) -> list[Path]:
    """Writes the modules that a page shows: blocks of Python that begin with the file's name."""
    files = []
    for block in blocks_of(page) if page.exists() else ():
        name = _MODULE.match(block.code) if block.language == "python" else None
        if name:
            files.append(folder / name[1])
            files[-1].write_text(block.code)
    return files


def part_of(data: dict[str, Any]) -> str | None:
    """What a mapping is, by the names in it."""
    fields = set(data)
    if fields <= set(Pipeline.model_fields):
        return "pipeline"
    if fields <= set(Settings.model_fields) - {"tuning"}:
        return "settings"
    if fields <= set(Source.model_fields):
        return "source"
    if all(isinstance(each, dict) and "kind" in each for each in data.values()):
        return "windows"
    if fields <= {field for kind in KINDS.values() for field in kind.model_fields}:
        return "windows"
    return None


def in_a_pipeline(part: str, data: dict[str, Any]) -> dict[str, Any]:
    """A whole pipeline with a part of a page in it."""
    if part == "source":
        data = {"source": data}
    if part == "windows":
        one = not all(isinstance(each, dict) and "kind" in each for each in data.values())
        data = {"windows": {"hourly": _of_kind(data)} if one else data}
    pipeline = {**_BASE, **data}
    if "source" in data:
        source = {**_BASE["source"], **data["source"]}
        if source["format"] == "kafka":
            source.pop("path")
        pipeline["source"] = source
    return pipeline


def _of_kind(fields: dict[str, Any]) -> dict[str, Any]:
    """Windows of the first kind that has some fields."""
    if "kind" in fields:
        return {"grace": "6 hours", **fields}
    needed = {"time_difference": "1 hour", "size": "1 hour", "gap": "1 hour", "preceding": "1 hour"}
    for name, kind in KINDS.items():
        if set(fields) <= set(kind.model_fields):
            required = {
                field: needed[field]
                for field, info in kind.model_fields.items()
                if info.is_required() and field in needed
            }
            if name == "hopping":
                required["advance"] = "15 minutes"
            return {"kind": name, "grace": "6 hours", **required, **fields}
    raise AssertionError(f"no kind of window has the fields {sorted(fields)}")
