"""Turns the checks that a pipeline's file declares into batches for `run.validate`.

Checks of single rows query the table's rows. Checks of a day's rows together query one row for each
day and check, so a day's result does not depend on which runs or micro-batches wrote its rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.alerts.rule_sql import struct_fields
from windows_pipeline.checks.run import Batch, Check
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.config import OwnCheck, Pipeline, Source, Windows

_OF_RECORD = ("arrival_unit", "offset")
_OF_RESULT = ("arrival_unit", "key", "window_start", "window_end", "firing_id")


@dataclass(frozen=True)
class OwnChecks:
    """The checks that a pipeline's file declares for one table.

    Attributes:
        table: The table's name, without that of the pipeline.
        declared: The checks by name.
        types: The types of the columns that the checks may read.
        columns: SQL of those columns, and of columns that identify a row, over rows of the table.
        shown: The columns that are shown of a failing row, beside those that checks read.
    """

    table: str
    declared: Mapping[str, OwnCheck]
    types: Mapping[str, str]
    columns: Mapping[str, str]
    shown: Collection[str] = _OF_RESULT

    @property
    def checks(self) -> list[Check]:
        """The checks, in the order of the file."""
        return self._checks(self.declared)

    def batches(self, rows: DataFrame, days: Sequence[date]) -> Iterator[Batch]:
        """The rows to check, with their checks.

        Args:
            rows: Rows of the table.
            days: The days of these rows, without days that a missing day blocks; a day without
                rows is checked, too.
        """
        rules = {name: check.arrival_unit_rule(self.types) for name, check in self.declared.items()}
        of_rows = {name: self.declared[name] for name, rule in rules.items() if rule is None}
        of_days = {name: rule for name, rule in rules.items() if rule is not None}
        read = {name for check in self.declared.values() for name in check.reads}
        named = [
            F.expr(sql).alias(name)
            for name, sql in self.columns.items()
            if name in read or name not in self.types or name in self.shown
        ]
        seen = rows.select(*named)
        if of_rows:
            yield Batch(f"own_{self.table}", seen, self._checks(of_rows))
        if of_days:
            checks = self._checks({name: self.declared[name] for name in of_days})
            yield Batch(f"own_{self.table}_days", _judged_days(seen, days, of_days), checks)

    def _checks(self, declared: Mapping[str, OwnCheck]) -> list[Check]:
        return [
            Check(
                name,
                f"{check.text} (a check of the pipeline's own)",
                # The names of checks are identifiers, so they need no escapes.
                check.failing_sql(self.types) or f"check = '{name}' AND is_broken",
                blocking=check.is_blocking,
                is_warning=not check.is_blocking,
            )
            for name, check in declared.items()
        ]


def own_checks_of_records(pipeline: Pipeline) -> OwnChecks:
    """The pipeline's own checks of raw_events, which name columns as the source declares them."""
    source = pipeline.source
    identity = {name: f"`{name}`" for name in _OF_RECORD if name not in source.types}
    declared = {name: _of_source(name, source) for name in source.types}
    shown = (*source.key_columns, source.event_time)
    return OwnChecks("raw_events", pipeline.checks, source.types, identity | declared, shown)


def own_checks_of_results(windows: Windows, columns: Mapping[str, str], table: str) -> OwnChecks:
    """A definition's own checks of its results.

    Args:
        windows: The definition.
        columns: The types of the results, by column.
        table: `final_windows` or `firings`.
    """
    checks = {name: check for name, check in windows.checks.items() if check.table == table}
    types = windows.checked_columns(columns, table)
    names = dict.fromkeys((*_OF_RESULT, *windows.row_key, *types))
    is_there = (name for name in names if name != "firing_id" or table == "firings")
    parts = struct_fields(columns.get("key", ""))
    sql = {name: f"`key`.`{name}`" if name in parts else f"`{name}`" for name in is_there}
    return OwnChecks(table, checks, types, sql)


def _of_source(name: str, source: Source) -> str:
    """A source column as SQL, in its declared type; raw_events names some columns by role."""
    kind = source.types[name]
    if name in source.key_columns:
        return "`key`" if isinstance(source.key, str) else f"`key`.`{name}`"
    if name == source.event_time:
        return "`event_time`" if kind == "timestamp" else "unix_millis(`event_time`)"
    if name == source.source_partition:
        return f"CAST(`source_partition` AS {kind})"
    return f"`{name}`"


def _judged_days(
    rows: DataFrame,
    days: Sequence[date],
    rules: Mapping[str, tuple[Mapping[str, str], str]],
) -> DataFrame:
    """A row for each day and check: `found`, the numbers as text, and `is_broken`.

    Args:
        rows: The rows, with `arrival_unit`.
        days: The days.
        rules: For each check, aggregates by name, and the condition over them that breaks it.
    """
    aggregates: list[Column] = []
    judged: list[Column] = []
    for name, (numbers, breaks) in rules.items():
        columns = {number: f"{name}__{number}" for number in numbers}
        aggregates += [F.expr(sql).alias(columns[number]) for number, sql in numbers.items()]
        found = [
            F.concat(F.lit(f"{number} "), F.col(at).cast("string"))
            for number, at in columns.items()
        ]
        quoted = {number: f"`{at}`" for number, at in columns.items()}
        judged.append(
            F.struct(
                F.lit(name).alias("check"),
                F.concat_ws(", ", *found).alias("found"),
                F.expr(breaks.format_map(quoted)).alias("is_broken"),
            )
        )
    every_day = small_frame(rows.sparkSession, [(day,) for day in days], "arrival_unit date")
    by_day = rows.groupBy("arrival_unit").agg(*aggregates)
    whole = every_day.join(by_day, "arrival_unit", "left").fillna(0)
    return whole.select("arrival_unit", F.explode(F.array(*judged)).alias("judged")).select(
        "arrival_unit", "judged.*"
    )
