"""Writes a proposed pipeline as commented YAML, and proves that it loads."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from pydantic import ValidationError

from windows_pipeline.config import Pipeline, load_folder, load_pipeline
from windows_pipeline.config.source import Source
from windows_pipeline.starter.proposal import Proposal
from windows_pipeline.starter.types import SampleColumn
from windows_pipeline.text.problems import FieldProblems
from windows_pipeline.text.references import escaped
from windows_pipeline.windows.durations import duration_text

_SAFE = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_YAML_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
_LONGEST_EXAMPLE = 40
_COMMENT_COLUMN = 34


@dataclass(frozen=True, slots=True)
class Draft:
    """All that a pipeline file says.

    Attributes:
        name: The pipeline.
        path: The folder of day folders, as the file writes it.
        format: The format of the files.
        delimiter: The character between the fields of CSV files.
        columns: The columns to declare.
        left_out: Columns that are not declared, with the reason.
        key: The key.
        event_time: The column of the event time.
        arrival: A column, `lines` or `event_time`.
        start: The first arrival day.
        end: The last arrival day of old data; None where more is to come.
        last: The last arrival day of the sample.
        proposal: The windows.
    """

    name: str
    path: str
    format: str
    delimiter: str
    columns: Mapping[str, SampleColumn]
    left_out: Mapping[str, str]
    key: str
    event_time: str
    arrival: str
    start: date
    end: date | None
    last: date
    proposal: Proposal


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


def refused_columns(columns: Mapping[str, str], roles: Mapping[str, str]) -> dict[str, str]:
    """Returns the columns that a pipeline cannot declare, with the reason: config's own rules.

    Args:
        columns: The type of each column.
        roles: The columns that have a role, by the role.
    """
    refused: dict[str, str] = {}
    try:
        Source.model_validate({"path": "data", "format": "csv", "columns": dict(columns), **roles})
    except ValidationError as error:
        for found in error.errors():
            cause = found.get("ctx", {}).get("error")
            where = found["loc"]
            if isinstance(cause, FieldProblems):
                for problem in cause.problems:
                    refused.setdefault(problem.path[-1], problem.text)
            elif where[:1] == ("columns",) and len(where) > 1:
                refused.setdefault(str(where[1]), str(cause or found["msg"]))
    return {name: text for name, text in refused.items() if name in columns}


def pipeline_text(draft: Draft) -> str:
    """Writes a pipeline's file.

    Raises:
        ConfigError: The text does not load: a mistake of this program.
    """
    text = "\n".join(_lines(draft)) + "\n"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{draft.name}.yaml"
        file.write_text(text, encoding="utf-8")
        load_pipeline(file)
    return text


def _lines(draft: Draft) -> Iterator[str]:
    yield f"# Made from a sample by: windows-pipeline new {draft.name}"
    yield "# Change what is wrong, then: windows-pipeline validate"
    yield f"name: {draft.name}"
    yield ""
    yield from _source(draft)
    yield ""
    yield _noted("partitions:", "arrival days, UTC")
    yield f"  start: {draft.start}"
    if draft.end is None:
        yield _noted(f"  # end: {draft.last}", "no day after it is read; for data that has ended")
    else:
        yield _noted(f"  end: {draft.end}", "the sample's last day; take it out if more will come")
    yield ""
    yield from _windows(draft)


def _source(draft: Draft) -> Iterator[str]:
    yield "source:"
    yield _noted(
        f"  path: {_scalar(escaped(draft.path))}", f"one folder per arrival day: {draft.last}/"
    )
    yield f"  format: {draft.format}"
    if draft.delimiter != ",":
        yield f"  delimiter: {json.dumps(draft.delimiter)}"
    yield "  columns:"
    for name, column in draft.columns.items():
        if column.has_values:
            yield _noted(f"    {_scalar(name)}: {_declared(column)}", _column_note(column))
    for name, column in draft.columns.items():
        if not column.has_values:
            yield f"    # {name}: {column.type}             no value in the sample"
    for name, reason in draft.left_out.items():
        yield f"    # left out: {_example(name)} {reason}"
    yield _noted(f"  key: {_scalar(draft.key)}", "each value has windows of its own")
    yield _noted(f"  event_time: {_scalar(draft.event_time)}", "when it happened")
    arrivals = {
        "lines": "records arrive in the order of lines, files by name",
        "event_time": "no column says when a record came: none is late within a day",
    }
    note = arrivals.get(draft.arrival, "when the record came: orders the records of a day")
    yield _noted(f"  arrival: {_scalar(draft.arrival)}", note)
    yield _noted("  max_ahead: 1 day", "an event time further after its arrival is rejected")


def _declared(column: SampleColumn) -> str:
    is_plain = column.zone is None
    return column.type if is_plain else f"{{type: {column.type}, zone: {column.zone}}}"


def _column_note(column: SampleColumn) -> str:
    """An example, and in which zone times are read that name none."""
    example = _example(column.example)
    if column.zone is not None:
        return f"{example}; a time that occurs twice is the first; or ambiguous: later, reject"
    if column.is_local:
        return f"{example}, read as UTC; if local: {{type: timestamp, zone: Europe/Berlin}}"
    return example


def _windows(draft: Draft) -> Iterator[str]:
    found = draft.proposal
    length = duration_text(found.size_ms)
    yield "windows:"
    yield _noted(f"  {found.name}:", "a name of yours: its tables have it")
    others = [kind for kind in ("sliding", "tumbling", "hopping", "session") if kind != found.kind]
    yield _noted(f"    kind: {found.kind}", f"or {', '.join(others)}")
    field = {"sliding": "time_difference", "session": "gap"}.get(found.kind, "size")
    yield _noted(f"    {field}: {length}", "the length of a window")
    if found.kind == "hopping":
        yield f"    advance: {duration_text(found.advance_ms)}"
    yield _noted(
        f"    grace: {duration_text(found.grace_ms)}",
        "how late a record may be; a window is final after it",
    )
    if found.emit_empty:
        yield _noted("    emit_empty: true", "a time without records is a result, with count 0")
    if found.aggregates:
        yield _noted("    aggregates:", "also sum, min, stddev, percentile(column, 0.95), ...")
        yield from (f"      {name}: {call}" for name, call in found.aggregates.items())
    else:
        yield _noted(
            "    aggregates: {}", "such as total: sum(column); record_count is always there"
        )
    yield "    alerts:"
    for rule in found.rules:
        yield f"      {rule.name}:"
        yield f"        # {rule.note}; windows of the sample that break it: about {rule.broken:,}"
        yield _noted(
            f"        when: {rule.when}", "SQL over record_count, aggregates, key, window_end"
        )
        yield _noted(
            f"        severity: {rule.severity}", "an episode's worst window has the largest"
        )


def _noted(line: str, note: str) -> str:
    return (
        f"{line.ljust(_COMMENT_COLUMN)}# {note}"
        if len(line) < _COMMENT_COLUMN
        else f"{line}  # {note}"
    )


def _example(text: str) -> str:
    """Writes a value of the data for a comment: on one line, without control characters."""
    shown = json.dumps(text)[1:-1]
    return shown if len(shown) <= _LONGEST_EXAMPLE else f"{shown[:_LONGEST_EXAMPLE]}..."


def _scalar(text: str) -> str:
    """Writes a text that YAML reads as text."""
    is_plain = _SAFE.fullmatch(text) and text.lower() not in _YAML_WORDS
    return text if is_plain else json.dumps(text)
