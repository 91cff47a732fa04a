"""Leads from an alert's window to its records: `trace`."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from windows_pipeline.cli.arguments import (
    PipelineName,
    WindowsName,
    chosen_windows,
    declared,
    every_windows,
    parsed_day,
    parsed_span,
)
from windows_pipeline.cli.session import reading
from windows_pipeline.cli.terminal.console import CONSOLE
from windows_pipeline.cli.terminal.printed import say
from windows_pipeline.cli.terminal.progress import Status
from windows_pipeline.text.counts import counted
from windows_pipeline.text.instants import time_text
from windows_pipeline.text.values import as_json, short

if TYPE_CHECKING:  # read when the command runs, so that `--help` answers at once
    from windows_pipeline.config import Pipeline, Windows
    from windows_pipeline.query import WindowStore
    from windows_pipeline.query.alert_ids import FoundAlert
    from windows_pipeline.query.episodes import Episode
    from windows_pipeline.query.records.window_trace import WindowTrace
    from windows_pipeline.query.stored_window import StoredWindow
    from windows_pipeline.settings import Settings

_MOST_NAMED = 5


class NamedRow(NamedTuple):
    """What the user gives to identify the row of a row window.

    Attributes:
        partition: Its source partition.
        offset: Its offset in its arrival day and source partition.
        day: Its arrival day.
    """

    partition: str | None = None
    offset: int | None = None
    day: date | None = None

    def names(self, window: StoredWindow) -> bool:
        """Whether a window's row fits what the user knows of the row."""
        columns = ("source_partition", "offset", "record_arrival_unit")
        found = (window.other.get(name) for name in columns)
        return all(asked in (None, own) for asked, own in zip(self, found, strict=True))


def trace(
    context: typer.Context,
    pipeline: PipelineName,
    key: Annotated[
        str | None, typer.Argument(help="The window's key; of several columns, with commas.")
    ] = None,
    window_end: Annotated[
        str | None,
        typer.Argument(metavar="TIME", help="When it ends, or starts, as far as known; UTC."),
    ] = None,
    alert: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The id of an alert, instead of KEY and TIME."),
    ] = None,
    windows: WindowsName = None,
    offset: Annotated[
        int | None, typer.Option(min=0, help="Of a window of rows: the offset of its row.")
    ] = None,
    day: Annotated[
        str | None, typer.Option(metavar="DAY", help="With --offset: the row's arrival day.")
    ] = None,
    partition: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --offset: the row's source partition.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many records to print.")] = 50,
    *,
    in_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Shows an alert's window: its records, why it is final, and what was corrected.

    Name the window by the id of its alert, or by KEY and TIME.
    """
    if (alert is None) == (key is None or window_end is None) or (alert and key is not None):
        raise typer.BadParameter("name the window by KEY and TIME, or by --alert alone")
    if offset is None and (day is not None or partition is not None):
        raise typer.BadParameter("--day and --partition go with --offset; name it, too")
    if alert is not None and offset is not None:
        raise typer.BadParameter("--offset goes with KEY and TIME; an alert's id names the row")
    row_day = None if day is None else parsed_day("--day", day)
    settings, found = declared(pipeline)
    with Status(CONSOLE, f"{pipeline}: reading"):
        from windows_pipeline.query.alert_ids import alert_named

    asked: tuple[str, str, NamedRow] | FoundAlert
    if key is None or window_end is None:
        names = every_windows(found, windows)
        asked = alert_named(alert or "", "--alert", found, settings.warehouse, names)
        name = asked.windows_name
    else:
        name = chosen_windows(found, windows)
        asked = key, window_end, NamedRow(partition, offset, row_day)
    _show(context, settings, found, name, asked, limit, in_json=in_json)


def _show(
    context: typer.Context,
    settings: Settings,
    pipeline: Pipeline,
    windows_name: str,
    asked: tuple[str, str, NamedRow] | FoundAlert,
    limit: int,
    *,
    in_json: bool,
) -> None:
    """Prints a final window with its records, why it is final, and what became of it.

    Args:
        context: The command's context.
        settings: Where the tables lie.
        pipeline: The pipeline.
        windows_name: The window definition.
        asked: The window's alert, which is printed, too; or its key, the time at which it ends or
            starts, as precisely as the user knows, and what the user knows of its row.
        limit: How many records to print.
        in_json: Whether to print JSON.

    Raises:
        UnreadableTableError: Only Spark can read a table.
        ValueError: No window, or several, end or start at the time; or the alert's is gone.
    """
    windows = pipeline.windows[windows_name]
    alert = None if isinstance(asked, tuple) else asked
    if isinstance(asked, tuple) and any(asked[-1]) and not windows.row_key:
        raise ValueError(
            f"--offset: must be left out, as {windows_name} has no windows of rows; leave it out"
        )
    with reading(context, settings, windows, f"{pipeline.name}: reading") as row_filter:
        from windows_pipeline.query import WindowStore
        from windows_pipeline.query.state import close_time_ms
        from windows_pipeline.storage.catalog import specs_of

        store = WindowStore(pipeline, windows_name, settings.warehouse, row_filter=row_filter)
        if isinstance(asked, tuple):
            key, time, row = asked
            found = store.trace(_window(store, store.parsed_key(key, "KEY"), time, row))
        else:
            found = store.trace(store.window_of(asked))
        episode = None if alert is None else _episode(settings, pipeline, alert)
        tables = specs_of(pipeline, settings.warehouse)
        closed_ms = None if alert is None else close_time_ms(tables, windows_name)
    if alert and episode and windows.spec.has_silences and not alert.record_count:
        alert = replace(alert, severity=episode.severity)
    if in_json:
        _print_json(found, alert)
        return
    if alert is not None:
        _print_alert(alert, episode, closed_ms)
    _print(pipeline, store.name, windows, found, limit)


def _episode(settings: Settings, pipeline: Pipeline, alert: FoundAlert) -> Episode | None:
    """An alert's episode; None if an older release wrote the tables, as it stored no episodes."""
    from windows_pipeline.query.episodes import newest_of
    from windows_pipeline.query.tables.local import LocalTable, NoTableError
    from windows_pipeline.storage.catalog import specs_of

    tables = specs_of(pipeline, settings.warehouse).of(alert.windows_name)
    named = [(alert.rule, alert.key, alert.episode_start)]
    with suppress(NoTableError):
        windows = pipeline.windows[alert.windows_name]
        (episode,) = newest_of(LocalTable(tables.episodes), windows, named)
        return episode
    return None


