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


def order(value: Any) -> tuple[bool, Any]:
    """Null is before all values."""
    return (value is not None, 0 if value is None else value)


@given(st.lists(PART_KEYS))
def test_composite_keys_are_ordered_part_by_part(keys: list[tuple[Any, Any]]) -> None:
    listed = [dict(zip(("carrier", "flight"), key, strict=True)) for key in keys]
    rows = pa.table({KEY: pa.array(listed, PARTS)})
    ordered = sorted(keys, key=lambda key: tuple(map(order, key)))
    in_python = [dict(zip(("carrier", "flight"), key, strict=True)) for key in ordered]
    assert in_order(rows, [KEY])[KEY].to_pylist() == in_python
    assert in_order(rows, [KEY], backward=True)[KEY].to_pylist() == in_python[::-1]


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
