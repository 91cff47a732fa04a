"""Shows the newest rows of tables, without Spark: `alerts`, `late`, `rejected` and `rows`.

Only `alerts --try` starts Spark, to raise alerts as a run does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from windows_pipeline.cli.arguments import (
    FirstDay,
    LastDay,
    PipelineName,
    chosen_windows,
    declared,
    every_windows,
    parsed_days,
    with_tables,
)
from windows_pipeline.cli.session import begin
from windows_pipeline.cli.terminal.console import CONSOLE
from windows_pipeline.cli.terminal.printed import say
from windows_pipeline.cli.terminal.progress import Status

if TYPE_CHECKING:
    from windows_pipeline.config import Pipeline
    from windows_pipeline.query.tables.newest_rows import NewestRows
    from windows_pipeline.storage.catalog import TableSpec

AnyWindows = Annotated[
    str | None, typer.Option("--windows", help="A window definition; each one if left out.")
]
Limit = Annotated[int, typer.Option(min=1, help="How many rows of a table, the newest.")]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print a JSON list of all columns; times are UTC.")
]


class Shown(NamedTuple):
    """A table whose rows are shown.

    Attributes:
        windows: The window definition; None if the table belongs to the source.
        spec: The table.
        first_columns: The columns that are shown first, in order.
        episodes: The table episodes, if the rows are alerts, which are shown with their ids.
    """

    windows: str | None
    spec: TableSpec
    first_columns: Sequence[str]
    episodes: TableSpec | None = None


def alerts(
    context: typer.Context,
    pipeline: PipelineName,
    windows: AnyWindows = None,
    first: FirstDay = None,
    last: LastDay = None,
    limit: Limit = 20,
    tried: Annotated[
        str | None,
        typer.Option(
            "--try",
            metavar="RULE",
            help="What a rule of the file, or a condition, would raise, by day; writes nothing.",
        ),
    ] = None,
    *,
    with_retracted: Annotated[
        bool, typer.Option("--with-retracted", help="Also those that a correction retracted.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Lists the newest alerts that no correction retracted, the newest last.

    They are in the order of arrival day and window end. `trace --alert` takes the id in `_id`. The
    severity of a silence is that of its episode. With --try it starts Spark, and shows what a rule
    would raise over the published windows.
    """
    days = parsed_days(first, last)
    if tried is not None:
        if with_retracted:
            raise typer.BadParameter("--with-retracted: must be left out with --try; leave it out")
        _try(context, pipeline, windows, tried, days, limit, as_json=as_json)
        return
    settings, found = declared(pipeline)
    from windows_pipeline.storage.catalog import specs_of

    shown = []
    for name in every_windows(found, windows):
        tables = specs_of(found, settings.warehouse).of(name)
        aggregates = [aggregate.name for aggregate in found.windows[name].aggregate_list]
        # What users look for first; the rest follows in the table's order.
        first_columns = [
            *("_id", "rule", "key", "window_start", "window_end", "severity", "episode_start"),
            *aggregates,
        ]
        shown.append(Shown(name, tables.alerts, first_columns, tables.episodes))
    null_column = None if with_retracted else "retracted_by"
    _show(found, shown, days, limit, as_json=as_json, null_column=null_column)


def _try(
    context: typer.Context,
    pipeline: str,
    windows_name: str | None,
    text: str,
    days: tuple[date | None, date | None],
    limit: int,
    *,
    as_json: bool,
) -> None:
    """Shows what a rule would raise; the rule is known to be right before Spark starts.

    Raises:
        ValueError: The text is neither a rule of the definition nor a condition.
    """
    settings, found = with_tables(pipeline)
    name = chosen_windows(found, windows_name)
    windows = found.windows[name]
    rule = windows.alerts.get(text)
    if rule is None:
        from windows_pipeline.alerts.rule_sql import RuleError, compile_rule
        from windows_pipeline.config import Rule

        try:
            compile_rule(text, windows.result_columns(found.source), "boolean")
        except RuleError as error:
            rules = f", or name a rule: {', '.join(windows.alerts)}" if windows.alerts else ""
            raise ValueError(f"--try: {error}{rules}") from None
        rule = Rule(when=text, severity="0")
    begin(context, f"{pipeline}: starting Spark")
    from windows_pipeline.cli.jobs.tried import try_rule

    try_rule(context, settings, found, name, text, rule, days, limit, as_json=as_json)


