"""Sorted batches cut into chunks of whole groups."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.spark_cases import PROPERTY
from windows_pipeline.kernels.groups import group_starts, whole_groups

SCHEMA = pa.schema([("_computed_day", pa.int32()), ("key", pa.string()), ("row", pa.int64())])
BY = ["_computed_day", "key"]
NAN = float("nan")

Group = tuple[int, str | None]


def batches_of(groups: Sequence[Group], cuts: Sequence[int]) -> list[pa.RecordBatch]:
    """The groups' rows, numbered, cut at these positions."""
    rows = [{"_computed_day": t, "key": key, "row": i} for i, (t, key) in enumerate(groups)]
    whole = pa.RecordBatch.from_pylist(rows, SCHEMA)
    positions = [0, *sorted(cut % (len(rows) + 1) for cut in cuts), len(rows)]
    return [whole.slice(start, end - start) for start, end in pairwise(positions)]


GROUPS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from((None, "", "a", "b"))), max_size=40
).map(lambda groups: sorted(groups, key=lambda g: (g[0], g[1] is not None, g[1] or "")))
CUTS = st.lists(st.integers(0, 40), max_size=9)


@PROPERTY
@given(GROUPS, CUTS, st.integers(1, 12))
def test_each_group_is_whole_and_each_row_comes_once(
    groups: list[Group], cuts: list[int], chunk_rows: int
) -> None:
    """Nulls are equal to each other and to nothing else (rule A6)."""
    chunks = list(whole_groups(iter(batches_of(groups, cuts)), BY, chunk_rows))
    found = []
    for table, starts in chunks:
        assert starts[0] == 0
        assert starts[-1] == table.num_rows
        rows = [(row["_computed_day"], row["key"], row["row"]) for row in table.to_pylist()]
        found += [rows[start:end] for start, end in pairwise(starts.tolist())]
    numbered = [(day, key, i) for i, (day, key) in enumerate(groups)]
    assert found == [list(rows) for _, rows in groupby(numbered, key=lambda row: row[:2])]


def test_chunks_are_bounded_where_the_groups_are_small() -> None:
    """A chunk has fewer rows than `chunk_rows` and one batch together."""
    groups: list[Group] = [(0, f"{i // 3:04d}") for i in range(3000)]
    chunks = list(whole_groups(iter(batches_of(groups, range(0, 3000, 7))), BY, 100))
    assert max(table.num_rows for table, _ in chunks) < 100 + 7
    assert len(chunks) > 3000 // 107


def test_a_group_larger_than_a_chunk_is_scanned_few_times() -> None:
    """The rows to wait for double, so a hot key costs at most twice its rows."""
    groups: list[Group] = [*[(0, "a")] * 5, *[(0, "hot")] * 5000, *[(1, "hot")] * 5]
    chunks = list(whole_groups(iter(batches_of(groups, range(0, 5010, 10))), BY, 20))
    sizes = [size for _, starts in chunks for size in (starts[1:] - starts[:-1]).tolist()]
    assert sizes == [5, 5000, 5]


POINT = pa.struct([("x", pa.int32()), ("y", pa.float64())])


@pytest.mark.parametrize(
    ("keys", "kind", "starts"),
    [
        ([], pa.string(), [0, 0]),
        ([None], pa.string(), [0, 1]),
        ([None, None, "", "a"], pa.string(), [0, 2, 3, 4]),
        (["a", "a", None, None], pa.string(), [0, 2, 4]),
        ([None, -1.0, -0.0, 0.0, NAN, NAN], pa.float64(), [0, 1, 2, 4, 6]),
        ([None, 1, 1, 2], pa.decimal128(10, 2), [0, 1, 3, 4]),
        (
            [
                None,
                {"x": None, "y": None},
                {"x": None, "y": None},
                {"x": None, "y": 1.0},
                {"x": 1, "y": None},
                {"x": 1, "y": NAN},
                {"x": 1, "y": NAN},
                {"x": 2, "y": NAN},
            ],
            POINT,
            [0, 1, 3, 4, 5, 7, 8],
        ),
        ([None, {"p": None}, {"p": {"x": 1, "y": None}}], pa.struct([("p", POINT)]), [0, 1, 2, 3]),
    ],
)
def test_group_starts(keys: list[object], kind: pa.DataType, starts: list[int]) -> None:
    """As in SQL: nulls are equal to each other; as in Spark: so is NaN, and 0.0 to -0.0."""
    table = pa.table({"key": pa.array(keys, kind)})
    assert group_starts(table, ["key"]).tolist() == starts
    # Rows before and after belong to another batch.
    part = pa.table({"key": pa.array([*keys[-1:], *keys, *keys[:1]], kind)}).slice(1, len(keys))
    assert group_starts(part, ["key"]).tolist() == starts


def test_any_of_several_columns_makes_a_group() -> None:
    """A null in one of several key columns is a value (rule A6)."""
    table = pa.table({"a": [None, None, "x", "x", "x"], "b": pa.array([None, 1, 1, 1, None])})
    assert group_starts(table, ["a", "b"]).tolist() == [0, 1, 2, 4, 5]
