"""Lists the worst episodes of alerts, without Spark: `episodes`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from windows_pipeline.cli.arguments import (
    FirstDay,
    LastDay,
    PipelineName,
    declared,
    every_windows,
    parsed_days,
)
from windows_pipeline.cli.questions.newest import AnyWindows, AsJson
from windows_pipeline.cli.terminal.console import CONSOLE
from windows_pipeline.cli.terminal.printed import say
from windows_pipeline.cli.terminal.progress import Status

if TYPE_CHECKING:
    from datetime import date

    import pyarrow as pa

    from windows_pipeline.config import Pipeline
    from windows_pipeline.settings import Settings

FIRST_COLUMNS = ("_id", "state", "key", "rule", "length", "severity", "episode_start", "until")
"""What users look for first; the rest follows in the table's order."""
_NOT_IN_THE_GRID = ("worst", "open_until", "has_alert")
"""Columns that stand in others, as texts for people."""


def episodes(
    pipeline: PipelineName,
    windows: AnyWindows = None,
    rule: Annotated[str | None, typer.Option(help="Only this rule.")] = None,
    key: Annotated[str | None, typer.Option(help="Only this key.")] = None,
    first: FirstDay = None,
    last: LastDay = None,
    limit: Annotated[int, typer.Option(min=1, help="How many, the worst first.")] = 20,
    *,
    as_json: AsJson = False,
) -> None:
    """Lists episodes: alerts of one key and rule whose windows overlap, the worst first.

    Each is shown as it stood at the close of the newest of the days that has a row of it. `trace
    --alert` takes the id in `_id`, of the alert of the worst window.
    """
    days = parsed_days(first, last)
    settings, found = declared(pipeline)
    names = every_windows(found, windows)
    with Status(CONSOLE, f"{pipeline}: reading") as status:
        from windows_pipeline.cli.terminal.rows import print_grid, print_json
        from windows_pipeline.query.episodes import LENGTH, WORST_WINDOW
        from windows_pipeline.query.tables.local import NoTableError
        from windows_pipeline.storage.catalog import specs_of

        shown: list[tuple[str, pa.Table, int]] = []
        missing: list[NoTableError] = []
        for name in names:
            status.update(f"{pipeline}/{name}/episodes: reading")
            try:
                shown.append((name, *_worst(settings, found, name, rule, key, days, limit)))
            except NoTableError as error:
                missing.append(error)
    if not shown:
        raise NoTableError(*(table for absent in missing for table in absent.tables))
    for absent in missing:
        say("warning", str(absent))
    if as_json:
        stored = [(name, rows.drop_columns([LENGTH, WORST_WINDOW])) for name, rows, _ in shown]
        print_json(stored, newest_last=False)
        return
    for name, rows, count in shown:
        title = specs_of(found, settings.warehouse).of(name).episodes.name
        print_grid(title, rows.drop_columns(_NOT_IN_THE_GRID), FIRST_COLUMNS, newest_last=False)
        if count > rows.num_rows:
            say("note", f"{title} has {count:,} episodes; raise --limit {limit} to see them")


def _worst(
    settings: Settings,
    pipeline: Pipeline,
    windows_name: str,
    rule: str | None,
    key: str | None,
    days: tuple[date | None, date | None],
    limit: int,
) -> tuple[pa.Table, int]:
    """The worst episodes of a definition, as rows with `_id` and `state`, and how many there are.

    Raises:
        NoTableError: A table does not exist.
        UnreadableTableError: Only Spark can read a table.
    """
    from datetime import date

    from windows_pipeline.query.episodes import read_episodes, rows_of
    from windows_pipeline.query.state import close_time_ms
    from windows_pipeline.query.tables.local import LocalTable
    from windows_pipeline.storage.catalog import specs_of

    of_pipeline = specs_of(pipeline, settings.warehouse)
    tables = of_pipeline.of(windows_name)
    table, alerts = LocalTable(tables.episodes), LocalTable(tables.alerts)
    windows = pipeline.windows[windows_name]
    keys = None
    if key is not None:
        has_key = bool(windows.keyed(pipeline.source).key_columns)
        keys = table.key.one(table.key.parsed(key, "--key", has_key=has_key), "--key")
    first, last = days
    wanted = [day for day in table.days if (first or date.min) <= day <= (last or date.max)]
    read = read_episodes(table, windows, wanted, keys)
    found = [episode for episode in read.found if rule in (None, episode.rule)]
    closed_ms = close_time_ms(of_pipeline, windows_name, last)
    rows = rows_of(found[:limit], alerts, pipeline, windows_name, closed_ms, table.schema)
    return rows, len(found)
