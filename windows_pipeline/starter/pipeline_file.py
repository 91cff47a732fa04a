"""Writes a proposed pipeline as commented YAML, and proves that it loads."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from windows_pipeline.config import Pipeline, load_folder, load_pipeline
from windows_pipeline.config.source import EVENT_TIME, LINES, Source
from windows_pipeline.starter.proposal import Proposal
from windows_pipeline.starter.types import SampleColumn
from windows_pipeline.text.problems import FieldProblems
from windows_pipeline.text.references import escaped
from windows_pipeline.windows.durations import duration_text

_SAFE = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_YAML_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
_LONGEST_EXAMPLE = 40
_COMMENT_COLUMN = 34
_ARRIVALS = {
    LINES: "records arrive in the order of lines, files by name",
    EVENT_TIME: "no column says when a record came: none is late within a day",
}
_FILE = """\
# Made from a sample by: windows-pipeline new {name}
# Change what is wrong, then: windows-pipeline validate
name: {name}

source:
  path: {path}\t# one folder per arrival day: {last}/
  format: {format}
{delimiter}  columns:
{columns}
  key: {key}\t# each value has windows of its own
  event_time: {event_time}\t# when it happened
  arrival: {arrival}\t# {arrival_note}
  max_ahead: 1 day\t# an event time further after its arrival is rejected

partitions:\t# arrival days, UTC
  start: {first}
  {end}

windows:
  sliding:\t# a name of yours: its tables have it
    kind: sliding\t# or tumbling (size), hopping (size, advance), session (gap)
    time_difference: {size}\t# the length of a window
    grace: {grace}\t# how late a record may be; a window is final after it
{emit_empty}    aggregates:{aggregates}
    alerts:
{rules}
"""
_EMIT_EMPTY = "    emit_empty: true\t# a time without records is a result, with count 0\n"
_RULE = """\
      {name}:
        # {note}; windows of the sample that break it: about {broken:,}
        when: {when}\t# SQL over record_count, aggregates, key, window_end
        severity: {severity}\t# an episode's worst window has the largest"""


def require_new_name(name: str, folder: Path) -> Path:
    """Returns the path of a new pipeline's file.

    Raises:
        ValueError: The name is not a pipeline's, another pipeline has it, or the file exists.
    """
    _require_valid("NAME", name, {"name": name}, ("name",))
    file = folder / f"{name}.yaml"
    if file.exists() or file.is_symlink():
        raise ValueError(f"{file}: the file exists, and is not overwritten; use another name")
    if folder.is_dir():
        for other, pipeline in load_folder(folder).pipelines.items():
            if pipeline.name == name:
                raise ValueError(
                    f"NAME: {name!r} is the name of the pipeline in {other}; use another name"
                )
    return file


def require_known_zone(zone: str) -> None:
    """Requires that a pipeline may name a time zone.

    Raises:
        ValueError: There is no such zone.
    """
    _require_valid("--zone", zone, {"schedule": {"zone": zone}}, ("schedule", "zone"))


def _require_valid(
    option: str, value: str, fields: Mapping[str, object], path: tuple[str, ...]
) -> None:
    """Requires that a pipeline's field takes a value, whatever is wrong with other fields."""
    try:
        Pipeline.model_validate(fields)
    except ValidationError as error:
        for problem in error.errors():
            if problem["loc"] == path:
                cause = problem.get("ctx", {}).get("error", problem["msg"])
                raise ValueError(f"{option}: {value!r} {cause}") from None


def refused_columns(source: Mapping[str, Any]) -> dict[str, str]:
    """Returns the columns that a pipeline cannot declare, with the reason: config's own rules.

    Args:
        source: The source, as a pipeline's file declares it.
    """
    refused: dict[str, str] = {}
    try:
        Source.model_validate(source)
    except ValidationError as error:
        for found in error.errors():
            cause = found.get("ctx", {}).get("error")
            where = found["loc"]
            if isinstance(cause, FieldProblems):
                for problem in cause.problems:
                    refused.setdefault(problem.path[-1], problem.text)
            elif where[:1] == ("columns",) and len(where) > 1:
                refused.setdefault(str(where[1]), str(cause or found["msg"]))
    return {name: text for name, text in refused.items() if name in source["columns"]}


