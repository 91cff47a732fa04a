"""Answers many cases in a few Spark jobs, with a computed day for each case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from tests.conformance.cases import AnyCase, Case, WindowAnswer
from tests.conformance.count_run import CountAnswers, answer_counts
from tests.conformance.firing_cases import FiringCase, firing_differences
from tests.conformance.row_cases import RowAnswer
from tests.conformance.row_run import answer_rows
from tests.conformance.updates import partial_results
from windows_pipeline.aggregates import FUNCTIONS, Aggregate
from windows_pipeline.engine.windows import evaluate_windows, late
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.kernels.windows.assign import Reason, assign
from windows_pipeline.kernels.windows.chunk import ComputedDay
from windows_pipeline.windows import SessionWindows, WindowSpec

_OFFSETS = Aggregate("offsets", FUNCTIONS["collect_list"], "offset")
_ARRIVAL = ["partition", "offset"]
_END_OF_TIME_MS = -NEVER_MS


@dataclass
class Answers:
    """The engine's answers to a case, by the fields of the format."""

    final: list[WindowAnswer] = field(default_factory=list)
    open: list[WindowAnswer] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    partially_late: list[int] = field(default_factory=list)
    rows: list[RowAnswer] = field(default_factory=list)

    @property
    def windows(self) -> list[WindowAnswer]:
        """The final and the open windows together."""
        return sorted(self.final + self.open, key=repr)


class Compared(NamedTuple):
    """What differs, by the cases' numbers.

    Attributes:
        lines: A line for each difference; none for a passed case.
        apart: Of `Case.apart` whether each answer is the engine's, by its field.
    """

    lines: dict[int, Sequence[str]]
    apart: dict[int, dict[str, bool]]


def compare(spark: SparkSession, cases: Mapping[int, AnyCase]) -> Compared:
    """Answers cases of every kind, and compares the answers.

    Args:
        spark: The session.
        cases: The cases, by their numbers.
    """
    firing = {number: case for number, case in cases.items() if isinstance(case, FiringCase)}
    windows = {number: case for number, case in cases.items() if isinstance(case, Case)}
    found = answer(spark, windows)
    lines = {number: differences(case, found.get(number)) for number, case in windows.items()}
    updates = partial_results(spark, windows)
    apart = {
        number: {
            name: wanted == (updates[number] if name == "updates" else getattr(answered, name))
            for name, wanted in windows[number].apart.items()
        }
        for number, answered in found.items()
    }
    return Compared(lines | firing_differences(spark, firing), apart)


def answer(spark: SparkSession, cases: Mapping[int, Case]) -> Mapping[int, Answers | CountAnswers]:
    """Answers the cases that have a window specification.

    Args:
        spark: The session.
        cases: The cases, by their numbers.
    """
    rows = {number: Answers(rows=found) for number, found in answer_rows(spark, cases).items()}
    return {**_answer_times(spark, cases), **answer_counts(spark, cases), **rows}


def _answer_times(spark: SparkSession, cases: Mapping[int, Case]) -> dict[int, Answers]:
    """Answers the cases of windows by time."""
    specs = _time_specs(cases)
    if not specs:
        return {}
    computed_days = {number: ComputedDay(spec) for number, spec in specs.items()}
    answers = {number: Answers() for number in specs}
    records = _records(spark, {number: cases[number] for number in specs}).persist()
    try:
        for row in evaluate_windows(
            records, computed_days, ["key"], [_OFFSETS], _ARRIVAL
        ).collect():
            case, spec = cases[row["_computed_day"]], specs[row["_computed_day"]]
            end_ms = row["_window_end_ms"]
            if case.is_batch and isinstance(spec, SessionWindows):
                end_ms += spec.gap_ms
            window = WindowAnswer(
                row.key, row["_window_start_ms"], end_ms, tuple(sorted(row.offsets))
            )
            found = answers[row["_computed_day"]]
            (found.final if row.closed else found.open).append(window)
        for row in (
            late(records, computed_days, ["key"], _ARRIVAL).where("reason = 'late'").collect()
        ):
            answers[row["_computed_day"]].dropped.append(row.offset)
        for row in records.where("_close_time_ms IS NOT NULL").collect():
            if _is_partly_late(
                specs[row["_computed_day"]], row["_event_time_ms"], row["_close_time_ms"]
            ):
                answers[row["_computed_day"]].partially_late.append(row.offset)
    finally:
        records.unpersist()
    for found in answers.values():
        found.final.sort(key=repr)
        found.open.sort(key=repr)
        found.dropped.sort()
        found.partially_late.sort()
    return answers


