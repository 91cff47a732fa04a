"""Runs checks with Great Expectations; a check is a query that finds the failing rows."""

from __future__ import annotations

import logging
import os
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache, partial, reduce
from importlib import import_module
from threading import Thread
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from windows_pipeline.compat.progress_bars import without_progress_bars
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.storage.arrival_units import in_arrival_units
from windows_pipeline.text.instants import time_text
from windows_pipeline.text.values import cut, value_text

# Great Expectations reads this variable when it is imported.
os.environ["GX_ANALYTICS_ENABLED"] = "false"

_BATCH, _ROWS = "_batch", "_rows"
"""Columns of the verdicts: the number of the batch; how many of its rows have the verdict."""
_CHECK, _FAILS = "check", "fails"
_BOUNDS = (("smallest", "least"), ("largest", "most"))
"""Columns of the frame that Great Expectations judges: values, each with its bound."""
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
        unjudged: The SQL condition that is true for rows that `failing` does not judge; or None.
    """

    name: str
    description: str
    failing: str
    blocking: bool = True
    is_warning: bool = False
    within: Within | None = None
    unjudged: str | None = None

    @property
    def breaks(self) -> str:
        """The SQL condition that is true for rows that break the rule."""
        outside = "" if self.within is None else f" OR {self.within.breaks}"
        return f"coalesce({self._judged}{outside}, FALSE)"

    @property
    def _judged(self) -> str:
        """The condition `failing` of the rows that the rule judges."""
        if self.unjudged is None:
            return self.failing
        return f"({self.failing}) AND NOT ({self.unjudged})"

    @property
    def verdict(self) -> dict[str, Column]:
        """The columns by which Great Expectations judges a row, by name."""
        verdict = {self.fails: F.expr(f"coalesce({self._judged}, FALSE)")}
        if self.unjudged is not None:
            left_out = f"({self.failing}) AND ({self.unjudged})"
            verdict[self.excused] = F.expr(f"coalesce({left_out}, FALSE)")
        if self.within is not None:
            verdict[self.value] = F.expr(self.within.value).cast("bigint")
        return verdict

    @property
    def fails(self) -> str:
        """The column of the verdict that says whether `failing` is true."""
        return f"_fails_{self.name}"

    @property
    def excused(self) -> str:
        """The column of the verdict that says whether a row that is not judged would fail."""
        return f"_excused_{self.name}"

    @property
    def value(self) -> str:
        """The column of the verdict that has the value of `within`."""
        return f"_value_{self.name}"

    @property
    def smallest(self) -> str:
        """The column of `verdicts_of` that has the smallest value of `within`."""
        return f"_smallest_{self.name}"

    @property
    def largest(self) -> str:
        """The column of `verdicts_of` that has the largest value of `within`."""
        return f"_largest_{self.name}"

    @property
    def broken(self) -> str:
        """The column of `verdicts_of` that says how many rows break a rule with bounds."""
        return f"_broken_{self.name}"

    @property
    def found_values(self) -> list[Column]:
        """The columns `smallest`, `largest` and `broken` of rows with the same verdict."""
        of_verdict = self.within and replace(self.within, value=f"`{self.value}`")
        of_value = replace(self, failing=f"`{self.fails}`", within=of_verdict, unjudged=None)
        return [
            F.min(self.value).alias(self.smallest),
            F.max(self.value).alias(self.largest),
            F.count_if(F.expr(of_value.breaks)).alias(self.broken),
        ]


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
        excused: The arrival units with rows that would fail, but that the check does not judge.
    """

    check: Check
    failing_rows: int
    sample: list[dict[str, str]]
    failing_by_arrival_unit: Mapping[date, int] = field(default_factory=dict)
    numbers: Mapping[date, Mapping[str, int]] = field(default_factory=dict)
    excused: Collection[date] = ()

    @property
    def passed(self) -> bool:
        """Whether no row fails."""
        return self.failing_rows == 0


def with_verdicts(rows: DataFrame, checks: Sequence[Check], *columns: str | Column) -> DataFrame:
    """The verdicts of rows, and some columns of the rows beside them."""
    verdicts = {name: of_row for check in checks for name, of_row in check.verdict.items()}
    return rows.select(*columns, *(of_row.alias(name) for name, of_row in verdicts.items()))


