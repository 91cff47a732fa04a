"""Answers the cases of row windows in one Spark job, with a computed day for each case."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from tests.conformance.cases import Case
from tests.conformance.row_cases import RowAnswer
from windows_pipeline.aggregates import FUNCTIONS, Aggregate
from windows_pipeline.engine.rows import evaluate_rows
from windows_pipeline.windows.frames.row_windows import RowWindow

_OFFSETS = Aggregate("offsets", FUNCTIONS["collect_list"], "offset")


def answer_rows(spark: SparkSession, cases: Mapping[int, Case]) -> dict[int, list[RowAnswer]]:
    """Answers the cases of row windows, over their whole input.

    Args:
        spark: The session.
        cases: Cases of any kind, by their numbers.
    """
    computed_days = {n: case.spec for n, case in cases.items() if isinstance(case.spec, RowWindow)}
    if not computed_days:
        return {}
    rows = [
        (number, position, record.offset, record.key, record.timestamp)
        for number in computed_days
        for position, record in enumerate(cases[number].records)
    ]
    schema = "_computed_day int, arrival bigint, offset bigint, key string, _event_time_ms bigint"
    records = spark.createDataFrame(rows, schema)
    keep = ["_computed_day", "offset", "key"]
    answers: dict[int, list[RowAnswer]] = {number: [] for number in computed_days}
    for row in evaluate_rows(
        records, computed_days, ["key"], [_OFFSETS], ["arrival"], keep
    ).collect():
        bounds = row["_window_start_ms"], row["_window_end_ms"]
        answer = RowAnswer(row.key, row.offset, *bounds, tuple(sorted(row.result_0)))
        answers[row["_computed_day"]].append(answer)
    return {number: sorted(found, key=repr) for number, found in answers.items()}
