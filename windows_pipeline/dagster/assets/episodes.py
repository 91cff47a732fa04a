"""A check for each alert rule, which warns of a day's episodes and lists them (rule E5)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date

import dagster as dg
from pyspark.sql import SparkSession

from windows_pipeline.config import Windows
from windows_pipeline.dagster.assets.checks import RULES
from windows_pipeline.dagster.keys import asset_key
from windows_pipeline.jobs import AlertsJob
from windows_pipeline.query.episodes import Episode, episodes_of_days, worst_alert_ids
from windows_pipeline.query.tables.local import LocalTable, NoTableError, UnreadableTableError
from windows_pipeline.report.words import trace_command
from windows_pipeline.settings import Settings
from windows_pipeline.storage.tables import PipelineTables
from windows_pipeline.text.instants import day_number, time_text
from windows_pipeline.text.markdown import as_text, code, plain
from windows_pipeline.text.values import short
from windows_pipeline.windows.durations import length_text

_SHOWN = 20
"""The most episodes of a rule that a day shows; the worst ones are shown."""
_COLUMNS = ("key", "trace", "state", "from", "to", "length", "severity", "alerts", "worst window")


class EpisodeChecks:
    """Evaluates the checks of a definition's alert rules for each day."""

    def __init__(self, tables: PipelineTables, windows_name: str, settings: Settings) -> None:
        """Takes the pipeline's tables, and the definition's name."""
        pipeline = tables.pipeline
        job = AlertsJob(tables, windows_name, settings)
        self._pipeline = pipeline
        self._name = windows_name
        self._windows = pipeline.windows[windows_name]
        self._job = job
        self._asset = asset_key(job.window_tables.alerts)

    @property
    def specs(self) -> list[dg.AssetCheckSpec]:
        """The checks, one for each rule."""
        return [
            dg.AssetCheckSpec(
                self._windows.check_of(name),
                asset=self._asset,
                description=_described(self._windows, name),
            )
            for name in self._windows.alerts
        ]

    def all_days(self, spark: SparkSession) -> list[date]:
        """The days whose alerts are computed."""
        return self._job.days_with_results(spark)

    def evaluations(
        self,
        spark: SparkSession,
        days: Sequence[date],
        names: Collection[str] | None = None,
    ) -> Iterator[dg.AssetCheckEvaluation]:
        """The evaluations of each rule on each day.

        Args:
            spark: The session.
            days: The days, whose alerts are published.
            names: The names of the checks to evaluate; by default of all.
        """
        every = self._windows.alerts
        rules = [rule for rule in every if names is None or self._windows.check_of(rule) in names]
        if not rules or not days:
            return
        arrivals = self._job.arrivals(self._job.arrived(spark))
        closings = arrivals.closings(days)
        tables = self._job.window_tables
        try:
            stored = episodes_of_days(LocalTable(tables.episodes), self._windows, days)
            listed = sorted(stored, key=lambda episode: episode.badness)
            alerts = LocalTable(tables.alerts)
        except NoTableError:
            raise
        except UnreadableTableError as error:
            for day in sorted(days):
                yield from (self._unknown(rule, day, str(error), {}) for rule in rules)
            return
        for day in sorted(days):
            closing = closings.get(day_number(day))
            for rule in rules:
                of_rule = [one for one in listed if (one.day, one.rule) == (day, rule)]
                if closing is None and not of_rule:
                    missing = arrivals.next_day
                    why = f"nothing closes before the raw day {missing} is ingested"
                    yield self._unknown(rule, day, why, {"blocked_by": missing.isoformat()})
                    continue
                closed_ms = None if closing is None else closing.after_ms
                yield self._evaluation(rule, of_rule, day, closed_ms, alerts)

    def _evaluation(
        self,
        rule: str,
        found: Sequence[Episode],
        day: date,
        closed_ms: int | None,
        alerts: LocalTable,
    ) -> dg.AssetCheckEvaluation:
        earlier = sum(not episode.has_alert for episode in found)
        declared = self._windows.alerts[rule]
        metadata: dict[str, dg.MetadataValue] = {
            "episodes": dg.MetadataValue.int(len(found)),
            "rule": dg.MetadataValue.text(declared.when),
        }
        if self._windows.spec.has_silences:
            metadata["silences_of_earlier_days"] = dg.MetadataValue.int(earlier)
        worst = found[:_SHOWN]
        ids = worst_alert_ids(worst, alerts, self._pipeline, self._name)
        shown = [self._shown(*each, closed_ms) for each in zip(worst, ids, strict=True)]
        if shown:
            schema = dg.TableSchema([dg.TableColumn(name) for name in _COLUMNS])
            records = [dg.TableRecord(episode) for episode in shown]
            metadata["worst_episodes"] = dg.MetadataValue.table(records, schema)
        description = "no episode"
        if shown:
            is_open = found[0].is_open(closed_ms)
            description = _summary(len(found), earlier, shown[0], day, is_open=is_open)
        return self._result(rule, day, passed=not found, description=description, metadata=metadata)

    def _unknown(
        self, rule: str, day: date, why: str, metadata: Mapping[str, str]
    ) -> dg.AssetCheckEvaluation:
        """The evaluation of a day whose episodes nobody knows."""
        texts = {"rule": self._windows.alerts[rule].when, **metadata}
        return self._result(
            rule,
            day,
            passed=False,
            description=f"not known yet: {why}",
            metadata={name: dg.MetadataValue.text(text) for name, text in texts.items()},
        )

    def _result(
        self,
        rule: str,
        day: date,
        *,
        passed: bool,
        description: str,
        metadata: Mapping[str, dg.MetadataValue],
    ) -> dg.AssetCheckEvaluation:
        return dg.AssetCheckEvaluation(
            asset_key=self._asset,
            check_name=self._windows.check_of(rule),
            passed=passed,
            description=f"{day}: {description}",
            metadata=metadata,
            severity=dg.AssetCheckSeverity.WARN,
            blocking=False,
            partition=day.isoformat(),
        )

    def _shown(self, episode: Episode, worst_alert: str, closed_ms: int | None) -> dict[str, str]:
        """An episode at a day's close as texts, by column."""
        return {
            "key": episode.key_text,
            "from": time_text(episode.first),
            "to": time_text(episode.last),
            "length": length_text(episode.length_ms),
            "state": episode.state(closed_ms),
            "alerts": f"{episode.alerts:,}",
            "severity": "" if episode.severity is None else short(episode.severity),
            "worst window": episode.worst_text(self._windows),
            "trace": trace_command(self._pipeline.name, worst_alert),
        }