def _time_specs(cases: Mapping[int, Case]) -> dict[int, WindowSpec]:
    return {
        number: case.spec for number, case in cases.items() if isinstance(case.spec, WindowSpec)
    }


def _is_partly_late(spec: WindowSpec, time_ms: int, close_ms: int) -> bool:
    if isinstance(spec, SessionWindows):
        return False
    times_ms = np.array([time_ms])
    at_arrival, ever = (assign(spec, times_ms, np.array([ms])) for ms in (close_ms, NEVER_MS))
    return at_arrival.reason[0] == Reason.NONE and bool(at_arrival.enter_ms > ever.enter_ms)


def _records(spark: SparkSession, cases: Mapping[int, Case]) -> DataFrame:
    """Makes the cases' records, with the close times before and after each (rules A2 to A4)."""
    rows = [(number, *record) for number, case in cases.items() for record in case.records]
    schema = "_computed_day int, offset bigint, partition int, key string, _event_time_ms bigint"
    definitions = [
        (number, spec.close_delay_ms, cases[number].is_batch)
        for number, spec in _time_specs(cases).items()
    ]
    delays = spark.createDataFrame(
        definitions, "_computed_day int, delay_ms bigint, is_batch boolean"
    )
    partition = Window.partitionBy("_computed_day", "partition")
    so_far = partition.orderBy("offset").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    records = (
        spark.createDataFrame(rows, schema)
        .withColumn("_stream_time_ms", F.max("_event_time_ms").over(so_far))
        .withColumn("partition_max_ms", F.max("_event_time_ms").over(partition))
        .join(F.broadcast(delays), "_computed_day")
    )
    slowest_ms = F.min("partition_max_ms").over(Window.partitionBy("_computed_day"))
    on_time = F.lit(None).cast("bigint")
    return records.select(
        "_computed_day",
        "offset",
        "partition",
        "key",
        "_event_time_ms",
        F.when(F.col("is_batch"), on_time)
        .otherwise(F.col("_stream_time_ms") - F.col("delay_ms"))
        .alias("_close_time_ms"),
        F.when(F.col("is_batch"), F.lit(_END_OF_TIME_MS))
        .otherwise(slowest_ms - F.col("delay_ms"))
        .alias("_close_after_ms"),
    )


def differences(case: Case, found: Answers | CountAnswers | None) -> Sequence[str]:
    """Returns a line for each window, row or offset list that differs; none for a passed case."""
    if case.refusal is not None or found is None:
        if case.refusal_expected:
            return []
        return [f"{case.id}: refused: {case.refusal}"]
    if case.refusal_expected:
        return [f"{case.id}: expected a refusal, got an answer"]
    if not case.expected:
        return [f"{case.id}: has no answer to compare with"]
    lines = []
    for name, expected in case.expected.items():
        got = getattr(found, name)
        if got == expected:
            continue
        missing = [answer for answer in expected if answer not in got]
        unexpected = [answer for answer in got if answer not in expected]
        lines += [f"{case.id}: {name}: missing {answer}" for answer in missing]
        lines += [f"{case.id}: {name}: not expected {answer}" for answer in unexpected]
        if len(lines) == 0:
            lines.append(f"{case.id}: {name}: expected {expected}, got {got}")
    return lines