def import_ahead() -> None:
    """Imports Great Expectations in a thread, while Spark works."""
    module = "great_expectations.expectations"
    Thread(target=import_module, args=[module], daemon=True).start()


def validate(batches: Sequence[Batch]) -> list[CheckResult]:
    """Runs the checks of a table's batches in one validation, in their order; see `judge`."""
    if not batches:
        return []
    with verdicts_of(batches) as verdicts:
        found = verdicts.toArrow()
    return judge(batches, found)


@contextmanager
def verdicts_of(batches: Sequence[Batch]) -> Iterator[DataFrame]:
    """The verdicts of all rows of some batches, for `judge`; to be computed within the block.

    Rows of a batch and an arrival unit that have the same verdict are one row, with their number
    and, where a value has bounds, with the smallest and the largest value.
    """
    checks = [check for batch in batches for check in batch.checks]
    bounded = [check for check in checks if check.within is not None]
    judged = [_verdicts(number, batch) for number, batch in enumerate(batches)]
    rows = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), judged)
    same = set(rows.columns) - {check.value for check in bounded}
    found = [column for check in bounded for column in check.found_values]
    with ExitStack() as cached:
        for batch in batches:
            if batch.shared is not None:
                cached.enter_context(_persisted(batch.shared))
        yield rows.groupBy(*sorted(same)).agg(F.count("*").alias(_ROWS), *found)


def judge(batches: Sequence[Batch], verdicts: pa.Table) -> list[CheckResult]:
    """The results of the checks of some batches, in their order.

    Great Expectations judges the verdicts; failing rows are fetched only where there are any.

    Args:
        batches: The batches.
        verdicts: The rows of `verdicts_of`.

    Raises:
        RuntimeError: Great Expectations could not judge the checks, or refuses rows of which none
            counts as failing, or the other way round.
    """
    refused = _refused([check for batch in batches for check in batch.checks], verdicts)
    rows = verdicts.to_pylist()
    of_batches = [[row for row in rows if row[_BATCH] == number] for number in range(len(batches))]
    failing = [
        {check.name: _failing_rows(check, of_batch) for check in batch.checks}
        for batch, of_batch in zip(batches, of_batches, strict=True)
    ]
    _require_same(refused, {name for found in failing for name, days in found.items() if days})
    results: list[CheckResult] = []
    for batch, of_batch, found in zip(batches, of_batches, failing, strict=True):
        numbers = _numbers(batch, of_batch)
        samples = _samples(batch, [check for check in batch.checks if found[check.name]])
        for check in batch.checks:
            by_day = found[check.name]
            shown = samples.get(check.name, [])
            days = {day: count for day, count in by_day.items() if day is not None}
            excused = {row["arrival_unit"] for row in of_batch if row.get(check.excused)}
            result = CheckResult(check, sum(by_day.values()), shown, days, numbers, excused)
            results.append(_with_changes(result, batch.changes))
    return results


def _require_same(refused: set[str], counted: set[str]) -> None:
    """Raises if Great Expectations and our own count of failing rows differ about a check."""
    for name in sorted(refused ^ counted):
        found = "rows, but none counts" if name in refused else "no row, but some count"
        raise RuntimeError(
            f"check {name}: Great Expectations and the count of failing rows must agree, but Great "
            f"Expectations refuses {found} as failing. So nobody knows whether the rows are right: "
            "run the command again; if it fails again, please report it, as one of the two is wrong"
        )


def _verdicts(number: int, batch: Batch) -> DataFrame:
    """The verdicts of a batch's rows, with its number, their arrival units and their numbers."""
    rows = batch.rows if batch.verdicts is None else batch.verdicts
    of_rows = [name for name in ("arrival_unit",) if name in rows.columns]
    numbers = [F.col(name).cast("bigint").alias(_number(name)) for name in batch.numbers]
    columns: list[str | Column] = [F.lit(number).alias(_BATCH), *of_rows, *numbers]
    if batch.verdicts is None:
        return with_verdicts(rows, batch.checks, *columns)
    return rows.select(*columns, *(name for check in batch.checks for name in check.verdict))


