"""Sorted batches cut into chunks of whole groups."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_runs import PROPERTY
from windows_pipeline.engine.groups import group_starts, whole_groups

SCHEMA = pa.schema([("target", pa.int32()), ("key", pa.string()), ("row", pa.int64())])
BY = ["target", "key"]

Group = tuple[int, str | None]


def batches_of(groups: Sequence[Group], cuts: Sequence[int]) -> list[pa.RecordBatch]:
    """The groups' rows, numbered, cut at the given places."""
    rows = [{"target": t, "key": key, "row": i} for i, (t, key) in enumerate(groups)]
    whole = pa.RecordBatch.from_pylist(rows, SCHEMA)
    places = [0, *sorted(cut % (len(rows) + 1) for cut in cuts), len(rows)]
    return [whole.slice(start, end - start) for start, end in pairwise(places)]


GROUPS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from((None, "", "a", "b"))), max_size=40
).map(lambda groups: sorted(groups, key=lambda g: (g[0], g[1] is not None, g[1] or "")))
CUTS = st.lists(st.integers(0, 40), max_size=9)


@PROPERTY
@given(GROUPS, CUTS, st.integers(1, 12))
def test_each_group_is_whole_and_each_row_is_given_once(
    groups: list[Group], cuts: list[int], chunk_rows: int
) -> None:
    """Nulls are equal to each other and to nothing else (rule A6)."""
    chunks = list(whole_groups(iter(batches_of(groups, cuts)), BY, chunk_rows))
    found = []
    for table, starts in chunks:
        assert starts[0] == 0
        assert starts[-1] == table.num_rows
        rows = [(row["target"], row["key"], row["row"]) for row in table.to_pylist()]
        found += [rows[start:end] for start, end in pairwise(starts.tolist())]
    numbered = [(target, key, i) for i, (target, key) in enumerate(groups)]
    assert found == [list(rows) for _, rows in groupby(numbered, key=lambda row: row[:2])]


def test_chunks_are_bounded_where_the_groups_are_small() -> None:
    """A chunk holds less than the rows wanted and one batch more."""
    groups: list[Group] = [(0, f"{i // 3:04d}") for i in range(3000)]
    chunks = list(whole_groups(iter(batches_of(groups, range(0, 3000, 7))), BY, 100))
    assert max(table.num_rows for table, _ in chunks) < 100 + 7
    assert len(chunks) > 3000 // 107


def test_a_group_larger_than_a_chunk_is_looked_at_a_few_times_only() -> None:
    """The rows wanted double, so a hot key costs no more than twice its rows."""
    groups: list[Group] = [*[(0, "a")] * 5, *[(0, "hot")] * 5000, *[(1, "hot")] * 5]
    chunks = list(whole_groups(iter(batches_of(groups, range(0, 5010, 10))), BY, 20))
    sizes = [size for _, starts in chunks for size in (starts[1:] - starts[:-1]).tolist()]
    assert sizes == [5, 5000, 5]


@pytest.mark.parametrize(
    ("keys", "starts"),
    [
        ([], [0, 0]),
        ([None], [0, 1]),
        ([None, None, "", "a"], [0, 2, 3, 4]),
        (["a", "a", None, None], [0, 2, 4]),
    ],
)
def test_group_starts(keys: list[str | None], starts: list[int]) -> None:
    table = pa.table({"key": pa.array(keys, pa.string())})
    assert group_starts(table, ["key"]).tolist() == starts
