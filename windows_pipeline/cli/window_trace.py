"""Leads from an alert's window to its records, without Spark: `trace`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice

import pyarrow as pa
import typer

from windows_pipeline.cli.arguments import parsed_span
from windows_pipeline.cli.console import CONSOLE
from windows_pipeline.cli.printed import tell
from windows_pipeline.cli.rows import json_rows, json_value, print_grid
from windows_pipeline.config import Pipeline
from windows_pipeline.query import WindowStore
from windows_pipeline.query.stored_window import FoundWindows, StoredWindow
from windows_pipeline.query.window_records import TracedWindow, records_of_window
from windows_pipeline.settings import Settings
from windows_pipeline.text.counts import counted

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_MOST_NAMED = 5


@dataclass(frozen=True)
class _Found:
    """A window with what a trace shows of it: its row, its records, and its neighbours."""

    row: pa.Table
    window: StoredWindow
    traced: TracedWindow
    before: StoredWindow | None
    after: StoredWindow | None


def trace_window(
    settings: Settings,
    pipeline: Pipeline,
    windows_name: str,
    key: str,
    time: str,
    limit: int,
    *,
    as_json: bool,
) -> None:
    """Prints a final window of a key with its records, why it is final, and what became of it.

    Args:
        settings: Where the tables lie.
        pipeline: The pipeline.
        windows_name: The window definition; not one of rows.
        key: The window's key, as the shell has it.
        time: When the window ends, or starts, as exactly as is known.
        limit: How many records to print.
        as_json: Whether to print JSON.

    Raises:
        UnreadableTableError: A table is not for readers other than Spark.
        ValueError: No window, or several, end or start then.
    """
    store = WindowStore(pipeline, windows_name, settings.warehouse)
    value = store.parsed_key(key, "KEY")
    window = _window(store, value, time)
    row = _row(store, value, window)
    traced = records_of_window(
        pipeline, windows_name, settings.warehouse, window, store.key.one(value, "KEY")
    )
    found = _Found(row, window, traced, *_neighbours(store, value, window))
    history = store.history(value, window.start)
    corrections = [each for each in history.corrections if each.end == window.end]
    firings = [each for each in history.firings if each.end == window.end]
    if as_json:
        _print_json(found, firings, [vars(each) for each in corrections])
        return
    aggregates = [each.name for each in pipeline.windows[windows_name].aggregate_list]
    print_grid(store.name, row, ["key", "window_start", "window_end", "record_count", *aggregates])
    _print_reason(found, pipeline.windows[windows_name].grace)
    for name, neighbour in (("before", found.before), ("after", found.after)):
        if neighbour is not None:
            CONSOLE.print(f"the window {name}: {_bounds(neighbour)}")
    for firing in firings[:limit]:
        CONSOLE.print(_firing_text(firing))
    if len(firings) > limit:
        tell("note", f"it fired {len(firings):,} times; raise --limit {limit} to see all firings")
    for each in corrections:
        CONSOLE.print(f"correction {each.number}: {each.change}, as {each.cause!r}")
    _print_records(pipeline, traced.records, limit)


def _window(store: WindowStore, key: object, time: str) -> StoredWindow:
    """The window of a key that ends, or starts, at a time.

    Raises:
        ValueError: There is none, or there are several.
    """
    instant, last = parsed_span("TIME", time)
    near = list(_near(store, key, instant, last))
    for chosen in (
        [each for each in near if each.end == instant],
        [each for each in near if each.start == instant],
        [each for each in near if instant <= each.end <= last],
        [each for each in near if instant <= each.start <= last],
    ):
        if len(chosen) == 1:
            return chosen[0]
        if chosen:
            named = "\n".join(map(_bounds, chosen[:_MOST_NAMED]))
            raise ValueError(
                f"TIME: must name one window, and {len(chosen)} end or start at {time}; write one "
                f"of these ends:\n{named}"
            )
    raise ValueError(
        f"{store.name}: no window of key {key!r} ends or starts at {time}; take key and window_end "
        "from a row of alerts"
    )


def _near(
    store: WindowStore, key: object, instant: datetime, last: datetime
) -> Iterator[StoredWindow]:
    """The windows of a key that end or start between two instants."""
    if store.has_sessions:
        yield from store.find_sessions(key, instant, last)
        return
    seen = set()
    lengths = {each.end - each.start for each in islice(store.fetch(key), 1)}
    for length in (*lengths, timedelta()):
        for each in store.fetch(key, instant - length, last - length):
            if each.start not in seen:
                seen.add(each.start)
                yield each


def _row(store: WindowStore, key: object, window: StoredWindow) -> pa.Table:
    """The table's row of a window."""
    if store.has_sessions:
        spanning = store.find_sessions(key, window.end, window.start)
        bounds = [(each.start, each.end) for each in spanning]
        return spanning.to_arrow().slice(bounds.index((window.start, window.end)), 1)
    return store.fetch(key, window.start, window.start).to_arrow()