def _refused(checks: Sequence[Check], verdicts: pa.Table) -> set[str]:
    """The names of the checks that do not hold for all rows, as Great Expectations judges them."""
    # The import takes seconds, so it happens here or in `import_ahead`.
    import great_expectations as gx

    judged = pa.concat_tables([_of_check(check, verdicts) for check in checks])
    request = {"dataframe": judged.to_pandas(integer_object_nulls=True)}
    asset = _any_frame()
    rows = asset.get_batch(asset.build_batch_request(request))
    has_bounds = any(check.within is not None for check in checks)
    suite = gx.ExpectationSuite("rules", expectations=_expectations(has_bounds=has_bounds))
    outcome = rows.validate(
        suite,
        result_format={"result_format": "COMPLETE", "unexpected_index_column_names": [_CHECK]},
    )
    for result in outcome.results:
        _require_judged(result)
    return {
        row[_CHECK] for result in outcome.results for row in result.result["unexpected_index_list"]
    }


def _of_check(check: Check, verdicts: pa.Table) -> pa.Table:
    """The verdicts of a check, whose name is in each row, with its bounds beside their values."""
    of_check = {_CHECK: pa.array([check.name] * len(verdicts), pa.string())}
    of_check[_FAILS] = verdicts[check.fails]
    nothing = pa.nulls(len(verdicts), pa.int64())
    bounds = (None, None) if check.within is None else (check.within.least, check.within.most)
    for (value, bound), of_bound in zip(_BOUNDS, bounds, strict=True):
        of_check[bound] = nothing.fill_null(of_bound) if of_bound is not None else nothing
        of_check[value] = nothing if check.within is None else verdicts[getattr(check, value)]
    return pa.table(of_check)


def _expectations(*, has_bounds: bool) -> list[Any]:
    """What holds for each verdict; a bound that a check lacks is null."""
    from great_expectations import expectations

    found: list[Any] = [expectations.ExpectColumnValuesToBeInSet(column=_FAILS, value_set=[False])]
    if has_bounds:
        (smallest, least), (largest, most) = _BOUNDS
        found += [
            expectations.ExpectColumnPairValuesAToBeGreaterThanB(
                column_A=larger,
                column_B=smaller,
                or_equal=True,
                ignore_row_if="either_value_is_missing",
            )
            for larger, smaller in ((smallest, least), (most, largest))
        ]
    return found


def _failing_rows(check: Check, verdicts: Sequence[Mapping[str, Any]]) -> dict[date | None, int]:
    """The number of rows that break a check by arrival unit (None for rows without one)."""
    found: dict[date | None, int] = defaultdict(int)
    for row in verdicts:
        if check.within is not None:
            found[row.get("arrival_unit")] += row[check.broken]
        elif row[check.fails]:
            found[row.get("arrival_unit")] += row[_ROWS]
    return {day: count for day, count in found.items() if count}


def _numbers(batch: Batch, verdicts: Sequence[Mapping[str, Any]]) -> dict[date, dict[str, int]]:
    """A batch's numbers of each arrival unit."""
    return {
        row["arrival_unit"]: {
            name: row[_number(name)] for name in batch.numbers if row[_number(name)] is not None
        }
        for row in verdicts
        if batch.numbers
    }


def _number(name: str) -> str:
    """The column of the verdicts that has a number of a batch."""
    return f"_number_{name}"


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


@cache
def _any_frame() -> Any:
    """The asset by which Great Expectations accepts frames; slow to make, so cached."""
    import great_expectations as gx

    logging.getLogger("great_expectations").setLevel(logging.WARNING)
    context = gx.get_context(mode="ephemeral")
    without_progress_bars(context)
    return context.data_sources.add_pandas("pandas").add_dataframe_asset("verdicts")


def _require_judged(result: Any) -> None:
    """Raises if an error kept Great Expectations from judging an expectation."""
    info = result.exception_info or {}
    for found in (info, *(value for value in info.values() if isinstance(value, dict))):
        if found.get("raised_exception"):
            raise RuntimeError(
                "checks: Great Expectations must judge the rows, but failed: "
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
