"""Runs checks with Great Expectations; a check is a query that finds the failing rows."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache, partial, reduce
from importlib import import_module
from threading import Thread
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.compat.progress_bars import without_progress_bars
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.storage.arrival_units import in_arrival_units
from windows_pipeline.text.instants import time_text
from windows_pipeline.text.values import cut, value_text

# Great Expectations reads this variable when it is imported.
os.environ["GX_ANALYTICS_ENABLED"] = "false"

SAMPLE_ROWS = 10
"""The most failing rows that a result shows."""


@dataclass(frozen=True)
class Within:
    """The bounds of a value that each row has; Great Expectations compares the value itself.

    Attributes:
        value: The value, as SQL over a row; a null is within all bounds.
        least: The least allowed value, or None.
        most: The largest allowed value, or None.
    """

    value: str
    least: int | None = None
    most: int | None = None

    @property
    def breaks(self) -> str:
        """The SQL condition that a value lies outside the bounds."""
        bounds = (("<", self.least), (">", self.most))
        outside = (f"{self.value} {sign} {bound}" for sign, bound in bounds if bound is not None)
        return " OR ".join(outside)


@dataclass(frozen=True)
class Check:
    """A rule that a table's rows must keep.

    Attributes:
        name: Its name, unique in the table.
        description: What must hold, for people.
        failing: The SQL condition that is true for failing rows.
        blocking: Whether failing rows prevent the job from publishing.
        is_warning: Whether failing rows are a warning, because they may be right; else an error.
        within: Bounds of a value, outside of which a row fails, too; or None.
    """

    name: str
    description: str
    failing: str
    blocking: bool = True
    is_warning: bool = False
    within: Within | None = None

    @property
    def breaks(self) -> str:
        """The SQL condition that is true for rows that break the rule."""
        outside = "" if self.within is None else f" OR {self.within.breaks}"
        return f"coalesce({self.failing}{outside}, FALSE)"

    @property
    def verdict(self) -> dict[str, Column]:
        """The columns by which Great Expectations judges a row, by name."""
        verdict = {self.fails: F.expr(f"coalesce({self.failing}, FALSE)")}
        if self.within is not None:
            verdict[self.value] = F.expr(self.within.value).cast("bigint")
        return verdict

    @property
    def fails(self) -> str:
        """The column of the verdict that says whether `failing` is true."""
        return f"_fails_{self.name}"

    @property
    def value(self) -> str:
        """The column of the verdict that has the value of `within`."""
        return f"_value_{self.name}"


@dataclass(frozen=True)
class Batch:
    """Rows and the checks to run on them.

    Attributes:
        name: The name of the rows.
        rows: The rows, with the columns that the checks need.
        checks: The checks.
        verdicts: The verdicts of the rows (`with_verdicts`), where they come from a shared frame;
            None to compute them from `rows`.
        shared: A frame from which these verdicts and another batch are computed, to be persisted
            while the checks run; None if no other batch needs it.
        numbers: The columns to report of each arrival unit, where the batch has one row for each
            arrival unit (or a few, which agree in these columns); empty if its rows are records or
            windows.
        changes: By the name of a check, the differences (`storage.diff.differences`) that its
            sample shows instead of failing rows, the old values beside the new.
    """

    name: str
    rows: DataFrame
    checks: Sequence[Check]
    verdicts: DataFrame | None = None
    shared: DataFrame | None = None
    numbers: Sequence[str] = ()
    changes: Mapping[str, DataFrame] = field(default_factory=dict)


@dataclass(frozen=True)
class CheckResult:
    """What a check found.

    Attributes:
        check: The check.
        failing_rows: The number of failing rows.
        sample: Up to `SAMPLE_ROWS` failing rows, as texts by column; without internal columns.
        failing_by_arrival_unit: The number of failing rows of each arrival unit that has any.
        numbers: The numbers that the batch reports of each arrival unit, by column.
    """

    check: Check
    failing_rows: int
    sample: list[dict[str, str]]
    failing_by_arrival_unit: Mapping[date, int] = field(default_factory=dict)
    numbers: Mapping[date, Mapping[str, int]] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether no row fails."""
        return self.failing_rows == 0


def with_verdicts(rows: DataFrame, checks: Sequence[Check], *columns: str) -> DataFrame:
    """The verdicts of rows, and the named columns of the rows beside them."""
    verdicts = {name: of_row for check in checks for name, of_row in check.verdict.items()}
    return rows.select(*columns, *(of_row.alias(name) for name, of_row in verdicts.items()))


