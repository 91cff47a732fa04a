"""Aggregates with expressions, conditions and code fail in their windows alone (rules G1, G3)."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from tests.support.oracle.aggregates import AggregateFailedError, aggregate
from tests.support.oracle.expressions import Computed, ExpressionFailedError, call_of
from windows_pipeline.aggregates import UserModules
from windows_pipeline.config import BoundAggregates, Source
from windows_pipeline.config.aggregates import aggregates_of, bound
from windows_pipeline.incremental.windows import arrival_unit_windows
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.kernels.windows.chunk import Closing
from windows_pipeline.windows import (
    CountWindows,
    GracedRows,
    PipelineWindows,
    SessionWindows,
    SlideRows,
    SlidingWindows,
    TimeWindows,
)
from windows_pipeline.windows.frames.bounds import FrameUnit

MOST = 2**63 - 1
RECORDS = [
    ("a", 0, 4), ("a", 1, 3), ("a", 2, 2), ("a", 5, MOST), ("a", 21, 5), ("a", 22, None),
    ("b", 0, -MOST), ("b", 3, 1), ("b", 4, 666), ("b", 30, 7), ("b", 31, 8), ("b", 33, -9),
]  # fmt: skip
COMPUTED: dict[str, tuple[str, str | Computed]] = {
    "many": ("count", Computed(None, (">", "n", 3))),
    "weighed": ("sum", Computed(("*", ("+", "n", 1), ("neg", "n")), (">", 100, "n"))),
    "most": ("max", Computed(("*", "n", 2))),
    "small": ("count", Computed(None, (">", 9, ("*", "n", 2)))),
    "total": ("sum", "n"),
}
SPECS: dict[str, PipelineWindows] = {
    "tumbling": TimeWindows(10, 10, 0),
    "hopping": TimeWindows(10, 4, 0),
    "sliding": SlidingWindows(5, 0),
    "sessions": SessionWindows(5, 0),
    "rows": GracedRows(SlideRows(unit=FrameUnit.ROWS, back=1), 0),
    "counts": GracedRows(CountWindows(2, 2), 0),
}
CODE = """from windows_pipeline import UserAggregate


def update(total, value):
    if value == 666:
        raise ValueError("the number of the beast")
    return total + value


def listed(texts, value):
    return [*texts, f"{value['k']} {value['n']} {value['half']}"]


total = UserAggregate(int, update, lambda a, b: a + b, str, "string")
parts = UserAggregate(list, listed, lambda a, b: a + b, list, "array<string>")
"""
SOURCE = Source(
    path="data",
    format="csv",
    key="k",
    event_time="at",
    columns={"k": "string", "at": "timestamp", "n": "bigint", "id": "bigint"},
)


def records_of(spark: SparkSession) -> DataFrame:
    """The records, none of them late, as `records_to_read` returns them."""
    rows = [(key, ms, n, number) for number, (key, ms, n) in enumerate(RECORDS)]
    frame = spark.createDataFrame(
        rows, "key string, _event_time_ms bigint, n bigint, offset bigint"
    )
    return frame.coalesce(1).withColumns(
        {
            "_computed_day": F.lit(0),
            "event_time": F.timestamp_millis("_event_time_ms"),
            "_close_time_ms": F.lit(NEVER_MS).cast("bigint"),
            "_is_new": F.lit(True),
            "arrival_unit": F.lit(date(1970, 1, 1)),
            "source_partition": F.lit("0"),
            "id": F.col("offset"),
        }
    )


def expected(function: str, column: str | Computed, ids: list[int]) -> tuple[Any, bool]:
    """The oracle's result for some records, and whether it fails."""
    own = [{"n": RECORDS[number][2]} for number in ids]
    try:
        values = [
            column.of(record, ()) if isinstance(column, Computed) else record[column]
            for record in own
        ]
        return aggregate(function, values, [0] * len(values), "bigint"), False
    except (AggregateFailedError, ExpressionFailedError):
        return None, True


def bound_to(texts: dict[str, str], modules: UserModules) -> BoundAggregates:
    return bound(aggregates_of(texts, modules), SOURCE)


def window_of(row: Row) -> tuple[Any, ...]:
    """What names a window: of row windows the row, too."""
    return tuple(row[name] for name in ("key", "_window_end_ms", "offset") if name in row)


@pytest.mark.parametrize("name", SPECS)
def test_an_aggregate_fails_where_a_record_of_the_window_fails(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    """Rules A6, G1, G3: of every kind, of records that are moved and of slices."""
    module = tmp_path / "my_module.py"
    module.write_text(CODE)
    texts = {of: call_of(*call) for of, call in COMPUTED.items()}
    listed = {**texts, "ids": "collect_list(id)", "code": "my_module:total(n) where n < 1000"}
    listed["parts"] = "my_module:parts(struct(k, n, n / 2 as half))"
    closings = {0: Closing(NEVER_MS, 1000)}
    found = {}
    for way, wanted in (("moved", listed), ("summed", texts)):
        aggregates = bound_to(wanted, UserModules((module,)))
        windows = arrival_unit_windows(records_of(spark), SPECS[name], aggregates, closings)
        found[way] = windows.where("record_count > 0").collect()
    results = {}
    failures = set()
    for row in found["moved"]:
        assert len(row.ids) == row.record_count
        failed = []
        for of, call in COMPUTED.items():
            value, fails = expected(*call, row.ids)
            assert row[of] == value, (of, row)
            failed += [of] if fails else []
        values = [RECORDS[number][2] for number in row.ids]
        counted = [value for value in values if value is not None and value < 1000]
        if 666 in counted:
            failed.append("code")
        else:
            assert row.code == str(sum(counted))
        halves = [None if value is None else value / 2 for value in values]
        whole = zip(values, halves, strict=True)
        assert row.parts == [f"{row.key} {value} {half}" for value, half in whole]
        assert row.failed == failed
        reasons = [text for text in row["_reasons"] if text.startswith("code\n")]
        assert bool(reasons) == ("code" in failed)
        assert all(f"({module}, line 6, in update)" in text for text in reasons)
        failures.update(failed)
        results[window_of(row)] = [row[of] for of in texts], failed
    assert failures == {"weighed", "most", "small", "total", "code"}
    for row in found["summed"]:
        values, failed = results.pop(window_of(row))
        assert [row[of] for of in texts] == values
        assert row.failed == [of for of in failed if of != "code"]
        assert "_reasons" not in row
    assert results == {}
