"""The plots of one arrival day: its windows with alerts, their sizes, how late its records came."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from functools import cached_property

from windows_pipeline.config import Pipeline
from windows_pipeline.plots.bars import lateness, records_a_window
from windows_pipeline.plots.svg import picture
from windows_pipeline.plots.windows import MOST_STRIPS, Strip, windows_over_time
from windows_pipeline.query.episodes import Episode, read_episodes
from windows_pipeline.query.records.record_times import RecordTimes
from windows_pipeline.query.tables.arrival_days import LogPart, log_parts, watermark_after_ms
from windows_pipeline.query.tables.local import LocalTable
from windows_pipeline.report.measures import measure_of, numeric_columns
from windows_pipeline.report.records import caught_text, read_lateness, read_sizes
from windows_pipeline.report.strips import strip_of_day
from windows_pipeline.storage.catalog import source_tables, window_tables
from windows_pipeline.windows import has_silences


class SourcePlots:
    """Plots of a pipeline's records, as pictures in Markdown."""

    def __init__(self, pipeline: Pipeline, warehouse: str) -> None:
        """Takes the pipeline and the folder of all tables; each is opened once."""
        self._pipeline = pipeline
        self._tables = source_tables(pipeline, warehouse)

    def lateness(self, day: date) -> str:
        """How late a day's records came, with each definition's grace.

        Raises:
            UnreadableTableError: This reader can't read a table.
        """
        of_grace: dict[int, list[str]] = {}
        for name, windows in self._pipeline.windows.items():
            of_grace.setdefault(windows.grace, []).append(name)
        graces = [(", ".join(names), grace) for grace, names in sorted(of_grace.items())]
        found = read_lateness(self._raw, self._times, [day])
        return (
            f"{caught_text(found.most_ms)}\n\n{picture(lateness(found.bars, graces), 'lateness')}"
        )

    @cached_property
    def _raw(self) -> LocalTable:
        return LocalTable(self._tables.raw_events)

    @cached_property
    def _times(self) -> RecordTimes:
        return RecordTimes(self._pipeline, log_parts(self._tables.arrival_log), 0)


class WindowPlots:
    """Plots of a definition's windows, as pictures in Markdown."""

    def __init__(self, pipeline: Pipeline, windows_name: str, warehouse: str) -> None:
        """Takes what the plots are of; see `SourcePlots`."""
        self._windows = pipeline.windows[windows_name]
        self._numbers = numeric_columns(pipeline, self._windows)
        self._tables = window_tables(pipeline, windows_name, warehouse)
        self._arrival_log = source_tables(pipeline, warehouse).arrival_log

    def sizes(self, day: date) -> str:
        """How many of the windows that a day closed have how many records.

        Raises:
            UnreadableTableError: The table is not for this reader.
        """
        found, _ = read_sizes(self._final, [day])
        return picture(records_a_window(found), "records")

    def alerts(self, day: date) -> str:
        """The windows that a day closed of keys that alert, by rule: eight, the worst first.

        Raises:
            UnreadableTableError: This reader can't read a table.
        """
        found = read_episodes(self._episodes, self._windows, [day]).found
        strips = list(self._strips([one for one in found if one.rule in self._windows.alerts], day))
        if not strips:
            silences = (
                " The checks of the rules list silences that began on earlier days."
                if has_silences(self._windows.spec)
                else ""
            )
            return f"No window that this day closed broke a rule.{silences}"
        return picture(windows_over_time(strips), "alerts")

    def _strips(self, episodes: list[Episode], day: date) -> Iterator[Strip]:
        """A strip for each of the worst pairs of key and rule."""
        of_pairs: dict[tuple[str, str], Episode] = {}
        for episode in episodes:
            # A null key and an empty text are shown alike, and are two keys.
            of_pairs.setdefault((repr(episode.key), episode.rule), episode)
        watermark_ms = watermark_after_ms(self._log, day)
        delay_ms = self._windows.spec.close_delay_ms
        closed_ms = None if watermark_ms is None else watermark_ms - delay_ms
        for episode in list(of_pairs.values())[:MOST_STRIPS]:
            measure = measure_of(self._windows.alerts[episode.rule], self._numbers)
            yield strip_of_day(self._final, self._alerts, episode, measure, day, closed_ms)

    @cached_property
    def _final(self) -> LocalTable:
        return LocalTable(self._tables.final_windows)

    @cached_property
    def _log(self) -> tuple[LogPart, ...]:
        return log_parts(self._arrival_log)

    @cached_property
    def _alerts(self) -> LocalTable:
        return LocalTable(self._tables.alerts)

    @cached_property
    def _episodes(self) -> LocalTable:
        return LocalTable(self._tables.episodes)
