"""Runs checks with Great Expectations: rows that a query finds are the rows that fail."""

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

# Great Expectations reads it when imported.
os.environ["GX_ANALYTICS_ENABLED"] = "false"

SAMPLE_ROWS = 10
"""How many failing rows a result shows."""
_HELD_ROWS = 200
"""So many failing rows the driver holds for the checks' queries."""


@dataclass(frozen=True)
class Check:
    """A rule that a table's rows must keep.

    Attributes:
        name: Its name; unique in its table.
        description: What must hold, for people.
        failing: SQL, a condition: true of the rows that break it.
        blocking: Whether rows that break it are kept from the table's readers.
        is_warning: Whether what breaks it may be as it should be; else it is a failure.
    """

    name: str
    description: str
    failing: str
    blocking: bool = True
    is_warning: bool = False

    @property
    def failing_rows(self) -> str:
        """The query over `{batch}` that finds the rows that break it."""
        # A query is a template: braces in a literal would be taken for a name.
        plain = self.failing.replace("{", "{{").replace("}", "}}")
        return f"SELECT * FROM {{batch}} WHERE {plain}"  # noqa: S608  its text is our own


@dataclass(frozen=True)
class Batch:
    """Rows with what is needed to judge them, and the checks to run on them.

    Attributes:
        name: What the rows are.
        rows: What the checks see; where rows are many, those that `breaking` leaves.
        checks: The checks.
        shared: What the rows are made of, where another batch is made of it, too: to be kept
            while the checks run.
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
        failing_rows: How many rows break it.
        sample: The first of them, at most `SAMPLE_ROWS`, as text by column.
    """

    check: Check
    failing_rows: int
    sample: list[dict[str, str]]

    @property
    def passed(self) -> bool:
        """Whether no row breaks it."""
        return self.failing_rows == 0


def breaking(checks: Sequence[Check]) -> Column:
    """The condition that a row breaks any of the checks.

    Rows that it leaves are few, so each check can have its own query without another pass.
    """
    return F.expr(" OR ".join(f"coalesce({check.failing}, FALSE)" for check in checks))


def import_ahead() -> None:
    """Has Great Expectations imported beside what Spark does meanwhile."""
    module = "great_expectations.expectations.core"
    Thread(target=import_module, args=[module], daemon=True).start()


def validate(batch: Batch) -> list[CheckResult]:
    """Runs the checks of a batch in one validation, in their order.

    Raises:
        RuntimeError: A check could not be run: its query is wrong.
    """
    # The import takes seconds: it waits until here, or `import_ahead`.
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
    """What Great Expectations knows a session's frames as; to tell it takes as long as a query.

    It asks for the active session once: that of the frames, which the cache tells apart.
    """
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    logging.getLogger("great_expectations").setLevel(logging.WARNING)
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    # By default the data source would cache the whole batch.
    source = context.data_sources.add_spark("spark", persist=False)
    return source.add_dataframe_asset("rows")


@contextmanager
def _held(failing: DataFrame) -> Iterator[DataFrame]:
    """The same rows for a query a check; here if they are few, and then it starts no job."""
    few = failing.limit(_HELD_ROWS + 1).toArrow()
    if few.num_rows <= _HELD_ROWS:
        yield failing.sparkSession.createDataFrame(few)
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
        raise RuntimeError(f"check {check.name}: it could not be run: {info}")
    failing = details["unexpected_rows"][:SAMPLE_ROWS]
    sample = [{name: str(value) for name, value in row.items()} for row in failing]
    return CheckResult(check, result.result["observed_value"], sample)
