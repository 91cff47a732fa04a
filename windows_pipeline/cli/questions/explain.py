"""The command `explain`: which windows count a record, or why none does."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windows_pipeline.cli.arguments import (
    PipelineName,
    WindowsName,
    chosen_windows,
    declared,
    parsed_day,
    parsed_span,
)
from windows_pipeline.cli.session import reading
from windows_pipeline.cli.terminal.console import CONSOLE
from windows_pipeline.cli.terminal.printed import say
from windows_pipeline.text.counts import counted
from windows_pipeline.text.instants import time_text
from windows_pipeline.text.values import as_json, short

if TYPE_CHECKING:  # read when the command runs, so that `--help` answers at once
    from windows_pipeline.config import Pipeline
    from windows_pipeline.query.records.explained import ExplainedRecord, Explanation

_LIMIT = 20
_OF_WINDOWS = ("start", "end", "record_count", "closed", "watermark")


def explain(
    context: typer.Context,
    pipeline: PipelineName,
    key: Annotated[
        str | None,
        typer.Argument(help="The windows' key, its parts with commas; '' where there is no key."),
    ] = None,
    event_time: Annotated[
        str | None,
        typer.Argument(metavar="TIME", help="The record's event time, as far as known; UTC."),
    ] = None,
    windows: WindowsName = None,
    partition: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="With --offset: the source partition; 0 if left out."),
    ] = None,
    offset: Annotated[
        int | None,
        typer.Option(min=0, help="The record's offset, instead of KEY and TIME."),
    ] = None,
    day: Annotated[
        str | None, typer.Option(metavar="DAY", help="With --offset: the record's arrival day.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many records.")] = _LIMIT,
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object; times are UTC.")
    ] = False,
) -> None:
    """Says which windows count a record, or why none does: late, filtered out, rejected, not there.

    Name the record by KEY and TIME, or by its offset.
    """
    by_offset = offset is not None
    if by_offset == (key is not None and event_time is not None) or (by_offset and key is not None):
        raise typer.BadParameter("name the record by KEY and TIME, or by --offset alone")
    if not by_offset and (partition is not None or day is not None):
        raise typer.BadParameter("--partition and --day go with --offset; name it, too")
    span = None if event_time is None else parsed_span("TIME", event_time)
    arrival_unit = None if day is None else parsed_day("--day", day)
    settings, found = declared(pipeline)
    name = chosen_windows(found, windows)
    text = f"{pipeline} {name}: reading"
    with reading(context, settings, found.windows[name], text) as row_filter:
        from windows_pipeline.query.records.explain import Explainer

        explainer = Explainer(found, name, settings.warehouse, row_filter)
        if offset is not None:
            asked = f"offset {offset:,} of source partition {partition or '0'}"
            answer = explainer.arrived(partition or "0", offset, arrival_unit, limit)
        elif span is not None:
            asked = f"a record of key {key!r} at {event_time}"
            answer = explainer.at(explainer.parsed_key(key or "", "KEY"), *span, limit)
    if as_json:
        typer.echo(json.dumps(_as_json(answer), indent=1, allow_nan=False))
    else:
        _print(found, asked, answer)
    if answer.are_more:
        say("note", f"there are more such records; raise --limit {limit} to see them")


def _print(pipeline: Pipeline, asked: str, answer: Explanation) -> None:
    for record in answer.records:
        _print_record(record)
    if answer.records:
        return
    CONSOLE.print(f"{pipeline.name}: {asked} is not among the accepted records{_state(answer)}")
    for rejected in answer.rejected:
        names = "key and time" if rejected.names_time else "the key"
        CONSOLE.print(
            f"rejected on {rejected.arrival_unit}, and names {names}: {rejected.reason}: "
            f"{short(rejected.original)}"
        )
    for skipped in answer.skipped:
        CONSOLE.print(
            f"left out on {skipped.arrival_unit} with all its records: {short(skipped.file)}: "
            f"{short(skipped.cause)}"
        )


def _state(answer: Explanation) -> str:
    """How far the pipeline has come, as a record may arrive later."""
    if answer.through is None:
        return f"; nothing is ingested: day {answer.waits_for} is the first"
    return f"; all days through {answer.through} are ingested"


def _print_record(record: ExplainedRecord) -> None:
    CONSOLE.print(
        f"{time_text(record.event_time)}, offset {record.offset:,} of source partition "
        f"{short(record.source_partition)}, arrived on {record.arrival_unit}: "
        f"{record.fate}: {short(record.reason)}"
    )
    if record.stream_time is not None and record.behind_ms is not None:
        behind = timedelta(milliseconds=record.behind_ms)
        watermark, close = map(_time_or_none, (record.watermark, record.close_time))
        CONSOLE.print(
            f"  stream time {time_text(record.stream_time)}, {behind} after it; watermark before "
            f"its day {watermark}; close time {close}"
        )
    for window in record.windows:
        state = "closed" if window.closed else "open"
        CONSOLE.print(
            f"  {time_text(window.start)} to {time_text(window.end)}: {state}, "
            f"{counted(window.record_count, 'record')}"
        )


def _as_json(answer: Explanation) -> dict[str, Any]:
    return {
        "records": [_record_as_json(record) for record in answer.records],
        "are_more": answer.are_more,
        "rejected": [as_json(vars(each)) for each in answer.rejected],
        "skipped": [as_json(vars(each)) for each in answer.skipped],
        "through": as_json(answer.through),
        "waits_for": as_json(answer.waits_for),
    }


def _record_as_json(record: ExplainedRecord) -> dict[str, object]:
    named = {**vars(record), "fate": str(record.fate), "values": dict(record.values)}
    windows = [
        {name: as_json(getattr(window, name)) for name in _OF_WINDOWS} for window in record.windows
    ]
    return {**{name: as_json(value) for name, value in named.items()}, "windows": windows}


def _time_or_none(instant: datetime | None) -> str:
    return "none" if instant is None else time_text(instant)
