"""Reads a report's content: a bounded part of each table's newest version, without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from itertools import islice

from windows_pipeline.config import Pipeline, Windows
from windows_pipeline.plots.windows import MOST_STRIPS, Strip
from windows_pipeline.query.episodes import Episode, Episodes, read_episodes, worst_alert_ids
from windows_pipeline.query.records.record_times import RecordTimes
from windows_pipeline.query.state import WindowsState, pipeline_state
from windows_pipeline.query.tables.arrival_days import LogPart, log_parts
from windows_pipeline.query.tables.local import LocalTable, NoTableError
from windows_pipeline.query.tables.newest_rows import NewestRows, newest_rows
from windows_pipeline.report.measures import measure_of, numeric_columns
from windows_pipeline.report.records import Lateness, by_grace, read_lateness
from windows_pipeline.report.strips import strip_around
from windows_pipeline.storage.catalog import PipelineSpecs, TableSpec, WindowTables, specs_of

MOST_EPISODES = 40
"""The most episodes that a report shows in full: the worst ones."""
MOST_ROWS = 10
"""The most rows that a report shows of what was warned of, the newest."""
_WARNED = ("early_warnings", "firings", "corrections", "failed_windows")


@dataclass(frozen=True)
class WindowsReport:
    """The part of a report on a window definition.

    Attributes:
        name: The definition's name.
        windows: The definition.
        close_time_ms: The close time, for which episodes are open or over; None if nothing is
            closed.
        episodes: Its episodes; None if there is no table episodes so far.
        worst_alerts: The ids of the alerts of the worst windows of the worst episodes.
        around: The worst episodes, each with the windows before and after.
        warned: The newest early warnings, firings, corrections and failed windows, if any.
    """

    name: str
    windows: Windows
    close_time_ms: int | None
    episodes: Episodes | None = None
    worst_alerts: Sequence[str] = ()
    around: Sequence[tuple[Episode, Strip]] = ()
    warned: Mapping[str, NewestRows] = field(default_factory=dict)


@dataclass(frozen=True)
class PipelineReport:
    """The content of a report.

    Attributes:
        pipeline: The pipeline.
        days: The ingested arrival days of the report, in order.
        through: The last day up to which all days are ingested; None before the first.
        definitions: The parts on the window definitions.
        accepted: The number of accepted records of the days.
        rejected: The number of rejected ones.
        lateness: How late records came.
    """

    pipeline: Pipeline
    days: Sequence[date]
    through: date | None
    definitions: Sequence[WindowsReport]
    accepted: int
    rejected: int
    lateness: Lateness


def read_report(
    pipeline: Pipeline,
    warehouse: str,
    first: date | None = None,
    last: date | None = None,
) -> PipelineReport:
    """Reads what a report of some arrival days shows.

    Args:
        pipeline: The pipeline.
        warehouse: The folder of all tables.
        first: The first arrival day; None for the first ingested one.
        last: The last arrival day; None for the last ingested one.

    Raises:
        NoTableError: Nothing is ingested so far.
        TableDamagedError: A file of a table is damaged.
        UnreadableTableError: Only Spark can read a table.
        ValueError: None of the days is ingested.
    """
    source = specs_of(pipeline, warehouse)
    raw = LocalTable(source.raw_events)
    log = log_parts(source.arrival_log)
    from_day, to_day = first or date.min, last or date.max
    parts = [part for part in log if from_day <= part.arrival_unit <= to_day]
    days = sorted({part.arrival_unit for part in parts})
    if not days:
        raise ValueError(
            f"--from and --to must name an ingested day of {pipeline.name}, and no day from "
            f"{first or 'the first'} to {last or 'the last'} is; to see the days: windows-pipeline "
            f"status {pipeline.name}"
        )
    state = pipeline_state(source)
    graces = [grace for _, grace in by_grace(pipeline)]
    return PipelineReport(
        pipeline=pipeline,
        days=days,
        through=state.through,
        definitions=[_of_windows(source, each, days) for each in state.windows],
        accepted=sum(part.rows for part in parts),
        rejected=_rejected(parts),
        lateness=read_lateness(raw, RecordTimes(pipeline, log, 0), days, graces),
    )


def _of_windows(source: PipelineSpecs, state: WindowsState, days: Sequence[date]) -> WindowsReport:
    pipeline, tables = source.pipeline, source.of(state.name)
    windows, closed_ms = pipeline.windows[state.name], state.close_time_ms
    warned = _warned(tables, days)
    try:
        final, alerts, stored = map(
            LocalTable, (tables.final_windows, tables.alerts, tables.episodes)
        )
    except NoTableError:
        return WindowsReport(state.name, windows, closed_ms, warned=warned)
    episodes = read_episodes(stored, windows, days)
    shown = episodes.found[:MOST_EPISODES]
    numbers = numeric_columns(pipeline, windows)
    length_ms = windows.spec.length_ms or 0
    # An edited definition may no longer have the rule of an old episode.
    known = (episode for episode in episodes.found if episode.rule in windows.alerts)
    around = [
        (
            episode,
            strip_around(
                *(final, alerts, episode),
                measure_of(windows.alerts[episode.rule], numbers),
                *(length_ms, closed_ms),
            ),
        )
        for episode in islice(known, MOST_STRIPS)
    ]
    ids = worst_alert_ids(shown, alerts, pipeline, state.name)
    return WindowsReport(state.name, windows, closed_ms, episodes, ids, around, warned)


def _warned(tables: WindowTables[TableSpec], days: Sequence[date]) -> dict[str, NewestRows]:
    found = {}
    for table in tables.written:
        if table.short_name in _WARNED:
            with suppress(NoTableError):
                rows = newest_rows(table, MOST_ROWS, days[0], days[-1])
                if rows.rows.num_rows:
                    found[table.short_name] = rows
    return found


def _rejected(parts: Sequence[LogPart]) -> int:
    """Each row of an arrival unit has the rejected records of all its source partitions."""
    of_units = {(part.arrival_unit, part.batch): part.arrival_unit_rejected for part in parts}
    return sum(of_units.values())
