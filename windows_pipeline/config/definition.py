"""The fields of a pipeline that decide a table's rows: a table never mixes two definitions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from datetime import date
from typing import Literal, get_args

from windows_pipeline.config.aggregates import modules_of
from windows_pipeline.config.columns.long_form import type_of
from windows_pipeline.config.model import Pipeline
from windows_pipeline.config.source import Source
from windows_pipeline.text.problems import RefusedError

_OF_RULE = ("when", "severity")
"""The fields of a rule that decide the rows of alerts; its other fields are for people."""
Part = Literal[
    "alerts", "partial_results", "process", "trigger", "columns.failed", "tables.episodes"
]
"""A part of a definition that only some tables follow: their rows alone depend on it."""
_OF_RELEASE: Mapping[Part, str] = {
    # Tables of earlier releases lack the column, so their rows are refused.
    "columns.failed": "array<string>",
    # Earlier releases did not store episodes: a rebuild of alerts does.
    "tables.episodes": "stored",
}
FORMAT = "1"
"""The form in which this release writes tables. It changes where a release can't go on with the
tables of the one before, which are then refused until they are rebuilt."""
_FIRST_FORMAT = {"format": "1"}
"""The form of tables that have no number."""


def table_definition(
    pipeline: Pipeline, windows_name: str | None, follows: Collection[Part] = ()
) -> dict[str, str]:
    """Returns the fields that decide a table's rows, and its format: canonical text by path.

    Equal definitions give equal texts however the file writes them: ``60 minutes`` or
    ``1 hour``, a default written or left out, keys in any order. The source's path and the
    partitions' end are left out: neither changes rows that the table holds already.

    Args:
        pipeline: The pipeline.
        windows_name: The windows that the table belongs to; None for a shared table.
        follows: The parts that only some tables follow, this one among them.

    Raises:
        ValueError: The pipeline has no windows of that name.
    """
    if windows_name is None:
        return _shared_fields(pipeline)
    if windows_name not in pipeline.windows:
        fix = f"use one of {', '.join(pipeline.windows)}"
        raise ValueError(f"windows_name: {windows_name!r} is not in {pipeline.name}; {fix}")
    definition = _shared_fields(pipeline)
    definition.update(_flat("source", pipeline.source.model_dump(include={"idle_after"})))
    definition.update(_window_fields(pipeline, windows_name, follows))
    definition.update({part: text for part, text in _OF_RELEASE.items() if part in follows})
    return dict(sorted(definition.items()))


def definition_changes(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """Describes the fields that differ, one line each, sorted by field.

    For example ``windows.hourly.grace: was '6 hours', is '5 hours'``.
    """
    changes = []
    for field, (was, now) in _differences(old, new).items():
        if now is None:
            changes.append(f"{field}: was {was!r}, is not set now")
        elif was is None:
            changes.append(f"{field}: was not set, is {now!r}")
        else:
            changes.append(f"{field}: was {was!r}, is {now!r}")
    return changes


class DefinitionChangedError(RefusedError):
    """A table holds rows of another definition; the message names the change and the fix."""


def definition_changed(
    table: str, old: Mapping[str, str], new: Mapping[str, str], first: date | None
) -> DefinitionChangedError:
    """The error that a table's rows follow another definition, with each way on.

    Args:
        table: The table's name.
        old: The definition that its rows follow.
        new: The definition as it is now.
        first: The first day that the table has rows of, from which a correction changes the grace.
    """
    pipeline, only_grace = table.partition("/")[0], only_grace_differs(old, new)
    changed = [field.split(".") for field, (_, now) in _differences(old, new).items() if now]
    rules = {(of[1], of[3]) for of in changed if of[0] == "windows" and of[2] == "alerts"}
    tried = "; ".join(
        f"windows-pipeline alerts {pipeline} --windows {windows} --try {rule}"
        for windows, rule in sorted(rules)
    )
    first_look = f". To see first what a changed rule raises: {tried}" if tried else ""
    correct = (
        ". Or correct the published results and list the changes: run the job "
        f"{pipeline}_correction, or: windows-pipeline correct {pipeline} --from {first} "
        "--cause TEXT"
    )
    return DefinitionChangedError(
        f"{table}: rows must follow the pipeline's definition, but the table holds rows of "
        f"another one: {'; '.join(definition_changes(old, new))}. Restore the old definition, or "
        f"rebuild the tables that depend on it: run the job {pipeline}_rebuild, or: "
        f"windows-pipeline rebuild {pipeline}{first_look}"
        f"{correct if only_grace and first else ''}"
    )


def only_grace_differs(old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    """Whether two definitions of a window table differ in the grace and in nothing else."""
    fields = _differences(old, new)
    return [field.split(".")[::2] for field in fields] == [["windows", "grace"]]


def _differences(
    old: Mapping[str, str], new: Mapping[str, str]
) -> dict[str, tuple[str | None, str | None]]:
    """The fields that differ, sorted, with the text of each definition; None if not set."""
    old, new = _FIRST_FORMAT | dict(old), _FIRST_FORMAT | dict(new)
    fields = sorted(old.keys() | new.keys())
    texts = {field: (old.get(field), new.get(field)) for field in fields}
    return {field: (was, now) for field, (was, now) in texts.items() if was != now}


def definition_digest(definition: Mapping[str, str]) -> str:
    """Returns the SHA-256 of a definition, in hex, whatever the order of its fields."""
    fields = dict(definition.items() - _FIRST_FORMAT.items())
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _shared_fields(pipeline: Pipeline) -> dict[str, str]:
    # How records are read changes no row; `idle_after` changes rows of window tables only.
    left_out = {
        *("path", "kafka", "stream", "max_per_batch", "max_record_bytes"),
        *("idle_after", "keep_rejected_text", "on_bad_file"),
    }
    source = pipeline.source.model_dump(exclude={*left_out, "columns"})
    partitions = pipeline.partitions.model_dump(exclude={"end"})
    fields = {"format": FORMAT, **_flat("source", source), **_flat("partitions", partitions)}
    topic = pipeline.source.kafka
    if topic is not None and topic.partitions == "one":  # tables have no column of the partition
        fields["source.kafka.partitions"] = topic.partitions
    return dict(sorted({**fields, **_column_fields(pipeline.source)}.items()))


def _column_fields(source: Source) -> dict[str, str]:
    """Each column's type, and below it the other fields of a long form."""
    fields = {f"source.columns.{name}": type_of(source.columns[name]) for name in source.columns}
    for name, column in source.long_forms.items():
        left_out = {"type", *(["path"] if source.paths.get(name) == (name,) else [])}
        fields |= _flat(f"source.columns.{name}", column.model_dump(exclude=left_out))
    return fields


def _window_fields(pipeline: Pipeline, name: str, follows: Collection[Part]) -> dict[str, str]:
    windows = pipeline.windows[name]
    # A failed check changes no row.
    left_out = {"aggregates", "on_failed", "checks", *get_args(Part)}.difference(follows)
    if windows.key == pipeline.source.key:  # the same as no key of its own
        left_out.add("key")
    dumped = windows.model_dump(exclude=left_out)
    if "alerts" in dumped:
        rules = dumped["alerts"].items()
        dumped["alerts"] = {rule: {name: of[name] for name in _OF_RULE} for rule, of in rules}
    fields = _flat(f"windows.{name}", dumped)
    for aggregate in windows.aggregate_list:
        fields[f"windows.{name}.aggregates.{aggregate.name}"] = str(aggregate)
    for module, digest in modules_of(windows.aggregate_list).items():
        fields[f"windows.{name}.modules.{module}"] = f"SHA-256 {digest}"
    function = windows.window_function
    if "process" in follows and function is not None:
        fields[f"windows.{name}.modules.{function.module}"] = f"SHA-256 {function.digest}"
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
