"""Shows the windows of a key, without Spark: `fetch`."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from windows_pipeline.cli.arguments import (
    PipelineName,
    WindowsName,
    chosen_windows,
    declared,
    parsed_instant,
)
from windows_pipeline.cli.terminal.console import CONSOLE
from windows_pipeline.cli.terminal.printed import say
from windows_pipeline.cli.terminal.progress import Status

if TYPE_CHECKING:  # read when the command runs, so that `--help` answers at once
    import pyarrow as pa

    from windows_pipeline.config import Pipeline
    from windows_pipeline.query import WindowStore
    from windows_pipeline.query.stored_window import FoundWindows
    from windows_pipeline.settings import Settings

_FIRST_COLUMNS = ("key", "window_start", "window_end", "record_count")


def fetch(
    pipeline: PipelineName,
    key: Annotated[
        str | None,
        typer.Argument(help="The windows' key, its parts with commas; the null key if left out."),
    ] = None,
    windows: WindowsName = None,
    start_from: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="The first start (of sessions: end), UTC."),
    ] = None,
    start_to: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="The last start, UTC.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many windows.")] = 100,
    *,
    newest_first: Annotated[
        bool, typer.Option("--newest-first", help="The newest window first.")
    ] = False,
    with_open: Annotated[
        bool, typer.Option("--open", help="Every window as it stands now, open ones included.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON list of all columns; times are UTC.")
    ] = False,
) -> None:
    """Lists the closed windows of a key that start between two times, both included.

    Of sessions it lists those that end at or after the first time, and start at or before the last.
    """
    first = None if start_from is None else parsed_instant("--from", start_from)
    last = None if start_to is None else parsed_instant("--to", start_to)
    if first is not None and last is not None and last < first:
        raise typer.BadParameter(
            f"--to {start_to} must not be before --from {start_from}; swap them, or leave one out"
        )
    settings, found = declared(pipeline)
    name = chosen_windows(found, windows)
    if with_open and not found.windows[name].partial_results:
        say("note", f"{pipeline}/{name} has partial_results: false, so no open windows are stored")
    with Status(CONSOLE, f"{pipeline} {name}: reading"):
        store = _opened(settings, found, name, with_open=with_open)
        answer = _asked(store, key, first, last, newest_first=newest_first)
        rows, are_more = _first_rows(answer, limit)
    from windows_pipeline.cli.terminal.rows import print_grid, print_json

    if as_json:
        print_json([(None, rows)], newest_last=False)
    elif not rows.num_rows:
        CONSOLE.print(_none_found(store, key, start_from, start_to))
    else:
        aggregates = [aggregate.name for aggregate in found.windows[name].aggregate_list]
        print_grid(store.name, rows, [*_FIRST_COLUMNS, *aggregates], newest_last=False)
    if are_more:
        say("note", f"{store.name} has more windows; raise --limit {limit} to see them")


def _none_found(
    store: WindowStore, key: str | None, start_from: str | None, start_to: str | None
) -> str:
    """Says that a key has no window between the times, and whether it has any at all."""
    of_key = "the null key" if key is None else f"key {key!r}"
    if start_from is None and start_to is None:
        return f"{store.name}: has no window of {of_key}"
    between = [f"from {start_from}"] * (start_from is not None)
    between += [f"to {start_to}"] * (start_to is not None)
    has_any = bool(_first_rows(_asked(store, key, None, None, newest_first=False), 1)[0].num_rows)
    others = f"; {of_key} has windows at other times" if has_any else ", nor at any other time"
    return f"{store.name}: has no window of {of_key} {' '.join(between)}{others}"


def _opened(
    settings: Settings, pipeline: Pipeline, windows_name: str, *, with_open: bool
) -> WindowStore:
    """The store of closed windows, or of all.

    Raises:
        NoTableError: The table does not exist.
    """
    from windows_pipeline.query import WindowStore

    return WindowStore(
        pipeline, windows_name, settings.warehouse, "current" if with_open else "final"
    )


def _asked(
    store: WindowStore,
    text: str | None,
    first: datetime | None,
    last: datetime | None,
    *,
    newest_first: bool,
) -> FoundWindows:
    """The windows of a key between two times.

    Raises:
        ValueError: The text is no key.
    """
    key = store.parsed_key(text, "KEY")
    if not store.keeps_bounds:
        return store.find_sessions(key, first, last, newest_first=newest_first)
    return store.fetch(key, first, last, newest_first=newest_first)


def _first_rows(found: FoundWindows, limit: int) -> tuple[pa.Table, bool]:
    """The first rows, and whether there are more."""
    import pyarrow as pa

    # One more row than asked for says that there are more.
    batches, row_count = [], 0
    for batch in found.batches():
        batches.append(batch)
        row_count += batch.num_rows
        if row_count > limit:
            break
    rows = pa.Table.from_batches(batches, found.schema)
    return rows.slice(0, limit), row_count > limit
