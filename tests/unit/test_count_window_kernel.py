"""Count windows: the kernel, the specification and Flink's own answers (rules F1, F3, G1, G2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, starmap
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.cases import read_cases
from tests.support.oracle.aggregates import aggregate
from tests.support.oracle.count import count_windows, values_of
from tests.support.radix_batches import with_sort_key
from tests.support.spark_cases import PAIRS, PROPERTY, aggregates_of, calls_on
from tests.support.strategies import pair
from windows_pipeline.aggregates import Aggregate, UserAggregate
from windows_pipeline.aggregates.column_type import parse_type
from windows_pipeline.engine.count_kernel import CountKernel
from windows_pipeline.kernels.arrow_types import arrow_type
from windows_pipeline.kernels.order import SORT_KEY
from windows_pipeline.windows import CountWindows

CALLS = {
    call: (call, column)
    for column, kind in {"value": "bigint", "pair": PAIRS["counted"]}.items()
    for call in calls_on(kind)
}
JOINED = UserAggregate(
    create=lambda: "",
    update=lambda text, value: f"{text} {value}",
    merge=lambda a, b: a + b,
    result=lambda text: text,
    result_type="string",
)
SPECS = st.builds(CountWindows, st.integers(1, 7), st.integers(1, 7), st.booleans())
RECORDS = st.lists(
    st.tuples(st.sampled_from((None, "a", "b")), st.none() | st.integers(-3, 3)), max_size=60
)
SCHEMA = pa.schema(
    [
        ("_computed_day", pa.int32()),
        ("key", pa.string()),
        ("offset", pa.int64()),
        ("value", pa.int64()),
        ("pair", arrow_type(parse_type(PAIRS["counted"]))),
    ]
)


def batches(rows: Sequence[tuple[Any, ...]], cuts: Sequence[int]) -> Iterator[pa.RecordBatch]:
    """Rows as Spark sorts them, null keys first, cut anywhere."""
    ordered = sorted(rows, key=lambda row: (row[0], row[1] is not None, row[1] or "", row[2]))
    whole = pa.RecordBatch.from_pylist(
        [dict(zip(SCHEMA.names, row, strict=True)) for row in ordered], SCHEMA
    )
    positions = [0, *sorted(cut % (len(ordered) + 1) for cut in cuts), len(ordered)]
    numbered = with_sort_key(whole, ["_computed_day", "key"])
    return (numbered.slice(a, b - a) for a, b in pairwise(positions))


def run(kernel: CountKernel, records: Iterator[pa.RecordBatch]) -> list[dict[str, Any]]:
    numbered = (
        batch if SORT_KEY in batch.schema.names else with_sort_key(batch, ["_computed_day", "key"])
        for batch in records
    )
    return [row for batch in kernel(numbered) for row in batch.to_pylist()]


@settings(PROPERTY, max_examples=100)
@given(
    cases=st.lists(st.tuples(SPECS, RECORDS), min_size=1, max_size=3),
    cuts=st.lists(st.integers(0, 200), max_size=8),
    chunk_rows=st.integers(1, 30),
)
def test_windows_and_values_are_the_oracles(
    cases: list[tuple[CountWindows, list[tuple[str | None, int | None]]]],
    cuts: list[int],
    chunk_rows: int,
) -> None:
    """Rules F1, A6, G1 and G2: of any keys, sizes and advances, wherever the records are cut."""
    kernel = CountKernel(
        {day: spec for day, (spec, _) in enumerate(cases)},
        ["key"],
        [*aggregates_of(CALLS), Aggregate("joined", JOINED, "value")],
        chunk_rows,
    )
    rows = [
        (day, key, 10 * index, value, pair(index, value))
        for day, (_, records) in enumerate(cases)
        for index, (key, value) in enumerate(records)
    ]
    expected = []
    for day, (spec, records) in enumerate(cases):
        keys, values = [key for key, _ in records], [value for _, value in records]
        columns: dict[str, list[Any]] = {
            "value": values,
            "pair": list(starmap(pair, enumerate(values))),
        }
        for key, held in count_windows(keys, spec.size, spec.advance, short_first=spec.short_first):
            own = values_of(held, values)
            row = {
                "_computed_day": day,
                "key": key,
                "first_offset": 10 * held[0],
                "last_offset": 10 * held[-1],
                "record_count": len(held),
                **{
                    call: aggregate(call, values_of(held, columns[column]), held)
                    for call, column in CALLS.values()
                },
                "joined": "".join(f" {value}" for value in own if value is not None),
            }
            expected.append(row)
    found = run(kernel, batches(rows, cuts))
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


@pytest.mark.parametrize("spec", [CountWindows(1000, 7), CountWindows(50, 50)])
def test_a_hot_key_is_never_in_memory_as_a_whole(spec: CountWindows) -> None:
    """Only the records that a later window can contain stay in memory."""
    held = []

    class Watched(CountKernel):
        def _groups(self, table: pa.Table, skipped: int, done: int) -> Any:
            held.append(table.num_rows)
            return super()._groups(table, skipped, done)

    rows = 20_000
    whole = pa.RecordBatch.from_arrays(
        [pa.array([0] * rows, pa.int32()), pa.nulls(rows, pa.string())]
        + [pa.array(range(rows), pa.int64())] * 2,
        schema=SCHEMA.remove(4),
    )
    parts = (whole.slice(start, 100) for start in range(0, rows, 100))
    kernel = Watched({0: spec}, ["key"], aggregates_of({"sum": ("sum", "value")}), 500)
    found = run(kernel, parts)
    assert max(held) <= 2 * max(500, spec.size) + 100
    assert [(row["first_offset"], row["sum"]) for row in found] == [
        (start, sum(range(start, start + spec.size)))
        for start in range(0, rows - spec.size + 1, spec.advance)
    ]


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ((0, 1, 1), "record 1 of key 'a' comes twice"),
        ((None, 0, 1), "record None of key 'a' has no position in the order of arrival"),
    ],
)
def test_an_unknown_order_of_arrival_is_refused(
    offsets: tuple[int | None, ...], message: str
) -> None:
    """Rule G2: of equal offsets either could be the first, so results could differ."""
    columns = [pa.array([0, 0, 0], pa.int32()), pa.array(["a"] * 3)]
    columns += [pa.array(offsets, pa.int64()), pa.array([1, 2, 3])]
    batch = pa.RecordBatch.from_arrays(columns, schema=SCHEMA.remove(4))
    with pytest.raises(ValueError, match="name a column that") as refused:
        run(CountKernel({0: CountWindows(2, 1)}, ["key"], []), iter([batch]))
    assert message in str(refused.value)


def test_an_overflow_names_the_window() -> None:
    """Rule G2: an error that says where, never a wrapped number."""
    columns = [pa.array([0, 0], pa.int32()), pa.array(["a"] * 2)]
    columns += [pa.array([5, 6]), pa.array([2**62, 2**62])]
    batch = pa.RecordBatch.from_arrays(columns, schema=SCHEMA.remove(4))
    kernel = CountKernel({0: CountWindows(2, 1)}, ["key"], aggregates_of({"s": ("sum", "value")}))
    with pytest.raises(ArithmeticError, match="2 records that ends with record 6 of key 'a'"):
        run(kernel, iter([batch]))


@pytest.mark.parametrize("number", [0, -1, 1.5, True, 2**54])
def test_sizes_are_whole_and_above_zero(number: Any) -> None:
    """Rule F3."""
    for name, arguments in (("size", (number, 1)), ("advance", (1, number))):
        with pytest.raises(ValueError, match=f"^{name}: {number!r} "):
            CountWindows(*arguments)


@pytest.mark.parametrize("answer", ["updates", "datastream_updates"])
def test_the_oracle_gives_flinks_answers(answer: str) -> None:
    """The oracle against what Flink's Table API and DataStream answered."""
    compared = 0
    for case in read_cases("flink", "group_count").values():
        if answer not in case:
            continue
        window = case["window"]
        keys = [record["key"] if case["keyed"] else None for record in case["input"]]
        fired = count_windows(
            keys,
            window["size"],
            window.get("advance", window["size"]),
            short_first=answer == "datastream_updates",
        )
        assert case[answer] == [
            {"after": held[-1], "key": key, "offsets": list(held)} for key, held in fired
        ]
        compared += 1
    assert compared >= 31
