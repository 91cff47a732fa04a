"""Rows sorted by a single number are put in the order of groups and times."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.support.radix_batches import cut_up, sorted_as_by_spark
from tests.support.spark_cases import PROPERTY
from windows_pipeline.engine.radix_sort import groups_in_order, in_radix_order
from windows_pipeline.kernels.order import SORT_KEY
from windows_pipeline.windows.arguments import MAX_INSTANT_MS

NAN = float("nan")
STRETCH_MS = 2**40
"""The low bits sort times on both sides of a multiple of this number in a wrong order."""
TIMES_MS = st.one_of(
    st.integers(-3, 3),
    st.integers(-2, 2).map(lambda near: STRETCH_MS + near),
    st.integers(-MAX_INSTANT_MS, MAX_INSTANT_MS),
)
ROWS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from((None, "", "a", "b")), TIMES_MS), max_size=40
)


def group_rows(
    batches: Iterator[pa.RecordBatch], group: list[str], chunk_rows: int
) -> list[list[dict[str, Any]]]:
    found = []
    for table, starts in groups_in_order(batches, group, chunk_rows):
        assert SORT_KEY not in table.column_names
        assert (starts[0], starts[-1]) == (0, table.num_rows)
        rows = table.to_pylist()
        found += [rows[start:end] for start, end in pairwise(starts.tolist())]
    return found


@PROPERTY
@given(ROWS, st.lists(st.integers(0, 40), max_size=9), st.integers(1, 12))
def test_each_group_is_whole_and_in_order_of_time(
    rows: list[tuple[int, str | None, int]], cuts: list[int], chunk_rows: int
) -> None:
    """Rules A6, G2: whatever hashes they share, however far apart their times are."""
    schema = pa.schema(
        [("_computed_day", pa.int32()), ("key", pa.string()), ("_event_time_ms", "int64")]
    )
    records = pa.RecordBatch.from_pylist(
        [dict(zip(schema.names, row, strict=True)) for row in rows], schema
    )
    found = group_rows(
        cut_up(records, ["_computed_day", "key"], cuts), ["_computed_day", "key"], chunk_rows
    )
    groups = [{(row["_computed_day"], row["key"]) for row in group} for group in found]
    assert all(len(each) == 1 for each in groups)
    assert len(set().union(*groups)) == len(groups)
    times_ms = [[row["_event_time_ms"] for row in group] for group in found]
    assert times_ms == [sorted(of_group) for of_group in times_ms]
    every = [tuple(row.values()) for group in found for row in group]
    assert sorted(every, key=repr) == sorted(rows, key=repr)


POINT = pa.struct([("x", pa.float64()), ("y", pa.string())])


@pytest.mark.parametrize(
    ("keys", "kind", "groups"),
    [
        ([1, None, 1, 2, None], pa.int16(), 3),
        ([True, None, False, True], pa.bool_(), 3),
        ([0.0, NAN, -0.0, None, NAN], pa.float64(), 3),
        ([b"", None, b"a", b""], pa.binary(), 3),
        ([Decimal("1.20"), None, Decimal("1.20")], pa.decimal128(20, 2), 2),
        ([date(9999, 12, 31), None, date(9999, 12, 31)], pa.date32(), 2),
        ([datetime(1, 1, 1, tzinfo=UTC), None] * 2, pa.timestamp("us", "UTC"), 2),
        ([timedelta(1), None, timedelta(1)], pa.duration("us"), 2),
        (
            [{"x": -0.0, "y": None}, None, {"x": None, "y": None}, {"x": 0.0, "y": None}, None],
            POINT,
            3,
        ),
        ([{"p": {"x": NAN, "y": "a"}}, {"p": None}, {"p": {"x": NAN, "y": "a"}}],
         pa.struct([("p", POINT)]), 2),
    ],
)  # fmt: skip
def test_keys_of_any_type_that_share_a_hash_are_separate_groups(
    keys: list[object], kind: pa.DataType, groups: int
) -> None:
    """Rule A6: nulls are equal to each other; as in Spark so is NaN, and 0.0 to -0.0."""
    times_ms = np.arange(len(keys))
    records = pa.record_batch({"key": pa.array(keys, kind), "_event_time_ms": times_ms})
    ordered = sorted_as_by_spark(records, np.zeros(len(keys), np.int64))
    assert len(group_rows(iter([ordered]), ["key"], 10)) == groups


def test_spark_sorts_by_one_number(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """Rules A6, G2: groups are whole and in order; a record without a time is not lost."""
    near = (-5, -1, 0, 1, STRETCH_MS - 1, STRETCH_MS + 1, -MAX_INSTANT_MS, MAX_INSTANT_MS, None)
    rows = [(f"k{i % 50}", near[i % 9] if i % 7 else (i * 37) % 1009) for i in range(1000)]
    records = spark.createDataFrame(rows, "key string, _event_time_ms bigint")
    ordered = in_radix_order(records, ["key"])
    ordered.explain()
    # By one column alone: Spark compares rows where there are more.
    assert re.search(rf"Sort \[{SORT_KEY}#\d+L ASC NULLS FIRST\]", capsys.readouterr().out)
    table = ordered.withColumn("task", F.spark_partition_id()).toArrow()
    found = []
    for task in range(2):
        batches = table.filter(pc.equal(table["task"], task)).drop_columns("task").to_batches()
        found += group_rows(iter(batches), ["key"], 100)
    assert len(found) == len({group[0]["key"] for group in found}) == 50
    for group in found:
        times_ms = [row["_event_time_ms"] or 0 for row in group]
        assert times_ms == sorted(times_ms)
    every = [tuple(row.values()) for group in found for row in group]
    assert sorted(every, key=repr) == sorted(rows, key=repr)
