"""What of a pipeline's definition a table's rows depend on, so that none are mixed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from windows_pipeline.config.model import SHARED_TABLES, Pipeline
from windows_pipeline.config.window_kinds import Windows
from windows_pipeline.text.problems import nearest

_WINDOW_TABLES = (
    *("keyed_windows", "late_records", "final_windows", "corrections", "alerts"),
    *("firings", "early_warnings"),
)


def table_definition(pipeline: Pipeline, windows_name: str | None, table: str) -> dict[str, str]:
    """The fields that decide a table's rows, each as canonical text by its path.

    Equal definitions give equal texts however the file writes them: ``60 minutes`` or
    ``1 hour``, a default written or left out, keys in any order. Where the files lie and
    where the partitions end is left out: neither changes rows that are there.

    Args:
        pipeline: The pipeline.
        windows_name: The windows whose table it is; None for a table that all share.
        table: The table's name.

    Raises:
        ValueError: No such table, or no such windows for it.
    """
    if table in SHARED_TABLES:
        if windows_name is not None:
            raise ValueError(f"windows_name: {windows_name!r}, but {table} has none; give None")
        return _shared_fields(pipeline)
    if table not in _WINDOW_TABLES:
        tables = (*SHARED_TABLES, *_WINDOW_TABLES)
        cure = nearest(table, tables, f"use one of {', '.join(tables)}")
        raise ValueError(f"table: {table!r} is no table; {cure}")
    if windows_name not in pipeline.windows:
        cure = f"use one of {', '.join(pipeline.windows)}"
        raise ValueError(f"windows_name: {windows_name!r} is not in {pipeline.name}; {cure}")
    definition = _shared_fields(pipeline)
    definition.update(_flat("source", pipeline.source.model_dump(include={"idle_after"})))
    definition.update(_window_fields(windows_name, pipeline.windows[windows_name], table))
    return dict(sorted(definition.items()))


def definition_changes(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """Says what differs, a line a field, sorted by field.

    For example ``windows.hourly.grace: was '6 hours', is '5 hours'``.
    """
    changes = []
    for field in sorted(old.keys() | new.keys()):
        if field not in new:
            changes.append(f"{field}: was {old[field]!r}, is gone")
        elif field not in old:
            changes.append(f"{field}: was not there, is {new[field]!r}")
        elif old[field] != new[field]:
            changes.append(f"{field}: was {old[field]!r}, is {new[field]!r}")
    return changes


def only_grace_differs(old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    """Whether two definitions of a window table are the same but for the grace."""
    fields = [field for field in old.keys() | new.keys() if old.get(field) != new.get(field)]
    return [field.split(".")[::2] for field in fields] == [["windows", "grace"]]


def definition_digest(definition: Mapping[str, str]) -> str:
    """The SHA-256 of a definition, in hex; the order of its fields does not matter."""
    text = json.dumps(dict(definition), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _shared_fields(pipeline: Pipeline) -> dict[str, str]:
    # How records come is no part of what a row means; `idle_after` is the windows' tables' alone.
    how = {"path", "kafka", "stream", "max_per_batch", "idle_after", "keep_rejected_text"}
    source = pipeline.source.model_dump(exclude=how)
    partitions = pipeline.partitions.model_dump(exclude={"end"})
    return dict(sorted({**_flat("source", source), **_flat("partitions", partitions)}.items()))


def _window_fields(name: str, windows: Windows, table: str) -> dict[str, str]:
    left_out = {"aggregates"}
    if table not in ("alerts", "early_warnings"):
        left_out.add("alerts")
    if table != "keyed_windows":
        left_out.add("partial_results")
    if table not in ("firings", "early_warnings"):
        left_out.add("trigger")
    fields = _flat(f"windows.{name}", windows.model_dump(exclude=left_out))
    for aggregate in windows.aggregate_list:
        fields[f"windows.{name}.aggregates.{aggregate.name}"] = str(aggregate)
    return fields


def _flat(path: str, value: object) -> dict[str, str]:
    if isinstance(value, dict):
        return {
            field: text
            for name, inner in value.items()
            for field, text in _flat(f"{path}.{name}", inner).items()
        }
    return {} if value is None else {path: _canonical(value)}


def _canonical(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).strip()
