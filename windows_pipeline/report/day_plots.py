"""The plots of one arrival day, as pictures in Markdown; a function draws any day of its tables."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from windows_pipeline.plots.bars import lateness, records_a_window
from windows_pipeline.plots.svg import picture
from windows_pipeline.plots.windows import MOST_STRIPS, windows_over_time
from windows_pipeline.query.episodes import Episode, read_episodes
from windows_pipeline.query.records.record_times import RecordTimes
from windows_pipeline.query.tables.arrival_days import log_parts, watermark_after_ms
from windows_pipeline.query.tables.local import LocalTable
from windows_pipeline.report.measures import measure_of, numeric_columns
from windows_pipeline.report.records import by_grace, caught_text, read_lateness, read_sizes
from windows_pipeline.report.strips import strip_of_day
from windows_pipeline.storage.catalog import PipelineSpecs, TableSpec, WindowTables

Drawn = Callable[[date], str]
"""Draws the plot of a day; raises UnreadableTableError where a table can't be read."""


def lateness_plot(tables: PipelineSpecs) -> Drawn:
    """How late the records of a day came, with each definition's grace.

    Args:
        tables: The tables of the pipeline.

    Raises:
        UnreadableTableError: A table can't be read.
    """
    pipeline = tables.pipeline
    raw = LocalTable(tables.raw_events)
    times = RecordTimes(pipeline, log_parts(tables.arrival_log), 0)

    def drawn(day: date) -> str:
        found = read_lateness(raw, times, [day])
        plot = lateness(found.bars, by_grace(pipeline))
        return f"{caught_text(found.most_ms)}\n\n{picture(plot, 'lateness')}"

    return drawn


def size_plot(tables: WindowTables[TableSpec]) -> Drawn:
    """How many of the windows that a day closed have how many records; see `lateness_plot`."""
    final = LocalTable(tables.final_windows)
    return lambda day: picture(records_a_window(read_sizes(final, day)), "records")


def alert_plot(of_pipeline: PipelineSpecs, windows_name: str) -> Drawn:
    """The windows that a day closed, of the eight worst pairs of a key and a rule that alerts.

    See `lateness_plot`.
    """
    windows = of_pipeline.pipeline.windows[windows_name]
    numbers = numeric_columns(of_pipeline.pipeline, windows)
    tables = of_pipeline.of(windows_name)
    episodes, alerts, final = map(
        LocalTable, (tables.episodes, tables.alerts, tables.final_windows)
    )
    log = log_parts(of_pipeline.arrival_log)

    def drawn(day: date) -> str:
        worst: dict[tuple[str, str], Episode] = {}
        for episode in read_episodes(episodes, windows, [day]).found:
            if episode.rule in windows.alerts:
                # A null key and an empty text are shown alike, and are two keys.
                worst.setdefault((repr(episode.key), episode.rule), episode)
        if not worst:
            silences = (
                " The checks of the rules list silences that began on earlier days."
                if windows.spec.has_silences
                else ""
            )
            return f"No window that this day closed broke a rule.{silences}"
        watermark_ms = watermark_after_ms(log, day)
        closed_ms = None if watermark_ms is None else watermark_ms - windows.spec.close_delay_ms
        strips = [
            strip_of_day(
                *(final, alerts, episode),
                measure_of(windows.alerts[episode.rule], numbers),
                *(day, closed_ms),
            )
            for episode in list(worst.values())[:MOST_STRIPS]
        ]
        return picture(windows_over_time(strips), "alerts")

    return drawn