def episodes_by_day(
    checked: Iterable[dg.AssetCheckEvaluation],
) -> dict[date, dict[str, dg.MetadataValue]]:
    """What a day's alerts show first: the episodes of each rule, by the evaluations of the day."""
    found: dict[date, dict[str, dg.MetadataValue]] = {}
    for one in checked:
        if one.check_name != RULES and one.partition is not None:
            said = as_text(str(one.description).partition(": ")[2])
            of_day = found.setdefault(date.fromisoformat(one.partition), {})
            of_day[one.check_name] = dg.MetadataValue.text(said)
    return found


def _summary(
    number: int, earlier: int, worst: Mapping[str, str], day: date, *, is_open: bool
) -> str:
    """The number of episodes and the worst of them, in Markdown.

    Args:
        number: How many episodes the day lists.
        earlier: How many of them are of earlier days.
        worst: What is shown of the worst.
        day: The day.
        is_open: Whether the worst is open at the day's close.
    """
    noun = "episode" if number == 1 else "episodes"
    of_earlier = f" ({earlier:,} of earlier days)" if earlier else ""
    severity = f", severity {worst['severity']}" if worst["severity"] else ""
    state = f", {worst['state']}" + (f" at the close of {day}" if is_open else "")
    text = f"{worst['key']}, from {worst['from']} to {worst['to']}{severity}{state}"
    return f"{number:,} {noun}{of_earlier}, the worst: {plain(text)}"


def _described(windows: Windows, name: str) -> str:
    """The description of a rule's check, with the rule's fields for people."""
    rule = windows.alerts[name]
    silent = ", and of silences of earlier days that go on" if windows.spec.has_silences else ""
    text = (
        "Warns of each day that closed a window which breaks the rule "
        f"{code(rule.when)}{silent}. Its severity is {code(rule.severity)}."
    )
    if rule.description:
        text = f"{plain(rule.description)}\n\n{text}"
    about = {"level": rule.level, "owner": rule.owner, "runbook": rule.runbook}
    named = [f"{name}: {plain(value)}" for name, value in about.items() if value]
    return "\n\n".join([text, *([", ".join(named)] if named else [])])
