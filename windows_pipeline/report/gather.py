"""Reads a report's content: a bounded part of each table's newest version, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from itertools import islice

import pyarrow as pa

from windows_pipeline.config import Pipeline, Windows
from windows_pipeline.plots.bars import Bars
from windows_pipeline.plots.windows import MOST_STRIPS, Strip
from windows_pipeline.query.episodes import Episode, Episodes, read_episodes, worst_alert_ids
from windows_pipeline.query.records.record_times import RecordTimes
from windows_pipeline.query.state import PipelineState, WindowsState, pipeline_state
from windows_pipeline.query.tables.arrival_days import LogPart, log_parts
from windows_pipeline.query.tables.local import LocalTable, NoTableError
from windows_pipeline.query.tables.newest_rows import newest_rows
from windows_pipeline.report.measures import measure_of, numeric_columns
from windows_pipeline.report.records import Counted, Lateness, count_by, read_lateness, read_sizes
from windows_pipeline.report.strips import strip_around
from windows_pipeline.report.tables import TableHealth, table_health
from windows_pipeline.storage.catalog import TableSpec, all_tables, source_tables, window_tables

_SAMPLE = 10
MOST_EPISODES = 40
"""The most episodes that a report shows in full: the worst ones."""


@dataclass(frozen=True)
class WindowsReport:
    """The part of a report on a window definition.

    Attributes:
        name: The definition's name.
        windows: The definition.
        state: How far the definition is.
        episodes: Its episodes; None if there is no table episodes so far.
        worst_alerts: The ids of the alerts of the worst windows of the worst episodes.
        around: The worst episodes, each with the windows before and after.
        late: Records that no window counts, by reason; None without a table.
        sizes: The number of windows by their number of records; None without a table.
        sizes_from: The first arrival day whose windows were read; None if all were.
    """

    name: str
    windows: Windows
    state: WindowsState
    episodes: Episodes | None = None
    worst_alerts: Sequence[str] = ()
    around: tuple[tuple[Episode, Strip], ...] = ()
    late: Counted | None = None
    sizes: Bars | None = None
    sizes_from: date | None = None


@dataclass(frozen=True)
class PipelineReport:
    """The content of a report.

    Attributes:
        pipeline: The pipeline.
        days: The ingested arrival days of the report, in order.
        state: How far the pipeline is.
        definitions: The parts on the window definitions.
        arrived: For each of the days the number of accepted and of rejected records.
        lateness: How late records came.
        rejected: Rejected records, by reason; None without a table.
        rejected_sample: The newest rejected records.
        tables: All tables.
    """

    pipeline: Pipeline
    days: Sequence[date]
    state: PipelineState
    definitions: tuple[WindowsReport, ...]
    arrived: tuple[tuple[int, int], ...]
    lateness: Lateness
    rejected: Counted | None
    rejected_sample: pa.Table | None
    tables: tuple[TableHealth, ...] = field(default_factory=tuple)


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
    source = source_tables(pipeline, warehouse)
    raw = LocalTable(source.raw_events)
    log = log_parts(source.arrival_log)
    days = sorted(
        {
            part.arrival_unit
            for part in log
            if (first or date.min) <= part.arrival_unit <= (last or date.max)
        }
    )
    if not days:
        raise ValueError(
            f"--from and --to must name an ingested day of {pipeline.name}, and no day from "
            f"{first or 'the first'} to {last or 'the last'} is; to see the days: windows-pipeline "
            f"status {pipeline.name}"
        )
    state = pipeline_state(pipeline, warehouse)
    graces = sorted({windows.grace for windows in pipeline.windows.values()})
    times = RecordTimes(pipeline, log, 0)
    rejected = _opened_count(source.rejected_records, "reason", days)
    sample = None
    if rejected is not None and rejected.rows:
        sample = newest_rows(
            source.rejected_records, _SAMPLE, days[0], days[-1], order=("file", "reason")
        ).rows
    return PipelineReport(
        pipeline=pipeline,
        days=days,
        state=state,
        definitions=tuple(_of_windows(pipeline, each, warehouse, days) for each in state.windows),
        arrived=_arrived(log, days),
        lateness=read_lateness(raw, times, days, graces),
        rejected=rejected,
        rejected_sample=sample,
        tables=tuple(table_health(spec) for spec in all_tables(pipeline, warehouse)),
    )


def _of_windows(
    pipeline: Pipeline,
    state: WindowsState,
    warehouse: str,
    days: Sequence[date],
) -> WindowsReport:
    windows = pipeline.windows[state.name]
    tables = window_tables(pipeline, state.name, warehouse)
    final = LocalTable.if_there(tables.final_windows)
    if final is None:
        return WindowsReport(state.name, windows, state)
    sizes, sizes_from = read_sizes(final, days)
    episodes: Episodes | None = None
    worst_alerts: list[str] = []
    around: tuple[tuple[Episode, Strip], ...] = ()
    with suppress(NoTableError):
        alerts = LocalTable(tables.alerts)
        episodes = read_episodes(LocalTable(tables.episodes), windows, days)
        shown = episodes.found[:MOST_EPISODES]
        worst_alerts = worst_alert_ids(shown, alerts, pipeline, state.name)
        around = _around(pipeline, windows, final, alerts, episodes, state.close_time_ms)
    return WindowsReport(
        name=state.name,
        windows=windows,
        state=state,
        episodes=episodes,
        worst_alerts=worst_alerts,
        around=around,
        late=_opened_count(tables.late_records, "reason", days),
        sizes=sizes,
        sizes_from=sizes_from,
    )


def _around(
    pipeline: Pipeline,
    windows: Windows,
    final: LocalTable,
    alerts: LocalTable,
    episodes: Episodes,
    closed_ms: int | None,
) -> tuple[tuple[Episode, Strip], ...]:
    """The windows around the worst episodes, without episodes of rules that no longer exist."""
    numbers = numeric_columns(pipeline, windows)
    length_ms = getattr(windows.spec, "length_ms", 0)
    known = (episode for episode in episodes.found if episode.rule in windows.alerts)
    return tuple(
        (
            episode,
            strip_around(
                final,
                alerts,
                episode,
                measure_of(windows.alerts[episode.rule], numbers),
                length_ms,
                closed_ms,
            ),
        )
        for episode in islice(known, MOST_STRIPS)
    )


def _opened_count(spec: TableSpec, column: str, days: Sequence[date]) -> Counted | None:
    table = LocalTable.if_there(spec)
    return None if table is None else count_by(table, column, days)


def _arrived(log: Sequence[LogPart], days: Sequence[date]) -> tuple[tuple[int, int], ...]:
    accepted = dict.fromkeys(days, 0)
    rejected = dict.fromkeys(days, 0)
    batches: set[tuple[date, int | None]] = set()
    for part in log:
        day = part.arrival_unit
        if day not in accepted:
            continue
        accepted[day] += part.rows
        # Each row of an arrival unit has the rejected records of all its source partitions.
        if (day, part.batch) not in batches:
            batches.add((day, part.batch))
            rejected[day] += part.arrival_unit_rejected
    return tuple((accepted[day], rejected[day]) for day in days)
