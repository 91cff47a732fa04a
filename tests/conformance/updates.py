"""Firings after each record, beside the partial results that Kafka forwards (rule E2)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate

from pyspark.sql import SparkSession

from tests.conformance.cases import Case, PartialResult, WindowAnswer
from windows_pipeline.aggregates import FUNCTIONS, Aggregate
from windows_pipeline.engine.firings.kernel import FiringSpec
from windows_pipeline.engine.firings.plan import fire
from windows_pipeline.windows import SessionWindows, SlidingWindows, TimeWindows
from windows_pipeline.windows.firing.triggers import Trigger

_OFFSETS = Aggregate("offsets", FUNCTIONS["collect_list"], "value")


def partial_results(
    spark: SparkSession, cases: Mapping[int, Case]
) -> dict[int, list[PartialResult]]:
    """Each window after each record that changed it, of the cases with updates, in one Spark job.

    Args:
        spark: The session.
        cases: The cases, by their numbers.
    """
    fired = {number: case for number, case in cases.items() if "updates" in case.apart}
    found: dict[int, list[PartialResult]] = {number: [] for number in fired}
    if not fired:
        return found
    days, rows = {}, []
    for number, case in fired.items():
        assert isinstance(case.spec, SlidingWindows | TimeWindows | SessionWindows)
        days[number] = FiringSpec(case.spec, Trigger.at_window_end().early_every_n(1))
        times_ms = accumulate((record.timestamp for record in case.records), max)
        rows += [
            (number, record.offset, record.key, record.timestamp, time_ms, record.offset)
            for record, time_ms in zip(case.records, times_ms, strict=True)
        ]
    columns = "_computed_day int, offset bigint, key string, _event_time_ms bigint, "
    columns += "_stream_time_ms bigint, value bigint"
    records = spark.createDataFrame(rows, columns)
    # What stream time alone makes fire is the state after an earlier record.
    by_record = fire(records, days, ["key"], [_OFFSETS], ["offset"]).where("cause = 'RECORD'")
    for row in by_record.collect():
        bounds = (row["_window_start_ms"], row["_window_end_ms"])
        window = WindowAnswer(row.key, *bounds, tuple(sorted(row.offsets)))
        found[row["_computed_day"]].append(PartialResult(row["_after_offset"], window))
    return {number: sorted(of_case, key=repr) for number, of_case in found.items()}