def _neighbours(
    store: WindowStore, key: object, window: StoredWindow
) -> tuple[StoredWindow | None, StoredWindow | None]:
    before: FoundWindows
    if store.has_sessions:
        before = store.find_sessions(key, None, window.start - _MS, newest_first=True)
        after = store.find_sessions(key, window.end + _MS)
    else:
        before = store.backward_fetch(key, None, window.start - _MS)
        after = store.fetch(key, window.start + _MS)
    return next(iter(before), None), next(iter(after), None)


def _print_reason(found: _Found, grace_ms: int) -> None:
    closed_at_ms = found.traced.closed_at_ms
    if closed_at_ms is None:
        return
    close = _text(_EPOCH + timedelta(milliseconds=closed_at_ms))
    CONSOLE.print(
        f"final: arrival day {found.window.arrival_unit} moved the close time to {close}, past its "
        f"end; the grace is {timedelta(milliseconds=grace_ms)}"
    )


def _print_records(pipeline: Pipeline, records: pa.Table, limit: int) -> None:
    source = pipeline.source
    arrival = [source.arrival_column] if source.arrival_column else []
    first = ["arrival_unit", "offset", "event_time", *arrival, *source.values, "late_by_ms"]
    print_grid("records", records.slice(0, limit), first, newest_last=False)
    if records.num_rows > limit:
        tell("note", f"there are {records.num_rows:,} records; raise --limit {limit} to see them")


def _firing_text(firing: StoredWindow) -> str:
    """A firing in a line: when and why, and its aggregates (rule E2)."""
    of = firing.other
    values = [f"{name} {_value(value)}" for name, value in firing.values.items()]
    result = ", ".join([counted(firing.record_count, "record"), *values])
    return (
        f"firing {of['firing_id']}: {of['reason']}, by {of['cause']}, at stream time "
        f"{_text(of['stream_time'])}: {result}"
    )


def _value(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _firing_as_json(firing: StoredWindow) -> dict[str, object]:
    named = {"record_count": firing.record_count, **firing.values, "failed": list(firing.failed)}
    listed = {**firing.other, **named, "is_final": firing.closed}
    return {name: json_value(value) for name, value in listed.items()}


def _print_json(
    found: _Found, firings: list[StoredWindow], corrections: list[dict[str, object]]
) -> None:
    answer = {
        "window": json_rows(found.row)[0],
        "closed_at_ms": found.traced.closed_at_ms,
        "before": None if found.before is None else _bounds(found.before),
        "after": None if found.after is None else _bounds(found.after),
        "firings": list(map(_firing_as_json, firings)),
        "corrections": [
            {name: each[name] for name in ("number", "change", "cause")} for each in corrections
        ],
        "records": json_rows(found.traced.records),
    }
    typer.echo(json.dumps(answer, indent=1, allow_nan=False))


def _bounds(window: StoredWindow) -> str:
    return f"{_text(window.start)} to {_text(window.end)}, {counted(window.record_count, 'record')}"


def _text(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S.%f}"[:-3]
