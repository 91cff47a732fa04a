"""Aggregates by the order of values or times, of every type, each against its window's own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.spark_cases import PROPERTY
from tests.support.windowed import Timed, WindowedCase, one_window, swept, texts, windowed
from windows_pipeline.aggregates import FUNCTIONS, Aggregate
from windows_pipeline.aggregates.function import Takes
from windows_pipeline.engine.preaggregation.partial_results import PARTIAL_RESULTS
from windows_pipeline.kernels.aggregates.dispatch import (
    KERNELS,
    aggregate_windows,
    event_time_bounds,
    parts_of,
)
from windows_pipeline.kernels.values import order_codes
from windows_pipeline.tuning import Tuning

DAYS = st.sampled_from((date(1, 1, 1), date(1969, 12, 31), date(2026, 1, 1)))
INSTANTS = st.sampled_from(
    (datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(2026, 1, 1), datetime(9999, 1, 1))
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "tinyint": st.integers(-2, 2) | st.sampled_from((-(2**7), 2**7 - 1)),
    "bigint": st.integers(-2, 2) | st.sampled_from((-(2**63), 2**63 - 1, 2**53, 2**53 + 1)),
    "float": st.sampled_from((0.0, -0.0, 1.5, -2.0, math.inf, -math.inf, math.nan)),
    "double": st.sampled_from((0.0, -0.0, 1e16, 1.0, 5e-324, -math.inf, math.nan, -math.nan)),
    "decimal(5,2)": st.sampled_from((Decimal("-999.99"), Decimal("0.01"), Decimal("7.00"))),
    "decimal(38,3)": st.sampled_from(
        (Decimal("9" * 35 + ".999"), Decimal("-" + "9" * 35), Decimal("0.001"), Decimal(-1))
    ),
    "boolean": st.booleans(),
    "string": st.sampled_from(("", "a", "ab", "Z", "ä", "\U0001f600", "\uffee")),
    "binary": st.sampled_from((b"", b"\x00", b"\x7f", b"\x80\x00", b"\x80", b"\xff")),
    "date": DAYS,
    "timestamp": INSTANTS.map(lambda instant: instant.replace(tzinfo=UTC)),
    "timestamp_ntz": INSTANTS,
    "struct<x:double,y:string>": st.builds(
        lambda x, y: {"x": x, "y": y},
        x=st.sampled_from((0.0, -0.0, math.nan, None)),
        y=st.sampled_from(("a", "b", None)),
    ),
}


def order(value: Any) -> Any:
    """Spark's order: null before all, NaN the largest number, -0.0 equal to 0.0."""
    if value is None:
        return (0,)
    if isinstance(value, dict):
        return (1, *map(order, value.values()))
    if isinstance(value, str):
        return (1, value.encode())
    return (2,) if isinstance(value, float) and math.isnan(value) else (1, value)


def plain(value: Any) -> Any:
    """One zero, one NaN."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value + 0.0
    return value


def by_order(function: str, held: Sequence[Timed]) -> Any:
    """Rules A6 and G1 for a window's own values."""
    present = [each for each in held if each.value is not None]
    by_value = sorted((plain(each.value) for each in present), key=order)
    by_time = [plain(v) for _, v in sorted(present, key=lambda each: (each[0], order(each[1])))]
    if function == "count":
        return len(present)
    if function == "count_distinct":
        return len({order(value) for value in by_value})
    if function == "collect_list":
        return by_time
    ordered = by_value if function in ("min", "max") else by_time
    return ordered[0 if function in ("min", "first") else -1] if present else None


@pytest.mark.parametrize("kind", VALUES)
@settings(PROPERTY, max_examples=60)
@given(data=st.data())
def test_aggregates_by_order_are_those_of_the_windows_own_values(
    kind: str, data: st.DataObject
) -> None:
    """Rules A6, B5 and G1: of any type, with nulls, equal times and partly late records."""
    case = data.draw(windowed(VALUES[kind])).as_type(kind)
    for name, function in FUNCTIONS.items():
        if function.takes in (Takes.ANY, Takes.ORDERED):
            found = case.aggregated(function, kind).to_pylist()
            assert texts(found) == texts([by_order(name, held) for held in case.held()])


def test_each_layer_has_each_function() -> None:
    assert KERNELS.keys() == FUNCTIONS.keys()
    assert PARTIAL_RESULTS.keys() <= FUNCTIONS.keys()


def interpolated(values: Sequence[Any], percentage: float) -> float | None:
    """As Spark's `percentile`: the neighbours of (count - 1) * percentage, weighted."""
    ascending = sorted(values, key=order)
    if not ascending:
        return None
    position = (len(ascending) - 1) * percentage
    below, above = math.floor(position), math.ceil(position)
    lower, upper = float(plain(ascending[below])), float(plain(ascending[above]))
    if below == above or ascending[below] == ascending[above]:
        return lower
    return (above - position) * lower + (position - below) * upper