def import_ahead() -> None:
    """Imports Great Expectations in a thread, while Spark works."""
    module = "great_expectations.expectations"
    Thread(target=import_module, args=[module], daemon=True).start()


def validate(batches: Sequence[Batch]) -> list[CheckResult]:
    """Runs the checks of a table's batches in one validation, in their order.

    Great Expectations judges the verdicts of all rows in two queries; failing rows are fetched only
    where there are any.

    Raises:
        RuntimeError: Great Expectations could not judge a check.
    """
    if not batches:
        return []
    with ExitStack() as cached:
        for batch in batches:
            if batch.shared is not None:
                cached.enter_context(_persisted(batch.shared))
        with_numbers = [_with_numbers(batch) for batch in batches]
        judged = [_verdicts(batch) for batch, _ in with_numbers]
        verdicts = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), judged)
        # Great Expectations counts the rows before it judges them.
        cached.enter_context(_persisted(verdicts))
        failed = _failed([check for batch in batches for check in batch.checks], verdicts)
        counts = _failing_rows(verdicts, failed)
    results: list[CheckResult] = []
    for batch, numbers in with_numbers:
        of_batch = [check for check in batch.checks if check in failed]
        samples = _samples(batch, of_batch)
        for check in batch.checks:
            by_day = counts.get(check.name, {})
            failing_rows, shown = sum(by_day.values()), samples.get(check.name, [])
            days = {day: rows for day, rows in by_day.items() if day is not None}
            result = CheckResult(check, failing_rows, shown, days, numbers)
            results.append(_with_changes(result, batch.changes))
    return results


def _verdicts(batch: Batch) -> DataFrame:
    """The verdicts of a batch's rows, with the arrival unit of rows that have one."""
    rows = batch.rows if batch.verdicts is None else batch.verdicts
    columns = [name for name in ("arrival_unit",) if name in rows.columns]
    if batch.verdicts is None:
        return with_verdicts(rows, batch.checks, *columns)
    return rows.select(*columns, *(name for check in batch.checks for name in check.verdict))


def _failed(checks: Sequence[Check], verdicts: DataFrame) -> list[Check]:
    """The checks that do not hold for all rows, as Great Expectations judges them."""
    # The import takes seconds, so it happens here or in `import_ahead`.
    import great_expectations as gx

    asset = _any_frame(verdicts.sparkSession)
    rules = [rule for check in checks for rule in _expectations(check)]
    rows = asset.get_batch(asset.build_batch_request({"dataframe": verdicts}))
    # More than a yes or no would be a query for each expectation.
    suite = gx.ExpectationSuite("rules", expectations=rules)
    outcome = rows.validate(suite, result_format="BOOLEAN_ONLY")
    for result in outcome.results:
        _require_judged(result)
    failed = {_checked(result) for result in outcome.results if not result.success}
    return [check for check in checks if check.name in failed]


def _expectations(check: Check) -> Iterator[Any]:
    from great_expectations import expectations

    named: dict[str, Any] = {"meta": {"check": check.name}, "description": check.description}
    yield expectations.ExpectColumnValuesToBeInSet(column=check.fails, value_set=[False], **named)
    if check.within is not None:
        yield expectations.ExpectColumnValuesToBeBetween(
            column=check.value, min_value=check.within.least, max_value=check.within.most, **named
        )


def _failing_rows(
    verdicts: DataFrame, failed: Sequence[Check]
) -> dict[str, dict[date | None, int]]:
    """The number of failing rows by check and arrival unit (None for rows without one)."""
    if not failed:
        return {}
    counts = [F.count_if(_breaks(check)).alias(check.name) for check in failed]
    unit = F.col("arrival_unit") if "arrival_unit" in verdicts.columns else F.lit(None)
    rows = verdicts.groupBy(unit.alias("arrival_unit")).agg(*counts).collect()
    return {
        check.name: {row["arrival_unit"]: row[check.name] for row in rows if row[check.name]}
        for check in failed
    }


def _breaks(check: Check) -> Column:
    """The condition that a row's verdict is that it breaks the rule."""
    of_verdict = check.within and replace(check.within, value=f"`{check.value}`")
    return F.expr(replace(check, failing=f"`{check.fails}`", within=of_verdict).breaks)


