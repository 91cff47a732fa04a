"""A user's own aggregates in many windows, each against its own values (rule G1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.spark_cases import PROPERTY
from tests.support.windowed import Timed, WindowedCase, one_window, windowed
from windows_pipeline.aggregates import FUNCTIONS, UserAggregate
from windows_pipeline.kernels.windows.arrays import WindowArrays

VALUES = st.integers(0, 3)


def appended(accumulator: list[Any], value: Any) -> list[Any]:
    accumulator.append(value)
    return accumulator


def extended(earlier: list[Any], later: list[Any]) -> list[Any]:
    earlier.extend(later)
    return earlier


def joined_to_either(earlier: list[Any], later: list[Any]) -> list[Any]:
    """Returns one of its arguments wherever it can."""
    return extended(earlier, later) if earlier and later else earlier or later


# A list of every record in order, which any aggregate could see; it changes in place.
LISTED = UserAggregate(list, appended, extended, lambda acc: acc, "array<bigint>")
COUNTED = UserAggregate(
    create=Counter,
    update=lambda acc, value: acc + Counter([value]),
    merge=lambda a, b: a + b,
    result=lambda acc: sorted(acc.elements()),
    result_type="array<bigint>",
    inverse=lambda acc, value: acc - Counter([value]),
)


def order(timed: Timed) -> tuple[int, int]:
    """By event time, then by value, null first."""
    return timed.time_ms, -1 if timed.value is None else timed.value


def in_order(case: WindowedCase, *, nulls: bool = False) -> list[list[Any]]:
    return [
        [each.value for each in sorted(held, key=order) if nulls or each.value is not None]
        for held in case.held()
    ]


@pytest.mark.parametrize(
    "merge", [extended, joined_to_either, lambda a, b: a + b, lambda a, b: b if not a else a + b]
)
@settings(PROPERTY, max_examples=100)
@given(case=windowed(VALUES))
def test_values_are_merged_by_event_time_and_value(
    merge: Callable[[Any, Any], Any], case: WindowedCase
) -> None:
    """Rules A6, B5 and G1: whatever a merge does to its first argument."""
    user = replace(LISTED, merge=merge)
    assert case.aggregated(user, "bigint").to_pylist() == in_order(case)
    user = replace(LISTED, merge=merge, skip_nulls=False)
    assert case.aggregated(user, "bigint").to_pylist() == in_order(case, nulls=True)


@settings(PROPERTY, max_examples=100)
@given(windowed(VALUES))
def test_with_an_inverse_each_record_enters_and_leaves_once(case: WindowedCase) -> None:
    """Rules A6 and G1."""
    calls: Counter[str] = Counter()

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            calls[name] += 1
            return function(*arguments)

        return call

    assert COUNTED.inverse is not None
    user = replace(
        COUNTED,
        update=counted("update", COUNTED.update),
        inverse=counted("inverse", COUNTED.inverse),
        merge=counted("merge", COUNTED.merge),
    )
    found = case.aggregated(user, "bigint").to_pylist()
    assert found == [sorted(values) for values in in_order(case)]
    assert calls["inverse"] <= calls["update"] <= len(case.values)
    assert calls["merge"] == 0


@settings(PROPERTY, max_examples=100)
@given(windowed(VALUES))
def test_a_result_does_not_change_with_its_accumulator(case: WindowedCase) -> None:
    """A result that is part of an accumulator which later changes in place is a copy."""

    def taken_out(accumulator: list[Any], value: Any) -> list[Any]:
        accumulator.remove(value)
        return accumulator

    user = replace(LISTED, inverse=taken_out)
    found = case.aggregated(user, "bigint").to_pylist()
    wanted = case.aggregated(FUNCTIONS["collect_list"], "bigint").to_pylist()
    assert list(map(sorted, found)) == list(map(sorted, wanted))


def test_merges_grow_with_the_logarithm_of_the_window() -> None:
    """Not with its length: a thousand records, each window with hundreds of them."""
    merges = 0

    def merge(earlier: int, later: int) -> int:
        nonlocal merges
        merges += 1
        return earlier + later

    user = UserAggregate(int, lambda acc, value: acc + value, merge, int, "bigint")
    size, width = 1000, 500
    case = one_window([1] * size)
    numbers = np.arange(size)
    windows = WindowArrays(
        group=np.zeros(size, np.int64),
        end_ms=numbers,
        closed=np.ones(size, np.bool_),
        entered=numbers + 1,
        left=(numbers + 1 - width).clip(0),
        enter_order=numbers,
        dropped=np.zeros(size, np.bool_),
    )
    sliding = case._replace(records=case.records._replace(windows=windows), inside=[[]] * size)
    wanted = [min(number + 1, width) for number in range(size)]
    assert sliding.aggregated(user, "bigint").to_pylist() == wanted
    assert merges < 25 * size


def test_values_are_python_objects() -> None:
    """Here a struct, as a dict: a mean weighted by another column."""
    weighted = UserAggregate(
        create=lambda: (0.0, 0.0),
        update=lambda acc, row: (acc[0] + row["value"] * row["weight"], acc[1] + row["weight"]),
        merge=lambda a, b: (a[0] + b[0], a[1] + b[1]),
        result=lambda acc: acc[0] / acc[1] if acc[1] else None,
        result_type="double",
    )
    rows = [{"value": 1.0, "weight": 3}, {"value": 5.0, "weight": 1}, None]
    kind = "struct<value:double,weight:bigint>"
    assert one_window(rows).aggregated(weighted, kind).to_pylist() == [2.0]
    assert one_window([None]).aggregated(weighted, kind).to_pylist() == [None]


@pytest.mark.parametrize("function", ["create", "update", "merge", "result"])
def test_an_exception_names_aggregate_and_window(function: str) -> None:
    """Whichever function raised; the user's own exception is the cause."""

    def failing(*_: Any) -> Any:
        raise KeyError("of the user")

    functions: dict[str, Any] = {
        "create": COUNTED.create,
        "update": COUNTED.update,
        "merge": COUNTED.merge,
        "result": COUNTED.result,
    }
    user = UserAggregate(**{**functions, function: failing}, result_type="array<bigint>")
    case = one_window([1, 2])
    windows = case.records.windows
    later = windows._replace(left=windows.left + 1)
    case = case._replace(records=case.records._replace(windows=later))
    message = r"result: user_aggregate\(value\) failed in window 0: KeyError\('of the user'\) \("
    with pytest.raises(RuntimeError, match=message) as raised:
        case.aggregated(user, "bigint")
    assert isinstance(raised.value.__cause__, KeyError)
    assert f"{__file__}, line " in str(raised.value)


def test_a_result_of_another_type_names_aggregate_and_window() -> None:
    """The result's type was declared."""
    user = replace(LISTED, result_type="bigint")
    message = r"user_aggregate\(value\) returned \[1\], which is no bigint, in window 0"
    with pytest.raises(TypeError, match=message):
        one_window([1]).aggregated(user, "bigint")