@pytest.mark.parametrize("kind", ["tinyint", "bigint", "float", "double", "decimal(38,3)"])
@settings(PROPERTY, max_examples=100)
@given(data=st.data())
def test_percentiles_are_exact(kind: str, data: st.DataObject) -> None:
    """Rules G1 and G2."""
    case = data.draw(windowed(VALUES[kind]))
    percentage = data.draw(st.sampled_from((0, 0.1, 0.5, 0.95, 1)) | st.floats(0, 1))
    present = [[each.value for each in held if each.value is not None] for held in case.held()]
    found = case.aggregated(FUNCTIONS["percentile"], kind, percentage).to_pylist()
    assert texts(found) == texts([interpolated(values, percentage) for values in present])
    medians = case.aggregated(FUNCTIONS["median"], kind).to_pylist()
    assert texts(medians) == texts([interpolated(values, 0.5) for values in present])


@PROPERTY
@given(windowed(st.integers(0, 9)))
def test_first_and_last_event_time(case: WindowedCase) -> None:
    """Of all records, also those without a value; null in an empty window."""
    first, last = event_time_bounds(case.records)
    times = [[each.time_ms for each in held] for held in case.held()]
    assert first.to_pylist() == [min(each, default=None) for each in times]
    assert last.to_pylist() == [max(each, default=None) for each in times]


@PROPERTY
@given(swept(st.integers(0, 3)), st.randoms(use_true_random=False))
def test_records_of_one_time_may_stand_in_any_order(case: WindowedCase, random: Any) -> None:
    """Rule G2: no result depends on the order of arrival."""
    times, starts = case.records.time_ms.tolist(), case.records.starts.tolist()
    group = [sum(start <= r for start in starts[1:]) for r in range(len(times))]
    alike: dict[Any, list[int]] = {}
    for r, time in enumerate(times):
        inside = tuple(window for window, held in enumerate(case.inside) if r in held)
        alike.setdefault((group[r], time, inside), []).append(r)
    shuffled = list(case.values)
    for records in alike.values():
        for r, other in zip(records, random.sample(records, len(records)), strict=True):
            shuffled[r] = case.values[other]
    for function in (FUNCTIONS["first"], FUNCTIONS["last"], FUNCTIONS["collect_list"]):
        wanted = case.aggregated(function, "bigint")
        assert case._replace(values=shuffled).aggregated(function, "bigint") == wanted


def test_lists_come_in_parts_that_fit_in_memory() -> None:
    """Parts of the windows, each named as in the whole, give what the whole gives."""
    tuning = Tuning(part_values=3)
    lists = Aggregate("list", FUNCTIONS["collect_list"], "value")
    total = Aggregate("total", FUNCTIONS["sum"], "value")

    @settings(PROPERTY, max_examples=100)
    @given(windowed(st.integers(0, 9)))
    def check(case: WindowedCase) -> None:
        column = pa.array(case.values, pa.int64())
        whole = [aggregate_windows(each, column, case.records) for each in (lists, total)]
        parts = list(parts_of(case.records, [total, lists], tuning))
        joined = [
            pa.concat_arrays([aggregate_windows(each, column, part) for part in parts])
            for each in (lists, total)
        ]
        assert joined == whole
        names = [part.describe(w) for part in parts for w in range(len(part.windows.group))]
        assert names == [case.records.describe(w) for w in range(len(case.inside))]
        sizes = [np.sum(part.windows.entered - part.windows.left) for part in parts]
        lengths = [len(part.windows.group) for part in parts]
        assert all(size < 3 + 10 or n == 1 for size, n in zip(sizes, lengths, strict=True))
        assert len(list(parts_of(case.records, [total], tuning))) == 1

    check()


def test_a_column_may_come_in_pieces_and_begin_within_a_buffer() -> None:
    """As slices of Arrow's batches do."""
    case = one_window([1, 2, 3])
    decimals = pa.array([9, 1, 2, 3], pa.decimal128(5, 2)).slice(1)
    for column in (decimals, pa.chunked_array([decimals.slice(0, 1), decimals.slice(1)])):
        for function, result in {
            FUNCTIONS["sum"]: Decimal("6.00"),
            FUNCTIONS["max"]: Decimal("3.00"),
            FUNCTIONS["avg"]: Decimal("2.000000"),
            FUNCTIONS["variance"]: 1.0,
            FUNCTIONS["median"]: 2.0,
        }.items():
            aggregate = Aggregate("result", function, "value")
            assert aggregate_windows(aggregate, column, case.records).to_pylist() == [result]


def test_order_codes_sort_doubles_as_spark_does() -> None:
    """NaN of either sign above infinity, -0.0 equal to 0.0."""
    ascending = [-math.inf, -1e308, -1.0, -5e-324, 0.0, 5e-324, 1.0, 1e308, math.inf, math.nan]
    codes = order_codes(np.array(ascending)).tolist()
    assert codes == sorted(set(codes))
    equal = order_codes(np.array([0.0, -0.0, math.nan, math.copysign(math.nan, -1)])).tolist()
    assert equal == [codes[4], codes[4], codes[-1], codes[-1]]
    assert order_codes(np.array([-(2**63), 2**63 - 1])).tolist() == [-(2**63), 2**63 - 1]
