"""Kernels refuse rows in another order than theirs; a recount finds a key in two tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.support.radix_batches import sorted_as_by_spark, with_sort_key
from windows_pipeline.aggregates import FUNCTIONS, Aggregate
from windows_pipeline.checks.recounts.kernel import window_recount
from windows_pipeline.checks.recounts.session_kernel import session_recount
from windows_pipeline.checks.recounts.shards import IS_OWN, SHARD
from windows_pipeline.engine.count_kernel import CountKernel
from windows_pipeline.engine.firings.kernel import FiringKernel, FiringSpec
from windows_pipeline.engine.firings.watermark_steps import Advances
from windows_pipeline.engine.row_kernel import RowKernel
from windows_pipeline.engine.window_kernel import LateKernel, WindowKernel
from windows_pipeline.kernels.order import SORT_KEY, require_order
from windows_pipeline.kernels.windows.chunk import ComputedDay
from windows_pipeline.windows import (
    CountWindows,
    SessionWindows,
    SlideRows,
    SlidingWindows,
    TimeWindows,
    WindowSpec,
)
from windows_pipeline.windows.firing.triggers import Trigger
from windows_pipeline.windows.frames.bounds import FrameUnit

Kernel = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
KEYS, OF_KEY = 30, 20
ROWS = KEYS * OF_KEY
GROUP = ["_computed_day", "key"]
OFFSETS = np.arange(ROWS)
TIMES_MS = np.tile(np.arange(OF_KEY) * 10, KEYS)
TOTAL = [Aggregate("total", FUNCTIONS["sum"], "offset")]
WINDOWS: list[WindowSpec] = [
    SlidingWindows(50, 0),
    SlidingWindows.of("50 ms"),
    TimeWindows(50, 10, 0),
    SessionWindows(5, 0),
]


def by_hash() -> pa.RecordBatch:
    """Records in the order of `in_radix_order`."""
    return sorted_as_by_spark(records(), np.repeat(np.arange(KEYS) - KEYS // 2, OF_KEY))


def by_group() -> pa.RecordBatch:
    """Records in the order of `in_group_order` and `by_group`."""
    return with_sort_key(records(), GROUP)


def records() -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "_computed_day": pa.array(np.zeros(ROWS, np.int32)),
            "key": pa.array([f"key {number:02}" for number in OFFSETS // OF_KEY]),
            "_event_time_ms": TIMES_MS,
            "_stream_time_ms": TIMES_MS,
            "_close_time_ms": TIMES_MS - 100,
            "_is_new": np.ones(ROWS, np.bool_),
            "is_window": np.zeros(ROWS, np.bool_),
            "_window_end_ms": pa.nulls(ROWS, pa.int64()),
            "_first_event_time_ms": pa.nulls(ROWS, pa.int64()),
            "_last_event_time_ms": pa.nulls(ROWS, pa.int64()),
            "record_count": pa.nulls(ROWS, pa.int64()),
            "arrival_unit": pa.array([date(2026, 1, 1)] * ROWS),
            "source_partition": ["0"] * ROWS,
            "offset": OFFSETS,
            SHARD: np.zeros(ROWS, np.int64),
            IS_OWN: np.ones(ROWS, np.bool_),
        }
    )


def firings() -> Kernel:
    times_ms = np.arange(OF_KEY) * 10
    advances = Advances(times_ms, np.ones(OF_KEY, np.bool_), pa.table({"offset": times_ms}))
    days = {0: FiringSpec(SlidingWindows(50, 0), Trigger(early_every_records=1))}
    return FiringKernel(days, {0: advances}, ["key"], ["offset"], TOTAL)


RECOUNT = window_recount(SlidingWindows(50, 0))


def kernels() -> Iterator[tuple[str, Kernel, pa.RecordBatch]]:
    """Each kernel to which Spark passes sorted rows, with rows in its order."""
    for spec in WINDOWS:
        days = {0: ComputedDay(spec)}
        yield f"windows {spec}", WindowKernel(days, ["key"], ["offset"], TOTAL), by_hash()
        yield f"late {spec}", LateKernel(days, ["key"], ["offset"]), by_hash()
    frame = SlideRows(unit=FrameUnit.RANGE, back=30, time_column="_event_time_ms")
    yield "rows", RowKernel({0: frame}, ["key"], TOTAL, ["offset"], ["offset"]), by_group()
    by_arrival = SlideRows(unit=FrameUnit.ROWS, back=3)
    kernel = RowKernel({0: by_arrival}, ["key"], TOTAL, ["offset"], ["offset"])
    yield "rows by arrival", kernel, by_group()
    yield "counts", CountKernel({0: CountWindows(3, 2)}, ["key"], TOTAL), by_group()
    yield "firings", firings(), by_group()
    yield "recount", RECOUNT, by_group()
    yield "recount of sessions", session_recount(5), by_group()


def run(kernel: Kernel, batches: list[pa.RecordBatch]) -> int:
    return sum(batch.num_rows for batch in kernel(iter(batches)))


@pytest.mark.parametrize(
    ("kernel", "rows"), [pytest.param(*each[1:], id=each[0]) for each in kernels()]
)
@pytest.mark.parametrize("size", [ROWS, 7])
def test_a_kernel_refuses_rows_whose_order_was_lost(
    kernel: Kernel, rows: pa.RecordBatch, size: int
) -> None:
    """Rule G2: an error, where results would be wrong without a word; also between batches."""

    def batches(of: pa.RecordBatch) -> list[pa.RecordBatch]:
        return [of.slice(start, size) for start in range(0, ROWS, size)]

    run(kernel, batches(rows))
    index = np.arange(ROWS)
    group_back = np.roll(index, OF_KEY)  # the last key's rows come first
    orders = [np.random.default_rng(1).permutation(ROWS), index[::-1], group_back]
    if kernel is not RECOUNT:  # which needs no order within a group
        # Of the last key the last two rows, which may be of two batches, change places.
        orders.append(np.concatenate((index[:-2], index[:-3:-1])))
    for order in orders:
        with pytest.raises(RuntimeError, match=r"must be sorted by .* lost a shuffle or a sort"):
            run(kernel, batches(rows.take(pa.array(order))))


@pytest.mark.parametrize("spec", WINDOWS[:2])
def test_a_recount_finds_a_key_that_was_in_two_tasks(spec: Any) -> None:
    """Each task had its rows in order, so no kernel can know; docs/decisions/lost-order.md."""
    kernel = WindowKernel({0: ComputedDay(spec)}, ["key"], [], [])
    tasks = [by_hash().filter(pa.array(half == OFFSETS % 2)) for half in range(2)]
    of_window = {"_computed_day": 0, "is_window": True, SHARD: 0, IS_OWN: True}
    windows = [
        {**window, **of_window}
        for task in tasks
        for batch in kernel(iter([task]))
        for window in batch.to_pylist()
    ]
    rows = sorted([*records().to_pylist(), *windows], key=lambda row: row["key"])
    judged = with_sort_key(pa.RecordBatch.from_pylist(rows, records().schema), GROUP)
    found = [row for batch in window_recount(spec)(iter([judged])) for row in batch.to_pylist()]
    assert any(row["is_window"] and row["recount"] != row["record_count"] for row in found)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([None, 1, 2], pa.int64()),
        ([None, -0.5, 1e300, float("inf"), float("nan")], pa.float64()),
        ([None, "", "B", "a", "é", "\U0001f600"], pa.string()),
        ([b"", b"\x00", b"\x7f", b"\xff"], pa.binary()),
        ([False, True], pa.bool_()),
        ([date(1, 1, 1), date(1970, 1, 1)], pa.date32()),
        ([Decimal("-1.5"), Decimal("-1.4"), Decimal("2.0")], pa.decimal128(5, 1)),
        (
            [None, {"x": None, "y": "b"}, {"x": 1, "y": None}, {"x": 1, "y": "a"}],
            pa.struct([("x", pa.int64()), ("y", pa.string())]),
        ),
    ],
)
def test_values_are_compared_as_spark_sorts_them(values: list[Any], kind: pa.DataType) -> None:
    """Rule G2: nulls first, NaN last, text by its bytes; equal values may follow each other."""
    for second in range(len(values)):
        for first in range(len(values)):
            table = pa.table({"by": pa.array([values[first], values[second]], kind)})
            starts = np.array([0, 2])
            if first > second:
                with pytest.raises(RuntimeError, match="must be sorted by by"):
                    require_order(table, starts, ["by"])
            else:
                assert require_order(table, starts, ["by"]).tolist() == [1] * (first == second)
            assert require_order(table, np.array([0, 1, 2]), ["by"]).tolist() == []
    lists = pa.table({"by": pa.array([[2], [1]]), SORT_KEY: [0, 0]})
    assert require_order(lists, np.array([0, 2]), ["by"]).tolist() == []