def _print_alert(alert: FoundAlert, episode: Episode | None, closed_ms: int | None) -> None:
    severity = "" if alert.severity is None else f", severity {short(alert.severity)}"
    by = "" if alert.retracted_by is None else f", retracted by correction {alert.retracted_by}"
    CONSOLE.print(f"alert {alert.id}: {alert.rule} of {alert.windows_name}{severity}{by}")
    if episode is not None:
        lasted = f"{time_text(episode.first)} to {time_text(episode.last)}"
        alerts = counted(episode.alerts, "alert")
        CONSOLE.print(f"episode: {lasted}, {alerts}, {episode.state(closed_ms)}")


def _print(pipeline: Pipeline, name: str, windows: Windows, found: WindowTrace, limit: int) -> None:
    from windows_pipeline.cli.terminal.rows import print_grid

    aggregates = [each.name for each in windows.aggregate_list]
    bounds = ["window_start", "window_end"]
    print_grid(name, found.row, ["key", *bounds, *windows.row_key, "record_count", *aggregates])
    _print_reason(found, windows.grace)
    for side, neighbour in (("before", found.before), ("after", found.after)):
        if neighbour is not None:
            CONSOLE.print(f"the window {side}: {_bounds(neighbour)}")
    for firing in found.firings[:limit]:
        CONSOLE.print(_firing_text(firing))
    if len(found.firings) > limit:
        count = len(found.firings)
        say("note", f"it fired {count:,} times; raise --limit {limit} to see all firings")
    for each in found.corrections:
        CONSOLE.print(f"correction {each.number}: {each.change}, as {each.cause!r}")
    _print_records(pipeline, found, limit)