def pipeline_text(
    name: str,
    source: Mapping[str, Any],
    columns: Mapping[str, SampleColumn],
    left_out: Mapping[str, str],
    days: tuple[date, date],
    proposal: Proposal,
    *,
    has_ended: bool,
) -> str:
    """Writes a pipeline's file.

    Args:
        name: The pipeline.
        source: Its source, as the file declares it.
        columns: The columns of the sample that may be declared.
        left_out: Columns that are not declared, with the reason.
        days: The first and the last arrival day of the sample.
        proposal: The windows.
        has_ended: Whether no more days are to come.

    Raises:
        ConfigError: The text does not load: a mistake of this program.
    """
    first, last = days
    delimiter = source.get("delimiter", ",")
    end = f"end: {last}\t# the sample's last day; take it out if more will come"
    no_end = f"# end: {last}\t# no day after it is read; for data that has ended"
    calls = [f"\n      {result}: {call}" for result, call in proposal.aggregates.items()]
    aggregates = "\t# also sum, min, stddev, percentile(column, 0.95), ..." + "".join(calls)
    none = " {}\t# such as total: sum(column); record_count is always there"
    text = _FILE.format(
        name=name,
        path=_scalar(escaped(source["path"])),
        format=source["format"],
        delimiter="" if delimiter == "," else f"  delimiter: {json.dumps(delimiter)}\n",
        columns="\n".join(_columns(columns, left_out)),
        key=_scalar(source["key"]),
        event_time=_scalar(source["event_time"]),
        arrival=_scalar(source["arrival"]),
        arrival_note=_ARRIVALS.get(
            source["arrival"], "when the record came: orders the records of a day"
        ),
        first=first,
        last=last,
        end=end if has_ended else no_end,
        size=duration_text(proposal.size_ms),
        grace=duration_text(proposal.grace_ms),
        emit_empty=_EMIT_EMPTY if proposal.emit_empty else "",
        aggregates=aggregates if calls else none,
        rules="\n".join(
            _RULE.format(
                name=rule.name,
                note=rule.note,
                broken=rule.broken,
                when=rule.when,
                severity=rule.severity,
            )
            for rule in proposal.rules
        ),
    )
    text = re.sub(r"(?m)^(.*)\t(?=# )", _aligned, text)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{name}.yaml"
        file.write_text(text, encoding="utf-8")
        load_pipeline(file)
    return text


def _aligned(found: re.Match[str]) -> str:
    """A line before its comment; values of the data have no tabs, as JSON escapes them."""
    return f"{found[1]}  ".ljust(_COMMENT_COLUMN)


def _columns(columns: Mapping[str, SampleColumn], left_out: Mapping[str, str]) -> list[str]:
    declared = [
        f"    {_scalar(name)}: {_declared(column)}\t# {_column_note(column)}"
        for name, column in columns.items()
        if column.has_values
    ]
    empty = [
        f"    # {name}: {column.type}             no value in the sample"
        for name, column in columns.items()
        if not column.has_values
    ]
    others = [f"    # left out: {_example(name)} {reason}" for name, reason in left_out.items()]
    return declared + empty + others


def _declared(column: SampleColumn) -> str:
    """The column as a line of the file declares it."""
    fields = column.declared
    if len(fields) == 1:
        return column.type
    texts = {name: _scalar(text) for name, text in fields.items()}
    signs = {name: json.dumps(text) for name, text in column.form.items()}
    return f"{{{', '.join(f'{name}: {text}' for name, text in (texts | signs).items())}}}"


def _column_note(column: SampleColumn) -> str:
    """An example, and in which zone times are read that name none."""
    example = _example(column.example)
    if column.zone is not None:
        return f"{example}; a time that occurs twice is the first; or ambiguous: later, reject"
    if column.is_local:
        local = _declared(replace(column, zone="Europe/Berlin"))
        return f"{example}, read as UTC; if local: {local}"
    return example


def _example(text: str) -> str:
    """Writes a value of the data for a comment: on one line, without control characters."""
    shown = json.dumps(text)[1:-1]
    return shown if len(shown) <= _LONGEST_EXAMPLE else f"{shown[:_LONGEST_EXAMPLE]}..."


def _scalar(text: str) -> str:
    """Writes a text that YAML reads as text."""
    is_plain = _SAFE.fullmatch(text) and text.lower() not in _YAML_WORDS
    return text if is_plain else json.dumps(text)
