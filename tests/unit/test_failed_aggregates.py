"""A window fails exactly where it fails computed alone; others keep their values (rule G3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.kernels import by_arrival_unit, windows_of
from tests.support.oracle.aggregates import AggregateFailedError, aggregate
from tests.support.oracle.windows import Aggregates, Record, keyed_windows
from tests.support.spark_cases import PROPERTY, texts
from tests.support.strategies import Arrivals, arrivals
from tests.support.windowed import WindowedCase, noted, one_window, windowed
from windows_pipeline.aggregates import FUNCTIONS, Function, UserAggregate

LARGE = st.sampled_from((2**63 - 1, -(2**63), 2**62, -(2**62), 1, -1, 0))
NINES = Decimal("9" * 38)
TOO_LARGE = st.sampled_from((NINES, Decimal("-" + "9" * 38), Decimal(1), Decimal(-1)))
VALUES = st.integers(0, 3)
POISON = 3
SUMS: Aggregates = {"sum": ("sum", "whole"), "mean": ("avg", "whole"), "real": ("sum", "real")}


def by_oracle(
    case: WindowedCase, function: Function, kind: str
) -> tuple[list[Any], list[list[str]]]:
    """Each window's own values by the oracle, and the failed aggregates."""
    values: list[Any] = []
    failed: list[list[str]] = []
    for held in case.held():
        try:
            own = [each.value for each in held]
            values.append(aggregate(function.name, own, [each.time_ms for each in held], kind))
            failed.append([])
        except AggregateFailedError:
            values.append(None)
            failed.append(["result"])
    return values, failed


@settings(PROPERTY)
@given(windowed(LARGE))
def test_a_sum_of_integers_is_null_where_it_overflows(case: WindowedCase) -> None:
    """Rules G2, G3: and in no other window, whatever windows are beside it."""
    found = noted(case, FUNCTIONS["sum"], "bigint")
    assert found == by_oracle(case, FUNCTIONS["sum"], "bigint")


@pytest.mark.parametrize("function", [FUNCTIONS["sum"], FUNCTIONS["avg"]])
@settings(PROPERTY)
@given(case=windowed(TOO_LARGE))
def test_a_decimal_is_null_where_its_type_does_not_hold_it(
    function: Function, case: WindowedCase
) -> None:
    """Rules G2, G3."""
    kind = "decimal(38,0)"
    assert noted(case, function, kind) == by_oracle(case, function, kind)


class RaisedError(Exception):
    """Of a user's function."""


def half_changed(accumulator: list[int], value: int) -> list[int]:
    """Adds a value; raises for one, after it changed the accumulator."""
    accumulator.append(value)
    if value == POISON:
        raise RaisedError
    return accumulator


def without(accumulator: list[int], value: int) -> list[int]:
    accumulator.remove(value)
    return accumulator


def never(*_: Any) -> Any:
    raise RaisedError


def of_three_at_most(accumulator: list[int]) -> list[int]:
    if len(accumulator) > 3:
        raise RaisedError
    return sorted(accumulator)


def a_text_of_two(accumulator: list[int]) -> Any:
    return "two" if len(accumulator) == 2 else sorted(accumulator)


def joined(earlier: list[int], later: list[int]) -> list[int]:
    return earlier + later


LISTED = UserAggregate(list, lambda acc, value: [*acc, value], joined, sorted, "array<bigint>")


def poisoned(values: list[int]) -> list[int] | None:
    return None if POISON in values else sorted(values)


def few(values: list[int]) -> list[int] | None:
    return None if len(values) > 3 else sorted(values)


def not_two(values: list[int]) -> list[int] | None:
    return None if len(values) == 2 else sorted(values)


@pytest.mark.parametrize(
    ("user", "alone"),
    [
        (replace(LISTED, update=half_changed), poisoned),
        (replace(LISTED, update=half_changed, inverse=without), poisoned),
        (replace(LISTED, inverse=never), sorted),
        (replace(LISTED, result=of_three_at_most), few),
        (replace(LISTED, result=of_three_at_most, inverse=without), few),
        (replace(LISTED, result=a_text_of_two), not_two),
        (replace(LISTED, create=never), lambda _: None),
        (replace(LISTED, create=never, inverse=without), lambda _: None),
        (LISTED, sorted),
    ],
)
@settings(PROPERTY)
@given(case=windowed(VALUES))
def test_a_window_of_a_users_aggregate_fails_where_it_fails_alone(
    user: UserAggregate, alone: Callable[[list[int]], list[int] | None], case: WindowedCase
) -> None:
    """Rule G3: an accumulator that an error left half-changed spoils no other window."""
    own = [[each.value for each in held if each.value is not None] for held in case.held()]
    wanted = list(map(alone, own))
    failed = [["result"] if values is None else [] for values in wanted]
    assert noted(case, user, "bigint") == (wanted, failed)


def test_merges_may_fail_in_the_shared_tree_and_not_alone() -> None:
    """Rule G3: the window is computed again, from its own values alone."""
    limit = 4

    def merge(earlier: list[int], later: list[int]) -> list[int]:
        if len(earlier) + len(later) > limit:
            raise RaisedError
        return earlier + later

    user = replace(LISTED, merge=merge)
    assert noted(one_window([0, 1, 2, 0]), user, "bigint") == ([[0, 0, 1, 2]], [[]])
    assert noted(one_window([0, 1, 2, 0, 1]), user, "bigint") == ([None], [["result"]])


def with_large_numbers(case: Arrivals) -> Arrivals:
    """The same records, with integers of which few fit a bigint together."""

    def enlarged(record: Record) -> Record:
        whole = record.values["whole"]
        large = whole * 2**59 if isinstance(whole, int) and abs(whole) < 10 else whole
        return replace(record, values={**record.values, "whole": large})

    return case._replace(records=[enlarged(record) for record in case.records])


@settings(PROPERTY)
@given(arrivals().map(with_large_numbers), st.data())
def test_the_same_windows_fail_in_one_run_and_arrival_unit_by_arrival_unit(
    case: Arrivals, data: st.DataObject
) -> None:
    """Rules E4, G3, H1: in runs of any arrival units, each window as its own records have it."""
    wanted = keyed_windows(case.records, case.arrival_units, case.definition, SUMS)
    asked = by_arrival_unit(case)
    assert texts(windows_of(asked, SUMS, with_failed=True)) == texts(wanted)
    split = data.draw(st.integers(0, case.arrival_units))
    parts = [
        windows_of({number: asked[number] for number in part}, SUMS, with_failed=True)
        for part in (range(split), range(split, case.arrival_units))
    ]
    assert texts([row for part in parts for row in part]) == texts(wanted)


def test_memory_that_ran_out_is_no_failure_of_a_window() -> None:
    """It is of the machine, so a second run might not fail."""

    def update(_accumulator: list[int], _value: int) -> list[int]:
        raise MemoryError

    with pytest.raises(MemoryError):
        noted(one_window([1]), replace(LISTED, update=update), "bigint")


def test_several_aggregates_of_a_window_stand_in_their_order() -> None:
    """Rule G3: names are in the order of the aggregates."""
    records = one_window([1]).records._replace(noted=[])
    for name in ("later", "earlier"):
        records.fail(name, records.windows.group, lambda _: RaisedError())
    assert records.failed() == pa.array([["later", "earlier"]])


def test_without_notes_the_first_windows_error_is_raised() -> None:
    """Rule G3: the library's default."""
    with pytest.raises(ArithmeticError, match="overflows bigint in window 0; what does not fit"):
        one_window([2**63 - 1, 1]).aggregated(FUNCTIONS["sum"], "bigint")