def _window(store: WindowStore, key: object, time: str, row: NamedRow) -> StoredWindow:
    """The window of a key that ends, or starts, at a time.

    Raises:
        ValueError: There is no such window, or there are several.
    """
    instant, last = parsed_span("TIME", time)
    near = [each for each in store.bounded(key, instant, last) if row.names(each)]
    for chosen in (
        [each for each in near if each.end == instant],
        [each for each in near if each.start == instant],
        [each for each in near if instant <= each.end <= last],
        near,
    ):
        if len(chosen) == 1:
            return chosen[0]
        if chosen:
            named = "\n".join(map(_bounds, chosen[:_MOST_NAMED]))
            more = f"\nand {len(chosen) - _MOST_NAMED:,} more" if chosen[_MOST_NAMED:] else ""
            by_row = (
                ", or name the row by --offset, --day and --partition" if chosen[0].other else ""
            )
            raise ValueError(
                f"TIME: must name one window, and {len(chosen)} end or start at {time}; write one "
                f"of these ends{by_row}:\n{named}{more}"
            )
    of_row = " whose row has this offset, day and partition" if any(row) else ""
    raise ValueError(
        f"{store.name}: no window of key {key!r}{of_row} ends or starts at {time}; take key and "
        "window_end from a row of alerts"
    )


def _print_reason(found: WindowTrace, grace_ms: int) -> None:
    closed_at_ms = found.closed_at_ms
    if closed_at_ms is None:
        return
    close = time_text(closed_at_ms)
    CONSOLE.print(
        f"final: arrival day {found.window.arrival_unit} moved the close time to {close}, past the "
        f"window's end; the grace is {timedelta(milliseconds=grace_ms)}"
    )


def _print_records(pipeline: Pipeline, found: WindowTrace, limit: int) -> None:
    from windows_pipeline.cli.terminal.rows import print_grid

    source, records = pipeline.source, found.records
    arrival = [source.arrival_column] if source.arrival_column else []
    first = ["arrival_unit", "offset", "event_time", *arrival, *source.values, "behind_ms"]
    print_grid("records", records.slice(0, limit), first, newest_last=False)
    if records.num_rows > limit:
        say("note", f"there are {records.num_rows:,} records; raise --limit {limit} to see them")
    if found.around.num_rows:
        last = found.around["event_time"][-1].as_py()
        is_silent = last < found.window.start
        later = "; no closed window counts a later one" if is_silent else " and the first after it"
        title = f"the key's last record before the window{later}"
        print_grid(title, found.around, first, newest_last=False)


def _firing_text(firing: StoredWindow) -> str:
    """A firing in a line: when and why, and its aggregates (rule E2)."""
    of = firing.other
    values = [f"{name} {short(value)}" for name, value in firing.values.items()]
    result = ", ".join([counted(firing.record_count, "record"), *values])
    return (
        f"firing {of['firing_id']}: {of['reason']}, by {of['cause']}, at stream time "
        f"{time_text(of['stream_time'])}: {result}"
    )


def _firing_as_json(firing: StoredWindow) -> dict[str, object]:
    named = {"record_count": firing.record_count, **firing.values, "failed": list(firing.failed)}
    listed = {**firing.other, **named, "is_final": firing.closed}
    return {name: as_json(value) for name, value in listed.items()}


def _print_json(found: WindowTrace, alert: FoundAlert | None) -> None:
    from windows_pipeline.cli.terminal.rows import json_rows

    raised = None
    if alert is not None:
        names = ("id", "windows_name", "rule", "severity", "retracted_by")
        raised = {name: as_json(getattr(alert, name)) for name in names}
    answer = {
        "alert": raised,
        "window": json_rows(found.row)[0],
        "closed_at_ms": found.closed_at_ms,
        "before": None if found.before is None else _bounds(found.before),
        "after": None if found.after is None else _bounds(found.after),
        "firings": list(map(_firing_as_json, found.firings)),
        "corrections": [
            {"number": each.number, "change": each.change, "cause": each.cause}
            for each in found.corrections
        ],
        "records": json_rows(found.records),
        "around": json_rows(found.around),
    }
    typer.echo(json.dumps(answer, indent=1, allow_nan=False))


def _bounds(window: StoredWindow) -> str:
    """A window as one line; for a row window, with the values that identify its row."""
    bounds = f"{time_text(window.start)} to {time_text(window.end)}"
    count = counted(window.record_count, "record")
    of = window.other
    if "record_arrival_unit" not in of:
        return f"{bounds}, {count}"
    row = (
        f"{time_text(of['event_time'])}, offset {of['offset']} of {of['record_arrival_unit']}, "
        f"source partition {of['source_partition']}"
    )
    return f"{bounds}, {count}, of the row at {row}"
