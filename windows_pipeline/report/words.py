"""A window definition, and the command to an alert's records, in words."""

from __future__ import annotations

import shlex

from windows_pipeline.config import Windows

_LEFT_OUT = {"kind", "aggregates", "alerts", "checks", "trigger"}


def definition_rows(windows: Windows) -> list[tuple[str, str]]:
    """What a window definition declares: the name of each field, and its value as a text."""
    rows = [("kind", windows.kind.replace("_", " "))]
    for field, value in windows.model_dump(
        exclude=_LEFT_OUT, exclude_none=True, exclude_unset=True
    ).items():
        rows.append((field.replace("_", " "), _text(value)))
    rows += [
        (f"aggregate {aggregate.name}", str(aggregate)) for aggregate in windows.aggregate_list
    ]
    return rows + [(f"alert {rule}", of.when) for rule, of in windows.alerts.items()]


def trace_command(pipeline: str, alert: str) -> str:
    """The command that leads from an alert, by its id, to the records of its window."""
    return shlex.join(["windows-pipeline", "trace", pipeline, "--alert", alert])


def _text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none: one key for all records"
    return str(value).lower() if isinstance(value, bool) else str(value)
