"""Keys of stored windows: their values, their texts, and their order, also of several parts."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windows_pipeline.query.tables.keys import KEY, KeyColumn, in_order

PARTS = pa.struct([("carrier", pa.string()), ("flight", pa.int64())])
PART_KEYS = st.tuples(
    st.sampled_from((None, "", "A", "a", "é", "\U0001f600")), st.sampled_from((None, -1, 0, 7))
)
PART_NAMES = ("carrier", "flight")
FLOATS = st.sampled_from((None, float("-inf"), -1.5, 0.0, 2.0, float("inf")))


def order(value: Any) -> tuple[bool, Any]:
    """Null is before all values."""
    return (value is not None, 0 if value is None else value)


def kept(kind: pa.DataType, keys: list[Any], first: Any, last: Any) -> list[Any]:
    column = KeyColumn(kind)
    wanted = column.between(*(None if key is None else column.value(*key) for key in (first, last)))
    listed = pa.chunked_array([pa.array(keys, kind)])
    mask = wanted.keeps(listed)
    found: list[Any] = (listed if mask is None else listed.filter(mask)).to_pylist()
    return found


@given(st.lists(PART_KEYS), st.none() | PART_KEYS, st.none() | PART_KEYS)
def test_a_range_of_composite_keys_goes_part_by_part(
    keys: list[tuple[Any, Any]], first: tuple[Any, Any] | None, last: tuple[Any, Any] | None
) -> None:
    def of(key: tuple[Any, Any]) -> tuple[Any, ...]:
        return tuple(map(order, key))

    listed = [dict(zip(("carrier", "flight"), key, strict=True)) for key in keys]
    bounds = [None if key is None else (key, "key") for key in (first, last)]
    assert kept(PARTS, listed, *bounds) == [
        named
        for key, named in zip(keys, listed, strict=True)
        if (first is None or of(key) >= of(first)) and (last is None or of(key) <= of(last))
    ]
    rows = pa.table({KEY: pa.array(listed, PARTS)})
    in_python = [dict(zip(("carrier", "flight"), key, strict=True)) for key in sorted(keys, key=of)]
    assert in_order(rows, [KEY])[KEY].to_pylist() == in_python
    assert in_order(rows, [KEY], backward=True)[KEY].to_pylist() == in_python[::-1]


@given(st.lists(FLOATS), FLOATS, FLOATS)
def test_a_range_of_numbers_has_both_bounds(
    keys: list[float | None], first: float | None, last: float | None
) -> None:
    assert kept(pa.float64(), keys, (first, "key"), (last, "key")) == [
        key for key in keys if order(first) <= order(key) <= order(last)
    ]


def test_nan_is_a_key_like_others() -> None:
    """Rule G2: NaN is equal to itself."""
    nan = float("nan")
    assert len(kept(pa.float64(), [nan, 1.0, None], (nan, "key"), (nan, "key"))) == 1


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (pa.string(), "JFK", "JFK"),
        (pa.int64(), "-7", -7),
        (pa.float64(), "1.5", 1.5),
        (pa.decimal128(5, 2), "1.50", Decimal("1.50")),
        (pa.date32(), "2013-03-08", date(2013, 3, 8)),
        (pa.bool_(), "true", True),
        (pa.timestamp("us", "UTC"), "2013-03-08 21:15", datetime(2013, 3, 8, 21, 15, tzinfo=UTC)),
        (
            pa.timestamp("us", "UTC"),
            "2013-03-08T21:15:00Z",
            datetime(2013, 3, 8, 21, 15, tzinfo=UTC),
        ),
    ],
)
def test_a_text_stands_for_a_value_of_the_type(kind: pa.DataType, text: str, value: Any) -> None:
    column = KeyColumn(kind)
    parsed = column.parsed(text, "KEY")
    assert parsed == value
    assert [part.as_py() for part in column.value(parsed, "key")] == [value]


@pytest.mark.parametrize(
    ("kind", "call", "said"),
    [
        (
            pa.int64(),
            lambda c: c.parsed("x", "KEY"),
            "KEY: must be a key of type bigint, not 'x'",
        ),
        (pa.int64(), lambda c: c.value(True, "key"), "key: must be a key of type bigint, not True"),
        (pa.string(), lambda c: c.value(5, "key"), "key: must be a key of type string, not 5"),
        (
            pa.timestamp("us", "UTC"),
            lambda c: c.value(datetime(2013, 3, 8), "key"),
            "which has no zone; write datetime(..., tzinfo=UTC)",
        ),
        (PARTS, lambda c: c.value("AA", "key"), "a tuple of 2 parts (carrier, flight), or a dict"),
        (PARTS, lambda c: c.value({"carrier": "AA"}, "key"), "must have the parts carrier, flight"),
        (
            PARTS,
            lambda c: c.value(("AA", "x"), "key"),
            "key, part flight: must be a key of type bi",
        ),
        (
            PARTS,
            lambda c: c.parsed("AA", "KEY"),
            "must have 2 parts (carrier, flight) with commas",
        ),
        (
            pa.string(),
            lambda c: c.parsed("x", "KEY", has_key=False),
            "KEY: must be empty, as the windows have one key, of all records, not 'x'",
        ),
    ],
)
def test_what_is_no_key_is_refused(kind: pa.DataType, call: Any, said: str) -> None:
    with pytest.raises(ValueError, match="must") as refused:
        call(KeyColumn(kind))
    assert said in str(refused.value)


def test_a_composite_key_is_a_tuple_or_a_dict() -> None:
    column = KeyColumn(PARTS)
    of_tuple = column.value(("AA", 7), "key")
    assert of_tuple == column.value({"flight": 7, "carrier": "AA"}, "key")
    assert column.parsed("AA, 7", "KEY") == ("AA", 7)
    assert column.parsed(",7", "KEY") == (None, 7)
    assert column.parsed(None, "KEY") == (None, None)
    assert KeyColumn(pa.string()).parsed(None, "KEY") is None
    assert KeyColumn(pa.string()).parsed("", "KEY", has_key=False) is None


@given(PART_KEYS, PART_KEYS, st.none() | PART_KEYS, st.none() | PART_KEYS, st.lists(PART_KEYS))
def test_a_file_is_left_out_only_if_no_key_of_it_is_within(
    one: tuple[Any, Any],
    other: tuple[Any, Any],
    first: tuple[Any, Any] | None,
    last: tuple[Any, Any] | None,
    more: list[tuple[Any, Any]],
) -> None:
    """By the smallest and largest value of each part."""
    keys = [key for key in (one, other, *more) if None not in key]
    smallest, largest = (
        {f"key.{name}": found([key[at] for key in keys]) for at, name in enumerate(PART_NAMES)}
        for found in ((min, max) if keys else (lambda _: None, lambda _: None))
    )
    column = KeyColumn(PARTS)
    bounds = [None if key is None else column.value(key, "key") for key in (first, last)]
    wanted = column.between(*bounds)
    listed = pa.array([dict(zip(PART_NAMES, key, strict=True)) for key in keys], PARTS)
    mask = wanted.keeps(listed)
    if mask is None or any(mask.to_pylist()):
        assert wanted.may_be_within(smallest, largest)
