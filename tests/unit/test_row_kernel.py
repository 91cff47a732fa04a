"""The kernel of row windows, without Spark, against the oracle."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.oracle.aggregates import aggregate
from tests.support.oracle.rows import CountBlock, Row, RowDefinition, RowsAround, Session, window_of
from tests.support.row_cases import DEFINITIONS, batches_of_rows, row_lists, window_of_definition
from tests.support.spark_cases import PAIRS, PROPERTY, aggregates_of, calls_on, texts
from windows_pipeline.aggregates import FUNCTIONS, Aggregate, UserAggregate
from windows_pipeline.engine.record_shards import ROWS_BEFORE
from windows_pipeline.engine.row_kernel import GROUP_ROWS, NUMBER, RowKernel
from windows_pipeline.engine.time_shards import IN_HOME_SHARD
from windows_pipeline.kernels.order import SORT_KEY
from windows_pipeline.tuning import TUNING, Tuning

JOINED = UserAggregate(
    create=list,
    update=lambda values, value: [*values, value],
    merge=lambda first, second: first + second,
    result=lambda values: ",".join(map(str, values)),
    result_type="string",
)
CALLS = {
    f"{call}_{column}": (call, column)
    for column, kind in {"whole": "bigint", "real": "double", "counted": PAIRS["counted"]}.items()
    for call in calls_on(kind)
}
OF_ALL = [*aggregates_of(CALLS), Aggregate("joined", JOINED, "whole")]


def run(
    rows: list[Row],
    definition: RowDefinition,
    aggregates: list[Aggregate],
    cuts: list[int] | None = None,
    tuning: Tuning = TUNING,
) -> list[dict[str, Any]]:
    window = window_of_definition(definition)
    kernel = RowKernel({0: window}, ["key"], aggregates, ["arrival"], ["arrival"], tuning=tuning)
    batches = kernel(batches_of_rows(rows, window, cuts or []))
    names = ["arrival", "_window_start_ms", "_window_end_ms", *(one.name for one in aggregates)]
    return [row for batch in batches for row in batch.rename_columns(names).to_pylist()]


def expected(row: Row, rows: list[Row], definition: RowDefinition) -> dict[str, Any]:
    """Rules A6, G1 and G2 for what the oracle says is in the row's window."""
    held = window_of(row, rows, definition)
    by_arrival = isinstance(definition, RowsAround) and definition.by_arrival
    times = [each.arrival if by_arrival else each.time for each in held.rows]
    answer: dict[str, Any] = {
        "arrival": row.arrival,
        "_window_start_ms": held.start,
        "_window_end_ms": held.end,
    }
    for name, (call, column) in CALLS.items():
        answer[name] = aggregate(call, [r.values[column] for r in held.rows], times)
    in_order = aggregate("collect_list", [r.values["whole"] for r in held.rows], times)
    return answer | {"joined": ",".join(map(str, in_order))}


@settings(PROPERTY, max_examples=50)
@given(row_lists(), DEFINITIONS, st.lists(st.integers(0, 20), max_size=3))
def test_every_aggregate_of_every_row_is_the_oracles(
    rows: list[Row], definition: RowDefinition, cuts: list[int]
) -> None:
    """Rules F2, A6, G1 and G2, whatever the order and batches in which rows come."""
    answered = run(rows, definition, OF_ALL, cuts)
    wanted = [expected(row, rows, definition) for row in rows]
    assert texts(answered) == texts(wanted)


def test_copies_of_rows_in_a_time_shard_have_no_result() -> None:
    """Rule F2: one result for each input row; a copy only stands in the windows of other rows."""
    rows = [Row("k", time, time, {"whole": time}) for time in range(6)]
    window = window_of_definition(RowsAround(is_range=True, back=2, ahead=0))
    (batch,) = batches_of_rows(rows, window)
    sharded = batch.append_column(IN_HOME_SHARD, pa.array([False, False, True, True, False, True]))
    total = [Aggregate("total", FUNCTIONS["sum"], "whole")]
    kernel = RowKernel({0: window}, ["key"], total, ["arrival"], ["arrival"])
    answered = [
        (row["arrival"], row["result_0"]) for b in kernel(iter([sharded])) for row in b.to_pylist()
    ]
    assert answered == [(2, 0 + 1 + 2), (3, 1 + 2 + 3), (5, 3 + 4 + 5)]


