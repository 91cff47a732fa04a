"""Ids of alerts: each is computed from the alert's row, and leads back to its window (rule E5)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from windows_pipeline.config import Pipeline
from windows_pipeline.query.tables.arrow_values import python_rows, texts
from windows_pipeline.query.tables.keys import KEY
from windows_pipeline.query.tables.local import LocalTable, NoTableError
from windows_pipeline.query.tables.wanted import Wanted
from windows_pipeline.storage.catalog import specs_of
from windows_pipeline.text.instants import time_text
from windows_pipeline.text.values import as_json, key_text

ALERT_ID = "_id"
"""The column that commands add; no column of a table begins with an underscore."""
_DIGITS = 12
_FORM = re.compile(rf"[0-9a-f]{{4,{_DIGITS}}}")
_MOST_NAMED = 5
_BOUNDS = ("window_start", "window_end")


@dataclass(frozen=True)
class FoundAlert:
    """An alert that has an id.

    Attributes:
        id: The whole id.
        windows_name: The window definition.
        rule: The rule's name.
        key: The window's key; of several columns a dict of the parts by name.
        start: The window's first instant.
        end: The window's end.
        row: For a row window, the values that identify its row, by column; empty for other windows.
        severity: How bad the alert is.
        retracted_by: The number of the correction that retracted the alert; None while it stands.
        episode_start: The start of its episode.
        record_count: How many records the window holds; none if it is a silence.
    """

    id: str
    windows_name: str
    rule: str
    key: Any
    start: datetime
    end: datetime
    row: Mapping[str, Any]
    severity: float | None
    retracted_by: int | None
    episode_start: datetime
    record_count: int


def alert_id(
    pipeline: str, windows_name: str, row_key: Sequence[str], alert: Mapping[str, Any]
) -> str:
    """The id of an alert: the first 12 hex digits of a SHA-256.

    The hashed text is the JSON list of the pipeline, the definition, the rule, the list of the
    key's parts, the window's start and end, the columns of `row_key`, and the correction that
    raised the alert. Instants are in UTC with milliseconds, as `2013-03-08T21:15:00.000Z`.

    Args:
        pipeline: The pipeline's name.
        windows_name: The window definition.
        row_key: The columns that identify the row of a row window.
        alert: The row of the table alerts, by column; the key of several columns by name, or a
            tuple.
    """
    key = alert[KEY]
    parts = key.values() if isinstance(key, Mapping) else key if isinstance(key, tuple) else (key,)
    named = [
        pipeline,
        windows_name,
        alert["rule"],
        [_plain(part) for part in parts],
        *(_plain(alert[name]) for name in (*_BOUNDS, *row_key)),
        alert["correction"],
    ]
    text = json.dumps(named, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def with_ids(rows: pa.Table, pipeline: Pipeline, windows_name: str) -> pa.Table:
    """Rows of the table alerts with their ids as the first column, `_id`."""
    row_key = pipeline.windows[windows_name].row_key
    alerts = python_rows(rows.select(columns_of_ids(row_key)))
    ids = [alert_id(pipeline.name, windows_name, row_key, alert) for alert in alerts]
    return rows.add_column(0, ALERT_ID, texts(ids))


def alert_named(
    text: str,
    argument: str,
    pipeline: Pipeline,
    warehouse: str,
    names: Sequence[str],
) -> FoundAlert:
    """Finds the alert with an id, even if a correction retracted the alert.

    For a whole id, reading stops at the newest alert that has it. The chance that another of a
    million alerts has the same id is 1 in 280 million.

    Args:
        text: The id, or its first digits, at least 4.
        argument: The argument's name, for messages.
        pipeline: The pipeline.
        warehouse: The folder of all tables.
        names: The window definitions to look in.

    Raises:
        NoTableError: No definition has a table of alerts yet.
        TableDamagedError: A file of a table is damaged.
        UnreadableTableError: Only Spark can read a table.
        ValueError: No alert has the id, several have these first digits, or the text is not an id.
    """
    if not _FORM.fullmatch(text):
        raise ValueError(
            f"{argument}: must be the id of an alert, {_DIGITS} digits from 0 to f, or its first "
            f"ones, at least 4, not {text!r}; take it from: windows-pipeline alerts {pipeline.name}"
        )
    found: list[FoundAlert] = []
    opened: list[str] = []
    missing: list[NoTableError] = []
    for name in names:
        spec = specs_of(pipeline, warehouse).of(name).alerts
        try:
            alerts = _alerts_of(LocalTable(spec), pipeline, name)
        except NoTableError as error:
            missing.append(error)
            continue
        opened.append(spec.name)
        having = (alert for alert in alerts if alert.id.startswith(text))
        if len(text) < _DIGITS:
            found += having
        elif (whole := next(having, None)) is not None:  # so the other files need not be read
            return whole
    if not opened and missing:
        raise missing[0]
    if not found:
        raise ValueError(
            f"{argument}: no alert of {', '.join(opened)} has the id {text!r}; take it from: "
            f"windows-pipeline alerts {pipeline.name} --with-retracted"
        )
    if len(found) > 1:
        listed = "\n".join(map(_described, found[:_MOST_NAMED]))
        raise ValueError(
            f"{argument}: must name one alert, and {len(found)} have ids that begin with {text!r}; "
            f"write more digits of one of them:\n{listed}"
        )
    return found[0]


def _alerts_of(table: LocalTable, pipeline: Pipeline, windows_name: str) -> Iterator[FoundAlert]:
    """The alerts of a table, the newest arrival days first."""
    row_key = pipeline.windows[windows_name].row_key
    others = ("severity", "retracted_by", "episode_start", "record_count")
    columns = [*columns_of_ids(row_key), *others]
    for day in sorted(table.days, reverse=True):
        for alert in python_rows(table.read(Wanted(days=frozenset((day,))), columns)):
            yield FoundAlert(
                alert_id(pipeline.name, windows_name, row_key, alert),
                windows_name,
                alert["rule"],
                alert[KEY],
                alert["window_start"],
                alert["window_end"],
                {name: alert[name] for name in row_key},
                *(alert[name] for name in others),
            )


def columns_of_ids(row_key: Sequence[str]) -> list[str]:
    """The columns of alerts that ids are made of."""
    return ["rule", KEY, *_BOUNDS, *row_key, "correction"]


def _described(alert: FoundAlert) -> str:
    key, end = key_text(alert.key), time_text(alert.end)
    return f"{alert.id}: {alert.rule} of {alert.windows_name}, key {key}, ends {end}"


def _plain(value: object) -> object:
    """A value as ids have it, which never change: as JSON, and a double as a text."""
    return str(value) if isinstance(value, float) else as_json(value)
