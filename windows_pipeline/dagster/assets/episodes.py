"""A check for each alert rule, which warns of a day's episodes and lists them (rule E5)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta

import dagster as dg
from pyspark.sql import DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

from windows_pipeline.config import Pipeline, Windows
from windows_pipeline.dagster.keys import asset_key
from windows_pipeline.incremental.silences import MOST_SILENCES_MS
from windows_pipeline.jobs import AlertsJob
from windows_pipeline.jobs.day_episodes import DayEpisodes, days_of_alerts
from windows_pipeline.query.alert_ids import alert_id
from windows_pipeline.report.words import episode_state, trace_command
from windows_pipeline.settings import Settings
from windows_pipeline.storage.instants import timestamp_to_ms
from windows_pipeline.storage.tables import window_tables
from windows_pipeline.text.instants import time_text
from windows_pipeline.text.markdown import code, plain
from windows_pipeline.text.values import key_text, short
from windows_pipeline.windows import has_silences
from windows_pipeline.windows.durations import length_text

_SHOWN = 20
"""The most episodes of a rule that a day shows; the worst ones are shown."""
_PREFIX = "alert_"
_COLUMNS = ("key", "from", "to", "length", "state", "alerts", "severity", "worst window", "trace")


class EpisodeChecks:
    """Evaluates the checks of a definition's alert rules for each day."""

    def __init__(self, pipeline: Pipeline, windows_name: str, settings: Settings) -> None:
        """Takes the definition, and where its tables lie."""
        job = AlertsJob(pipeline, windows_name, settings)
        tables = window_tables(pipeline, windows_name, settings.warehouse)
        self._pipeline = pipeline
        self._name = windows_name
        self._windows = pipeline.windows[windows_name]
        self._job = job
        self._asset = asset_key(tables.alerts)

    @property
    def specs(self) -> list[dg.AssetCheckSpec]:
        """The checks, one for each rule."""
        return [
            dg.AssetCheckSpec(
                f"{_PREFIX}{name}", asset=self._asset, description=_described(self._windows, name)
            )
            for name in self._windows.alerts
        ]

    def all_days(self, spark: SparkSession) -> list[date]:
        """The days whose alerts are computed."""
        return days_of_alerts(self._job, spark)

    def evaluations(
        self,
        spark: SparkSession,
        days: Sequence[date],
        names: Collection[str] | None = None,
        *,
        corrected: bool = False,
    ) -> Iterator[dg.AssetCheckEvaluation]:
        """The evaluations of each rule on each day.

        Where the days end a silence of an earlier day, that day is evaluated again, so that it
        shows when the silence ended.

        Args:
            spark: The session.
            days: The days, whose alerts are published.
            names: The names of the checks to evaluate; by default of all.
            corrected: Whether a correction changed the days; then all days are evaluated again
                whose silences it may have ended, or opened again.
        """
        rules = [
            rule for rule in self._windows.alerts if names is None or f"{_PREFIX}{rule}" in names
        ]
        if not rules or not days:
            return
        arrivals = self._job.arrivals(self._job.arrived(spark))
        listed = DayEpisodes(self._job, spark, arrivals, days)
        if corrected:
            later = set(listed.following).intersection(self.all_days(spark))
            listed = replace(listed, days=sorted(later.union(days)))
        changed = {
            (day, rule) for day, rule in listed.changed_before(corrected=corrected) if rule in rules
        }
        if changed:
            earlier = replace(listed, days=sorted({day for day, _ in changed}))
            yield from self._of_days(earlier, changed)
        yield from self._of_days(listed, {(day, rule) for day in listed.days for rule in rules})

    def _of_days(
        self, listed: DayEpisodes, wanted: Collection[tuple[date, str]]
    ) -> Iterator[dg.AssetCheckEvaluation]:
        """The evaluations of some days and rules."""
        found = _worst(listed.listed())
        for day in listed.days:
            for rule in self._windows.alerts:
                if (day, rule) in wanted:
                    rows, missing = found.get((day, rule), []), listed.blocked_by(day)
                    if missing is not None and not rows:
                        yield self._blocked(rule, day, missing)
                    else:
                        yield self._evaluation(rule, rows, day, listed.closed_ms(day))

    def _evaluation(
        self, rule: str, rows: list[Row], day: date, closed_ms: int | None
    ) -> dg.AssetCheckEvaluation:
        number, earlier = (rows[0]["all"], rows[0]["earlier"]) if rows else (0, 0)
        declared = self._windows.alerts[rule]
        metadata: dict[str, dg.MetadataValue] = {
            "episodes": dg.MetadataValue.int(number),
            "rule": dg.MetadataValue.text(declared.when),
        }
        if has_silences(self._windows.spec):
            metadata["silences_of_earlier_days"] = dg.MetadataValue.int(earlier)
            if closed_ms is not None:
                since_ms = closed_ms - MOST_SILENCES_MS
                metadata["silences_since"] = dg.MetadataValue.timestamp(since_ms / 1_000)
        shown = [self._shown(row) for row in rows]
        if shown:
            schema = dg.TableSchema([dg.TableColumn(name) for name in _COLUMNS])
            records = [dg.TableRecord(episode) for episode in shown]
            metadata["worst_episodes"] = dg.MetadataValue.table(records, schema)
        description = _summary(rows[0], shown[0], day) if shown else "no episode"
        return self._result(rule, day, passed=not rows, description=description, metadata=metadata)

    def _blocked(self, rule: str, day: date, missing: date) -> dg.AssetCheckEvaluation:
        """The evaluation of a day that has no windows yet: nobody knows its episodes."""
        return self._result(
            rule,
            day,
            passed=False,
            description=f"not known yet: nothing closes before the raw day {missing} is ingested",
            metadata={
                "rule": dg.MetadataValue.text(self._windows.alerts[rule].when),
                "blocked_by": dg.MetadataValue.text(missing.isoformat()),
            },
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
            check_name=f"{_PREFIX}{rule}",
            passed=passed,
            description=f"{day}: {description}",
            metadata=metadata,
            severity=dg.AssetCheckSeverity.WARN,
            blocking=False,
            partition=day.isoformat(),
        )

    def _shown(self, row: Row) -> dict[str, str]:
        """An episode as texts, by column."""
        worst = row["worst"]
        first, last = row["episode_start"], row["until"]
        alert = {**worst.asDict(), "rule": row["rule"], "key": row["key"]}
        worst_id = alert_id(self._pipeline.name, self._name, self._windows.row_key, alert)
        values = {name: worst[name] for name in ("record_count", *self._result_names(worst))}
        return {
            "key": key_text(row["key"]),
            "from": time_text(first),
            "to": time_text(last),
            "length": length_text((last - first) // timedelta(milliseconds=1)),
            "state": episode_state(is_open=row["is_open"], ends_empty=row["ends_empty"]),
            "alerts": f"{row['alerts']:,}",
            "severity": "" if row["severity"] is None else short(row["severity"]),
            "worst window": f"ends {time_text(worst['window_end'])}: "
            + ", ".join(f"{name}={short(value)}" for name, value in values.items()),
            "trace": trace_command(self._pipeline.name, worst_id),
        }

    def _result_names(self, worst: Row) -> list[str]:
        names = (aggregate.name for aggregate in self._windows.aggregate_list)
        return [name for name in names if name in worst]


def _worst(listed: DataFrame) -> dict[tuple[date, str], list[Row]]:
    """The worst episodes of each day and rule, with the number of all, and of earlier ones."""
    of_day = Window.partitionBy("listed_on", "rule")
    # Among equally bad episodes the longest comes first: silences often have equal severities.
    length = timestamp_to_ms("until") - timestamp_to_ms("episode_start")
    worst = of_day.orderBy(F.desc_nulls_last("severity"), length.desc(), "episode_start", "key")
    is_earlier = F.col("arrival_unit") < F.col("listed_on")
    ranked = (
        listed.withColumns(
            {
                "rank": F.row_number().over(worst),
                "all": F.count("*").over(of_day),
                "earlier": F.count_if(is_earlier).over(of_day),
            }
        )
        .where(F.col("rank") <= _SHOWN)
        .orderBy("rank")
    )
    found: dict[tuple[date, str], list[Row]] = {}
    for row in ranked.collect():
        found.setdefault((row["listed_on"], row["rule"]), []).append(row)
    return found


def _summary(row: Row, worst: Mapping[str, str], day: date) -> str:
    """The number of episodes and the worst of them, in Markdown.

    Args:
        row: The worst episode.
        worst: What is shown of it.
        day: The day that lists it.
    """
    number, earlier = row["all"], row["earlier"]
    noun = "episode" if number == 1 else "episodes"
    of_earlier = f" ({earlier:,} of earlier days)" if earlier else ""
    severity = f", severity {worst['severity']}" if worst["severity"] else ""
    state = f", {worst['state']}" if worst["state"] else ""
    if row["is_open"]:
        state += f" at the close of {day}"
    text = f"{worst['key']}, from {worst['from']} to {worst['to']}{severity}{state}"
    return f"{number:,} {noun}{of_earlier}, the worst: {plain(text)}"


def _described(windows: Windows, name: str) -> str:
    """The description of a rule's check, with the rule's fields for people."""
    rule = windows.alerts[name]
    silent = ", and of silences of earlier days that go on" if has_silences(windows.spec) else ""
    text = (
        "Warns of each day that closed a window which breaks the rule "
        f"{code(rule.when)}{silent}. Its severity is {code(rule.severity)}."
    )
    if rule.description:
        text = f"{plain(rule.description)}\n\n{text}"
    about = {"level": rule.level, "owner": rule.owner, "runbook": rule.runbook}
    named = [f"{name}: {plain(value)}" for name, value in about.items() if value]
    return "\n\n".join([text, *([", ".join(named)] if named else [])])
