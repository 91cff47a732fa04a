"""Runs checks with Great Expectations; a check is a query that finds the failing rows."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache
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

# Great Expectations reads this variable when it is imported.
os.environ["GX_ANALYTICS_ENABLED"] = "false"

SAMPLE_ROWS = 10
"""The most failing rows that a result shows."""
_LONGEST_VALUE = 200
"""The most characters of a value that a sample shows."""
_HELD_ROWS = 200
"""The most failing rows that the driver holds for the checks' queries."""


@dataclass(frozen=True)
class Check:
    """A rule that a table's rows must keep.

    Attributes:
        name: Its name, unique in the table.
        description: What must hold, for people.
        failing: The SQL condition that is true for failing rows.
        blocking: Whether failing rows prevent the job from publishing.
        is_warning: Whether failing rows are a warning, because they may be right; else an error.
    """

    name: str
    description: str
    failing: str
    blocking: bool = True
    is_warning: bool = False

    @property
    def failing_rows(self) -> str:
        """The query over `{batch}` that finds the failing rows."""
        # Great Expectations formats the query, so braces in literals are doubled.
        plain = self.failing.replace("{", "{{").replace("}", "}}")
        return f"SELECT * FROM {{batch}} WHERE {plain}"  # noqa: S608  its text is our own


@dataclass(frozen=True)
class Batch:
    """Rows and the checks to run on them.

    Attributes:
        name: The name of the rows.
        rows: The rows, with the columns that the checks need.
        checks: The checks.
        shared: A frame from which this batch and another are computed, to be persisted while the
            checks run; None if no other batch needs it.
        numbers: The columns to report of each arrival unit, where the batch has one row for each
            arrival unit (or a few, which agree in these columns); empty if its rows are records or
            windows.
        changes: By the name of a check, the differences (`storage.diff.differences`) that its
            sample shows instead of failing rows, the old values beside the new.
    """

    name: str
    rows: DataFrame
    checks: Sequence[Check]
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


def breaking(checks: Sequence[Check]) -> Column:
    """The condition that a row fails any of the checks.

    One pass filters by this condition; each check then queries only the few failing rows.
    """
    return F.expr(" OR ".join(f"coalesce({check.failing}, FALSE)" for check in checks))


def import_ahead() -> None:
    """Imports Great Expectations in a thread, while Spark works."""
    module = "great_expectations.expectations"
    Thread(target=import_module, args=[module], daemon=True).start()


def validate(batch: Batch) -> list[CheckResult]:
    """Runs the checks of a batch in one validation, in their order.

    Raises:
        RuntimeError: The query of a check failed.
    """
    # The import takes seconds, so it happens here or in `import_ahead`.
    import great_expectations as gx
    from great_expectations.expectations import UnexpectedRowsExpectation

    asset = _any_frame(batch.rows.sparkSession)
    rules = [
        UnexpectedRowsExpectation(
            unexpected_rows_query=check.failing_rows,
            description=check.description,
            meta={"check": check.name},
        )
        for check in batch.checks
    ]
    suite = gx.ExpectationSuite(batch.name, expectations=rules)
    judged, numbers = _with_numbers(batch)
    with _held(judged.where(breaking(batch.checks))) as failing:
        rows = asset.get_batch(asset.build_batch_request({"dataframe": failing}))
        # COMPLETE is bounded here: of failing rows Great Expectations fetches 200 at most.
        outcome = rows.validate(suite, result_format="COMPLETE")
        found = {_checked(result): result for result in outcome.results}
        results = [_check_result(check, found[check.name]) for check in batch.checks]
        judged_by_day = [
            replace(
                result, numbers=numbers, failing_by_arrival_unit=_by_arrival_unit(failing, result)
            )
            for result in results
        ]
    return [_with_changes(result, batch.changes) for result in judged_by_day]


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


def _with_numbers(batch: Batch) -> tuple[DataFrame, dict[date, dict[str, int]]]:
    """The rows of a batch, and its numbers of each arrival unit.

    A batch with numbers has few rows, so the driver computes them once, for both.
    """
    if not batch.numbers:
        return batch.rows, {}
    rows = batch.rows.toArrow()
    columns = rows.select(["arrival_unit", *batch.numbers]).to_pylist()
    numbers = {row.pop("arrival_unit"): row for row in columns}
    return _local(batch.rows, rows), {
        arrival_unit: {
            name: int(value) for name, value in of_arrival_unit.items() if value is not None
        }
        for arrival_unit, of_arrival_unit in numbers.items()
    }


def _by_arrival_unit(failing: DataFrame, result: CheckResult) -> dict[date, int]:
    """The number of rows that fail a check, of each arrival unit."""
    if result.passed or "arrival_unit" not in failing.columns:
        return {}
    counts = failing.where(F.expr(result.check.failing)).groupBy("arrival_unit").count()
    return {row["arrival_unit"]: row["count"] for row in counts.collect()}


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


@contextmanager
def _held(failing: DataFrame) -> Iterator[DataFrame]:
    """The failing rows, computed once: on the driver if they are few, else persisted."""
    few = failing.limit(_HELD_ROWS + 1).toArrow()
    if few.num_rows <= _HELD_ROWS:
        yield _local(failing, few)
        return
    failing.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield failing
    finally:
        failing.unpersist()


def _local(frame: DataFrame, rows: pa.Table) -> DataFrame:
    """The computed rows of a frame as a frame."""
    # Spark refuses a column of lists without chunks.
    known = rows if rows.num_rows else rows.schema.empty_table()
    return frame.sparkSession.createDataFrame(known)


def _checked(result: Any) -> str:
    name: str = result.expectation_config.meta["check"]
    return name


def _check_result(check: Check, result: Any) -> CheckResult:
    info = result.exception_info or {}
    details = result.result.get("details") if result.result else None
    if details is None:
        raise RuntimeError(
            f"check {check.name}: the query of the check must run, but failed: {info}"
        )
    failing = details["unexpected_rows"][:SAMPLE_ROWS]
    sample = [_for_people(row) for row in failing]
    return CheckResult(check, result.result["observed_value"], sample)


def _for_people(row: Mapping[str, object]) -> dict[str, str]:
    """A row's values as texts, without internal columns; internal times stand as times."""
    shown = {name: _shown(value) for name, value in row.items() if not name.startswith("_")}
    for name, value in row.items():
        time = name.removeprefix("_").removesuffix("_ms")
        if f"_{time}_ms" == name and time not in row and isinstance(value, int):
            shown[time] = "None" if value == NEVER_MS else time_text(value)
    return shown


def _shown(value: object) -> str:
    """A value as a text; a key of several columns as commands take it."""
    text = str(value)
    if isinstance(value, Row):
        text = ",".join("" if part is None else str(part) for part in value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."
