"""A check for each alert rule, which warns of a day's episodes and lists them (rule E5)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime

import dagster as dg
from pyspark.sql import DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.config import Pipeline, Windows
from windows_pipeline.dagster.assets.checks import check_of_days
from windows_pipeline.dagster.keys import asset_key
from windows_pipeline.dagster.partitions import arrival_days
from windows_pipeline.incremental.alerts import episodes, standing
from windows_pipeline.incremental.arrival_units import Facts
from windows_pipeline.incremental.whole_episodes import whole_episodes
from windows_pipeline.jobs import AlertsJob
from windows_pipeline.query.alert_ids import alert_id
from windows_pipeline.query.tables.keys import key_text
from windows_pipeline.report.words import episode_state, instant_text, trace_command
from windows_pipeline.settings import Settings
from windows_pipeline.storage.instants import timestamp_to_ms
from windows_pipeline.storage.joins import join_on
from windows_pipeline.storage.tables import window_tables
from windows_pipeline.text.markdown import code, plain

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
        self._alerts = tables.alerts
        self._final = tables.final_windows
        self._rules = job.rules
        self._asset = asset_key(tables.alerts)

    @property
    def specs(self) -> list[dg.AssetCheckSpec]:
        """The checks, one for each rule."""
        days = arrival_days(self._pipeline)
        return [
            check_of_days(
                f"{_PREFIX}{name}", self._asset, days, description=_described(self._windows, name)
            )
            for name in self._windows.alerts
        ]

    def evaluations(
        self,
        spark: SparkSession,
        days: Sequence[date],
        names: Collection[str],
        facts: Mapping[date, Facts],
    ) -> Iterator[dg.AssetCheckEvaluation]:
        """The evaluations of each rule on each day.

        Args:
            spark: The session.
            days: The days, whose alerts are published.
            names: The names of the checks to evaluate.
            facts: What the job reports of days: how far windows are closed.
        """
        rules = [rule for rule in self._windows.alerts if f"{_PREFIX}{rule}" in names]
        closed_ms = {
            day: closed
            for day in days
            if isinstance(closed := facts.get(day, {}).get("closed_through_ms"), int)
        }
        found = self._found(spark, days, closed_ms) if rules else {}
        for day in days:
            for rule in rules:
                rows = found.get((day, rule), [])
                yield self._evaluation(rule, rows, day)

    def _found(
        self, spark: SparkSession, days: Sequence[date], closed_ms: Mapping[date, int]
    ) -> dict[tuple[date, str], list[Row]]:
        """The worst episodes of each day and rule, with the number of all of them."""
        alerts = standing(self._alerts.of_arrival_units(spark, days))
        lasted = self._lasted(spark, days, episodes(alerts, by=["arrival_unit"]), closed_ms)
        of_day = Window.partitionBy("arrival_unit", "rule")
        # Among equally bad episodes the longest comes first: silences often have equal severities.
        length = timestamp_to_ms("until") - timestamp_to_ms("episode_start")
        worst = of_day.orderBy(F.desc_nulls_last("severity"), length.desc(), "episode_start", "key")
        ranked = (
            lasted.withColumns(
                {"rank": F.row_number().over(worst), "all": F.count("*").over(of_day)}
            )
            .where(F.col("rank") <= _SHOWN)
            .orderBy("rank")
        )
        found: dict[tuple[date, str], list[Row]] = {}
        for row in ranked.collect():
            found.setdefault((row["arrival_unit"], row["rule"]), []).append(row)
        return found

    def _lasted(
        self,
        spark: SparkSession,
        days: Sequence[date],
        found: DataFrame,
        closed_ms: Mapping[date, int],
    ) -> DataFrame:
        """Adds until when each episode lasts, and whether it is open, as of the last day."""
        schema = "arrival_unit date, _closed_ms bigint"
        closes = small_frame(spark, closed_ms.items(), schema)
        joined = join_on(found, closes, ["arrival_unit"], "left")
        final = self._final.of_arrival_units(spark, days)
        spec, closed = self._windows.spec, F.col("_closed_ms")
        return whole_episodes(joined, final, spec, self._rules, closed)

    def _evaluation(self, rule: str, rows: list[Row], day: date) -> dg.AssetCheckEvaluation:
        number = rows[0]["all"] if rows else 0
        declared = self._windows.alerts[rule]
        metadata: dict[str, dg.MetadataValue] = {
            "episodes": dg.MetadataValue.int(number),
            "rule": dg.MetadataValue.text(declared.when),
        }
        shown = [self._shown(row) for row in rows]
        if shown:
            schema = dg.TableSchema([dg.TableColumn(name) for name in _COLUMNS])
            records = [dg.TableRecord(episode) for episode in shown]
            metadata["worst_episodes"] = dg.MetadataValue.table(records, schema)
        return dg.AssetCheckEvaluation(
            asset_key=self._asset,
            check_name=f"{_PREFIX}{rule}",
            passed=not rows,
            description=_summary(number, shown[0]) if shown else "no episode",
            metadata=metadata,
            severity=dg.AssetCheckSeverity.WARN,
            blocking=False,
            partition=day.isoformat(),
        )

    def _shown(self, row: Row) -> dict[str, str]:
        """An episode as texts, by column."""
        worst = row["worst"]
        key = _key_text(row["key"])
        first, last = _instant(row["episode_start"]), _instant(row["until"])
        end = instant_text(_instant(worst["window_end"]))
        alert = {**worst.asDict(), "rule": row["rule"], "key": row["key"]}
        worst_id = alert_id(self._pipeline.name, self._name, self._windows.row_key, alert)
        values = {name: worst[name] for name in ("record_count", *self._result_names(worst))}
        return {
            "key": key,
            "from": instant_text(first),
            "to": instant_text(last),
            "length": str(last - first),
            "state": episode_state(is_open=row["is_open"], ends_empty=row["ends_empty"]),
            "alerts": f"{row['alerts']:,}",
            "severity": "" if row["severity"] is None else f"{row['severity']:g}",
            "worst window": f"ends {end}: "
            + ", ".join(f"{name}={_value(value)}" for name, value in values.items()),
            "trace": trace_command(self._pipeline.name, worst_id),
        }

    def _result_names(self, worst: Row) -> list[str]:
        names = (aggregate.name for aggregate in self._windows.aggregate_list)
        return [name for name in names if name in worst]


def _summary(number: int, worst: Mapping[str, str]) -> str:
    """The number of episodes and the worst of them, in Markdown."""
    noun = "episode" if number == 1 else "episodes"
    severity = f", severity {worst['severity']}" if worst["severity"] else ""
    state = f", {worst['state']}" if worst["state"] else ""
    text = f"{worst['key']}, from {worst['from']} to {worst['to']}{severity}{state}"
    return f"{number:,} {noun}, the worst: {plain(text)}"


def _described(windows: Windows, name: str) -> str:
    """The description of a rule's check, with the rule's fields for people."""
    rule = windows.alerts[name]
    text = (
        "Warns of each day on which windows became final that break the rule "
        f"{code(rule.when)}. Its severity is {code(rule.severity)}."
    )
    if rule.description:
        text = f"{plain(rule.description)}\n\n{text}"
    about = {"level": rule.level, "owner": rule.owner, "runbook": rule.runbook}
    named = [f"{name}: {plain(value)}" for name, value in about.items() if value]
    return "\n\n".join([text, *([", ".join(named)] if named else [])])


def _instant(value: datetime) -> datetime:
    """A collected timestamp, which has no zone, as an instant."""
    return value.astimezone(UTC)


def _key_text(key: object) -> str:
    """A collected key as commands take it."""
    parts = key.asDict() if isinstance(key, Row) else {"key": key}
    return key_text(
        {
            name: _instant(part) if isinstance(part, datetime) else part
            for name, part in parts.items()
        }
    )


def _value(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
