"""A kind's rule of lateness is one for arrays and for Spark, and the oracle's (rule A5)."""

from __future__ import annotations

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.support.kinds import DEFINITIONS, arrived
from tests.support.oracle.windows import (
    Definition,
    ForwardDefinition,
    SessionDefinition,
    SlidingDefinition,
    TimeDefinition,
    close_times_met,
    lateness,
)
from tests.support.spark_cases import spec_of
from windows_pipeline.engine.lateness import is_late, is_outside_windows
from windows_pipeline.kernels.windows.assign import Reason, assign
from windows_pipeline.windows import SessionWindows

KINDS: tuple[Definition, ...] = (
    *DEFINITIONS.values(),
    SessionDefinition(gap=12, grace=0),
    SlidingDefinition(time_difference=4, grace=1, first_window_start=8),
    ForwardDefinition(size=3, grace=2),
    TimeDefinition(size=10, advance=10, grace=4),
    TimeDefinition(size=3, advance=5, grace=0),
    TimeDefinition(size=1, advance=1, grace=2, first_window_start=1),
)


def test_late_records_are_those_of_the_oracle(spark: SparkSession) -> None:
    """Rules A4, A5, B2, B6, C1, D2: in gaps and below 0; a late record may still join a session."""
    records, specs = arrived(), [spec_of(definition) for definition in KINDS]
    met = [close_times_met(records, definition) for definition in KINDS]
    rows = [
        (number, one.event_time, int(of[one.id]))
        for number, of in enumerate(met)
        for one in records
    ]
    in_spark, last_instant = F.lit(None).cast("string"), F.lit(None).cast("bigint")
    for number, spec in enumerate(specs):
        reason = F.when(is_outside_windows(spec), "outside_windows").when(is_late(spec), "late")
        is_of_kind = F.col("number") == number
        in_spark = F.when(is_of_kind, reason).otherwise(in_spark)
        of_end = spec.last_instant(F.col("_event_time_ms"))
        last_instant = F.when(is_of_kind, of_end).otherwise(last_instant)
    columns = "number int, _event_time_ms bigint, _close_time_ms bigint"
    found = spark.createDataFrame(rows, columns).select("number", in_spark, last_instant).collect()
    reasons: set[str | None] = set()
    of_sessions: set[tuple[bool, str | None]] = set()
    for number, (definition, spec) in enumerate(zip(KINDS, specs, strict=True)):
        of_kind = [row for row in found if row[0] == number]
        _, time_ms, close_ms = np.array([row for row in rows if row[0] == number], np.int64).T
        assert [row[2] for row in of_kind] == spec.last_instant(time_ms).tolist()
        wanted = [lateness(records, definition).get(one.id) for one in records]
        if isinstance(spec, SessionWindows):
            late = spec.is_late(spec.last_start(time_ms), close_ms).tolist()
            assert [row[1] == "late" for row in of_kind] == late
            of_sessions.update(zip(late, wanted, strict=True))
        else:
            judged = assign(spec, time_ms, close_ms).reason
            in_kernel = [None if each == 0 else Reason(each).name.lower() for each in judged]
            assert [row[1] for row in of_kind] == in_kernel == wanted
            reasons.update(wanted)
    assert of_sessions == {(False, None), (True, None), (True, "late")}
    assert reasons == {None, "late", "outside_windows"}
