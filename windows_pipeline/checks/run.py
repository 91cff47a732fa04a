"""Runs checks with Great Expectations; a check is a query that finds the failing rows."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from threading import Thread
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

# Great Expectations reads this variable when it is imported.
os.environ["GX_ANALYTICS_ENABLED"] = "false"

SAMPLE_ROWS = 10
"""A result shows at most so many failing rows."""
_LONGEST_VALUE = 200
"""A sample shows at most so many characters of a value."""
_HELD_ROWS = 200
"""The driver holds at most so many failing rows for the checks' queries."""


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
    """

    name: str
    rows: DataFrame
    checks: Sequence[Check]
    shared: DataFrame | None = None


@dataclass(frozen=True)
class CheckResult:
    """What a check found.

    Attributes:
        check: The check.
        failing_rows: The number of failing rows.
        sample: Up to `SAMPLE_ROWS` failing rows, as texts by column.
    """

    check: Check
    failing_rows: int
    sample: list[dict[str, str]]

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
    module = "great_expectations.expectations.core"
    Thread(target=import_module, args=[module], daemon=True).start()


def validate(batch: Batch) -> list[CheckResult]:
    """Runs the checks of a batch in one validation, in their order.

    Raises:
        RuntimeError: The query of a check failed.
    """
    # The import takes seconds, so it happens here or in `import_ahead`.
    import great_expectations as gx
    from great_expectations.expectations.core import UnexpectedRowsExpectation

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
    with _held(batch.rows.where(breaking(batch.checks))) as failing:
        rows = asset.get_batch(asset.build_batch_request({"dataframe": failing}))
        # COMPLETE is bounded here: of failing rows Great Expectations fetches 200 at most.
        outcome = rows.validate(suite, result_format="COMPLETE")
        found = {_checked(result): result for result in outcome.results}
        return [_check_result(check, found[check.name]) for check in batch.checks]


@lru_cache(maxsize=2)
def _any_frame(_session: SparkSession) -> Any:
    """The asset by which Great Expectations accepts frames of a session; slow to make, so cached.

    Great Expectations takes the session that is active when the asset is made, so each session
    has an asset of its own.
    """
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    logging.getLogger("great_expectations").setLevel(logging.WARNING)
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    # The data source would persist the whole batch by default.
    source = context.data_sources.add_spark("spark", persist=False)
    return source.add_dataframe_asset("rows")


@contextmanager
def _held(failing: DataFrame) -> Iterator[DataFrame]:
    """The failing rows, computed once: on the driver if they are few, else persisted."""
    few = failing.limit(_HELD_ROWS + 1).toArrow()
    if few.num_rows <= _HELD_ROWS:
        # Spark refuses a column of lists without chunks.
        known = few if few.num_rows else few.schema.empty_table()
        yield failing.sparkSession.createDataFrame(known)
        return
    failing.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield failing
    finally:
        failing.unpersist()


def _checked(result: Any) -> str:
    name: str = result.expectation_config.meta["check"]
    return name


def _check_result(check: Check, result: Any) -> CheckResult:
    info = result.exception_info or {}
    details = result.result.get("details") if result.result else None
    if details is None:
        raise RuntimeError(f"check {check.name}: its query must run, but failed: {info}")
    failing = details["unexpected_rows"][:SAMPLE_ROWS]
    sample = [{name: _shown(value) for name, value in row.items()} for row in failing]
    return CheckResult(check, result.result["observed_value"], sample)


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."
