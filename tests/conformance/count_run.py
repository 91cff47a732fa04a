"""Answers golden cases of count windows with the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from tests.conformance.cases import Case
from tests.conformance.count_cases import ANSWERS, Update, sorted_updates
from windows_pipeline.aggregates import FUNCTIONS, Aggregate
from windows_pipeline.engine.counts import evaluate_counts
from windows_pipeline.windows.count_windows import CountWindows


@dataclass
class CountAnswers:
    """The engine's answers to a case, by the fields of the format."""

    updates: list[Update] = field(default_factory=list)
    datastream_updates: list[Update] = field(default_factory=list)


def answer_counts(spark: SparkSession, cases: Mapping[int, Case]) -> dict[int, CountAnswers]:
    """Answers the cases of count windows in one job, with two computed days for each case.

    Args:
        spark: The session.
        cases: Cases of any kind, by their numbers.
    """
    specs = {
        number: case.spec for number, case in cases.items() if isinstance(case.spec, CountWindows)
    }
    answers = {number: CountAnswers() for number in specs}
    if not specs:
        return answers
    computed_days = {
        number * len(ANSWERS) + index: replace(spec, short_first=name == "datastream_updates")
        for number, spec in specs.items()
        for index, name in enumerate(ANSWERS)
    }
    rows = [
        (day, record.key, record.offset)
        for day in computed_days
        for record in cases[day // len(ANSWERS)].records
    ]
    records = spark.createDataFrame(rows, "_computed_day int, key string, offset bigint")
    offsets = Aggregate("offsets", FUNCTIONS["collect_list"], "offset")
    for row in evaluate_counts(records, computed_days, ["key"], [offsets]).collect():
        number, index = divmod(row["_computed_day"], len(ANSWERS))
        update = Update(row.last_offset, row.key, tuple(sorted(row.offsets)))
        getattr(answers[number], ANSWERS[index]).append(update)
    for found in answers.values():
        found.updates = sorted_updates(found.updates)
        found.datastream_updates = sorted_updates(found.datastream_updates)
    return answers