def _samples(batch: Batch, failed: Sequence[Check]) -> dict[str, list[dict[str, str]]]:
    """Some failing rows of each failed check of a batch."""
    if not failed:
        return {}
    with _persisted(batch.rows.where(" OR ".join(check.breaks for check in failed))) as failing:
        found = {
            check.name: failing.where(check.breaks).limit(SAMPLE_ROWS).collect() for check in failed
        }
    return {name: [_for_people(row.asDict()) for row in rows] for name, rows in found.items()}


@contextmanager
def _persisted(rows: DataFrame) -> Iterator[DataFrame]:
    rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield rows
    finally:
        rows.unpersist()


def _with_changes(result: CheckResult, changes: Mapping[str, DataFrame]) -> CheckResult:
    """The result; the sample has the differences of the failing days, if the check has any."""
    found = changes.get(result.check.name)
    if result.passed or found is None:
        return result
    of_days = found.where(in_arrival_units(sorted(result.failing_by_arrival_unit)))
    key = [name for name in of_days.columns if name not in ("change", "old", "new")]
    rows = of_days.orderBy(*key).limit(SAMPLE_ROWS).collect()
    return replace(result, sample=[_change(row, key) for row in rows] or result.sample)


def _change(row: Row, key: Sequence[str]) -> dict[str, str]:
    """A difference as texts: the key, the kind of change, and each value, `old -> new`."""
    shown = {name: _shown(row[name]) for name in key}
    values = row["new"] if row["old"] is None else row["old"]
    for name in values.asDict():
        texts = [_shown(state[name]) for state in (row["old"], row["new"]) if state is not None]
        shown[name] = " -> ".join(dict.fromkeys(texts))
    return {**shown, "change": row["change"]}


def _with_numbers(batch: Batch) -> tuple[Batch, dict[date, dict[str, int]]]:
    """A batch and its numbers of each arrival unit.

    A batch with numbers has few rows, so the driver computes them once, for both.
    """
    if not batch.numbers:
        return batch, {}
    rows = batch.rows.toArrow()
    columns = rows.select(["arrival_unit", *batch.numbers]).to_pylist()
    numbers = {row.pop("arrival_unit"): row for row in columns}
    return replace(batch, rows=_local(batch.rows, rows)), {
        arrival_unit: {
            name: int(value) for name, value in of_arrival_unit.items() if value is not None
        }
        for arrival_unit, of_arrival_unit in numbers.items()
    }


@lru_cache(maxsize=2)
def _any_frame(_session: SparkSession) -> Any:
    """The asset by which Great Expectations accepts frames of a session; slow to make, so cached.

    Great Expectations takes the session that is active when the asset is made, so each session
    has an asset of its own.
    """
    import great_expectations as gx

    logging.getLogger("great_expectations").setLevel(logging.WARNING)
    context = gx.get_context(mode="ephemeral")
    without_progress_bars(context)
    # The data source would persist the whole batch by default.
    source = context.data_sources.add_spark("spark", persist=False)
    return source.add_dataframe_asset("rows")


def _local(frame: DataFrame, rows: pa.Table) -> DataFrame:
    """The computed rows of a frame as a frame."""
    # Spark refuses a column of lists without chunks.
    known = rows if rows.num_rows else rows.schema.empty_table()
    return frame.sparkSession.createDataFrame(known)


def _checked(result: Any) -> str:
    name: str = result.expectation_config.meta["check"]
    return name


def _require_judged(result: Any) -> None:
    """Raises if an error kept Great Expectations from judging an expectation."""
    info = result.exception_info or {}
    for found in (info, *(value for value in info.values() if isinstance(value, dict))):
        if found.get("raised_exception"):
            raise RuntimeError(
                f"check {_checked(result)}: Great Expectations must judge the rows, but failed: "
                f"{found.get('exception_message')}"
            )


def _for_people(row: Mapping[str, object]) -> dict[str, str]:
    """A row's values as texts, without internal columns; internal times stand as times."""
    shown = {name: _shown(value) for name, value in row.items() if not name.startswith("_")}
    for name, value in row.items():
        time = name.removeprefix("_").removesuffix("_ms")
        if f"_{time}_ms" == name and time not in row and isinstance(value, int):
            shown[time] = "null" if value == NEVER_MS else time_text(value)
    return shown


def _shown(value: object) -> str:
    """A value as a text; a double has all digits, as two may differ in the last alone."""
    return str(value) if isinstance(value, float) else cut(value_text(value, thousands=""))