def test_blocks_and_numbers_go_on_from_shard_to_shard() -> None:
    """Rules F1, F2: a shard knows how many rows come before its first one."""
    rows = [Row("k", time, time, {"whole": time}) for time in range(4, 9)]
    window = window_of_definition(CountBlock(3))
    (batch,) = batches_of_rows(rows, window)
    sharded = batch.append_column(IN_HOME_SHARD, pa.array([False, False, True, True, True]))
    sharded = sharded.append_column(ROWS_BEFORE, pa.array([4] * 5))
    total = [Aggregate("total", FUNCTIONS["sum"], "whole")]
    kernel = RowKernel({0: window}, ["key"], total, ["arrival"], ["arrival"], with_numbers=True)
    answered = [
        (row["arrival"], row["result_0"], row[NUMBER], row[GROUP_ROWS])
        for each in kernel(iter([sharded]))
        for row in each.to_pylist()
    ]
    assert answered == [(6, 6, 7, 9), (7, 6 + 7, 8, 9), (8, 6 + 7 + 8, 9, 9)]


def test_results_in_parts_belong_to_their_rows() -> None:
    """Rule F2: a chunk's lists may be more than memory takes at once."""
    rows = [Row("ab"[index % 2], index, index, {"whole": index}) for index in range(9)]
    definition = RowsAround(is_range=True, back=4, ahead=2)
    lists = [Aggregate("lists", FUNCTIONS["collect_list"], "whole")]
    tuning = Tuning(part_windows=4, part_values=5)
    answered = {row["arrival"]: row["lists"] for row in run(rows, definition, lists, tuning=tuning)}
    assert answered == {
        row.arrival: [each.time for each in window_of(row, rows, definition).rows] for row in rows
    }


def test_an_overflowing_sum_names_the_row() -> None:
    """Rule G2: overflow is an error; it says where."""
    rows = [Row("k", 7, index, {"whole": 2**62}) for index in range(2)]
    message = r"sum\(whole\) overflows bigint in the window of a row of key 'k' at 7 \(ms\)"
    with pytest.raises(ArithmeticError, match=message):
        run(rows, Session(5), [Aggregate("total", FUNCTIONS["sum"], "whole")])


def test_times_out_of_range_are_refused() -> None:
    """Times that could overflow are errors that name them."""
    rows = [Row("k", 2**62, 0, {"whole": 1})]
    with pytest.raises(ValueError, match=f"must be within .* ms of 1970, not {2**62} ms"):
        run(rows, Session(5), [])


def test_a_block_of_arrivals_costs_no_more_where_times_fall() -> None:
    """Cost does not grow with the window: a block of 200,000 rows, latest times first."""
    size = 200_000
    table = pa.table(
        {
            "_computed_day": pa.array(np.zeros(size, np.int32)),
            "key": pa.nulls(size, pa.string()),
            "_event_time_ms": np.arange(size)[::-1].copy(),
            "arrival": np.arange(size),
            "real": np.arange(size) / 7,
            SORT_KEY: np.zeros(size, np.int64),
        }
    )
    functions = (FUNCTIONS["first"], FUNCTIONS["last"], FUNCTIONS["min"], FUNCTIONS["sum"])
    of = [Aggregate(str(function), function, "real") for function in functions]
    kernel = RowKernel(
        {0: window_of_definition(CountBlock(size))}, ["key"], of, ["arrival"], ["arrival"]
    )
    *_, end = [batch.slice(batch.num_rows - 1) for batch in kernel(iter(table.to_batches()))]
    last_value = (size - 1) / 7
    # The last to arrive has the first of all times.
    total = math.fsum(index / 7 for index in range(size))
    assert end.to_pylist()[0] | {"arrival": 0} == {
        "arrival": 0,
        "_window_start_ms": None,
        "_window_end_ms": None,
        "result_0": last_value,  # the first by time
        "result_1": 0.0,  # the last
        "result_2": 0.0,  # the smallest
        "result_3": total,
    }