def late(
    pipeline: PipelineName,
    windows: AnyWindows = None,
    first: FirstDay = None,
    last: LastDay = None,
    limit: Limit = 20,
    *,
    as_json: AsJson = False,
) -> None:
    """Lists the newest records that no window counts, the newest last.

    They are in the order of arrival day and event time.
    """
    days = parsed_days(first, last)
    settings, found = declared(pipeline)
    from windows_pipeline.storage.catalog import specs_of

    shown = []
    for name in every_windows(found, windows):
        values = found.windows[name].keyed(found.source).values
        first_columns = ("key", "event_time", "reason", "late_by_ms", *values)
        spec = specs_of(found, settings.warehouse).of(name).late_records
        shown.append(Shown(name, spec, first_columns))
    _show(found, shown, days, limit, as_json=as_json)


def rejected(
    pipeline: PipelineName,
    first: FirstDay = None,
    last: LastDay = None,
    limit: Limit = 20,
    *,
    as_json: AsJson = False,
) -> None:
    """Lists the newest rejected records, the newest last: by arrival day, then by file."""
    days = parsed_days(first, last)
    settings, found = declared(pipeline)
    from windows_pipeline.storage.catalog import specs_of

    spec = specs_of(found, settings.warehouse).rejected_records
    shown = [Shown(None, spec, ("reason", "file", "original"))]
    _show(found, shown, days, limit, as_json=as_json, order=("file", "reason"))


def rows(
    pipeline: PipelineName,
    table: Annotated[
        str,
        typer.Argument(metavar="TABLE", help="A table of windows, such as early_warnings."),
    ],
    windows: AnyWindows = None,
    first: FirstDay = None,
    last: LastDay = None,
    limit: Limit = 20,
    *,
    as_json: AsJson = False,
) -> None:
    """Lists the newest rows of a table, the newest last: by arrival day, then by window.

    Of early warnings, firings, corrections or failed windows, as of any other table of windows.
    """
    days = parsed_days(first, last)
    settings, found = declared(pipeline)
    from windows_pipeline.storage.catalog import specs_of
    from windows_pipeline.text.problems import nearest

    of_pipeline = specs_of(found, settings.warehouse)
    written = {
        name: {spec.short_name: spec for spec in of_pipeline.of(name).written}
        for name in every_windows(found, windows)
    }
    shown = [
        Shown(name, of_windows[table], _bounds_first(of_windows[table]))
        for name, of_windows in written.items()
        if table in of_windows
    ]
    if not shown:
        names = list(dict.fromkeys(name for of_windows in written.values() for name in of_windows))
        fix = nearest(table, names, f"use one of {', '.join(names)}")
        raise ValueError(f"TABLE: {', '.join(written)}: no table {table!r} is written; {fix}")
    _show(found, shown, days, limit, as_json=as_json)


def _bounds_first(spec: TableSpec) -> list[str]:
    known = {column.name for column in spec.columns}
    return [name for name in ("key", "window_start", "window_end") if name in known]


def _show(
    pipeline: Pipeline,
    tables: Sequence[Shown],
    days: tuple[date | None, date | None],
    limit: int,
    *,
    as_json: bool,
    null_column: str | None = None,
    order: Sequence[str] | None = None,
) -> None:
    """Prints the newest rows of each table; a table that does not exist is a warning.

    Raises:
        NoTableError: None of the tables exists.
        UnreadableTableError: A table cannot be read without Spark.
    """
    found: list[tuple[Shown, NewestRows]] = []
    missing: list[NoTableError] = []
    with Status(CONSOLE, f"{pipeline.name}: reading") as status:
        from windows_pipeline.cli.terminal.rows import print_grid, print_json
        from windows_pipeline.query.alert_ids import with_ids
        from windows_pipeline.query.episodes import with_silences
        from windows_pipeline.query.tables.local import NoTableError
        from windows_pipeline.query.tables.newest_rows import newest_rows

        for table in tables:
            status.update(f"{table.spec.name}: reading")
            try:
                rows = newest_rows(table.spec, limit, *days, null_column, order)
            except NoTableError as error:
                missing.append(error)
                continue
            if table.episodes is not None and table.windows is not None:
                windows = pipeline.windows[table.windows]
                with_id = with_ids(rows.rows, pipeline, table.windows)
                rows = replace(rows, rows=with_silences(with_id, table.episodes, windows))
            found.append((table, rows))
    if not found:
        raise NoTableError(*(table for absent in missing for table in absent.tables))
    for absent in missing:
        say("warning", str(absent))
    if as_json:
        print_json([(table.windows, rows.rows) for table, rows in found])
        return
    for table, rows in found:
        print_grid(table.spec.name, rows.rows, table.first_columns)
        if rows.are_more:
            more = f"{table.spec.name} has older rows; raise --limit {limit} to see them"
            of_alerts = f"; a row for each episode: windows-pipeline episodes {pipeline.name}"
            say("note", more if table.episodes is None else more + of_alerts)
