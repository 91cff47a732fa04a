"""Windows computed from slices equal those computed from records, to the bit (rules C2, G2)."""

from __future__ import annotations

import random
from datetime import date
from decimal import Context, Decimal

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import windows_pipeline as wp
from windows_pipeline import (
    Aggregation,
    TimeWindows,
    avg,
    collect_list,
    count,
    count_distinct,
    first,
    last,
    max_,
    median,
    percentile,
    stddev_pop,
    sum_,
    variance,
)
from windows_pipeline.aggregates import FUNCTIONS
from windows_pipeline.aggregates.aggregation import aggregation_of
from windows_pipeline.aggregates.function import Takes
from windows_pipeline.engine.preaggregation.partial_result import ShortResult
from windows_pipeline.engine.preaggregation.partial_results import PARTIAL_RESULTS

SCHEMA = (
    "at bigint, source string, key string, ms bigint, whole bigint, small int, "
    "price decimal(28,2), cents decimal(18,2), long decimal(38,6), "
    "real double, large double, narrow float, name string, "
    "part struct<a: int, b: string, c: double>, most decimal(38,38), binary binary, day date"
)
MERGED = [
    count(),
    count("whole"),
    sum_("whole"),
    avg("whole"),
    sum_("small"),
    avg("small"),
    sum_("price"),
    avg("price"),
    *(
        aggregation_of(function, column)
        for function in FUNCTIONS.values()
        if function.takes is Takes.ORDERED
        and isinstance(PARTIAL_RESULTS.get(function.name), ShortResult)
        for column in ("whole", "price", "real", "name", "part")
    ),
    *(
        aggregation_of(function, column, by=by)
        for function in FUNCTIONS.values()
        if function.second == "by"
        for column, by in {"name": "small", "part": "real", "price": "part"}.items()
    ),
    sum_("whole").where("small > 0").alias("some"),
    *(of(column) for of in (sum_, avg) for column in ("large", "narrow")),
    sum_("long"),
]
SQUARED = [
    *(variance(column) for column in ("whole", "cents", "real", "large", "narrow", "long")),
    stddev_pop("small"),
    stddev_pop("most"),
]
# A slice has one row for each combination of these values, which splits its other aggregates.
OF_VALUES = [
    *(count_distinct(column) for column in ("part", "real", "name", "binary", "day")),
    *(percentile("real", 0.3), median("price"), median("narrow"), median("small")),
    *(count_distinct("small").where("real > 0").alias("seen"), percentile("small", 1.0)),
]
BESIDE_VALUES = [
    *(count(), count("real"), sum_("whole"), avg("price"), first("name"), last("part")),
    *(sum_("large"), avg("narrow"), variance("real"), variance("long"), max_("real")),
    *(count_distinct("part"), count_distinct("name").where("at % 2 = 0").alias("some")),
    median("small"),
]
LONG = Context(prec=38)
NAN = float("nan")
SOME_REALS = [0.0, -0.0, NAN, float("inf"), float("-inf"), 1.5, -2.25]
# Values that cancel or swamp each other in a sum, exceed the largest double, or are the smallest.
LARGE = [1e16, 1.0, -1e16, 0.1, -0.0, 5e-324, -(2.0**-1022), 1.7e308, -1.7e308, 2.0**-13, 2.0**27]


def drawn(spark: SparkSession) -> DataFrame:
    """Records of few keys, dense and out of order, with nulls and values that are hard to add."""
    draw = random.Random(450)

    def maybe(value: object) -> object:
        return None if draw.random() < 0.2 else value

    rows = []
    for at in range(600):
        ms = at // 3 - draw.choice([0, 0, 1, 5, 40]) - 100
        whole = draw.choice([2**62, -(2**62), draw.randrange(-9, 9)])
        price = Decimal(draw.choice([10**27, -(10**27), draw.randrange(99)])).scaleb(-2)
        cents = Decimal(draw.choice([10**18 - 1, 1 - 10**18, draw.randrange(99)])).scaleb(-2)
        long = Decimal(draw.choice([10**36 - 1, 1 - 10**36, 2**64, -1, 7])).scaleb(-6, LONG)
        part = (draw.choice([1, None]), draw.choice("xy"), draw.choice([0.0, -0.0, NAN]))
        most = Decimal(draw.choice([10**38 - 1, 1 - 10**38, 2**93, -(2**62), 3])).scaleb(-38, LONG)
        rows.append(
            (
                *(at, draw.choice("pq"), maybe(draw.choice("ab")), ms),
                *(maybe(whole) if at % 2 else 1, maybe(draw.randrange(-3, 9)), maybe(price)),
                maybe(cents),
                long if at % 7 else None,
                *(maybe(draw.choice(SOME_REALS)), maybe(draw.choice(LARGE))),
                *(maybe(draw.choice([0.1, 3e38, -3e38, 1e-40])), maybe(draw.choice("ézba"))),
                *(maybe(part), maybe(most), maybe(draw.choice([b"", b"a"]))),
                maybe(date(2026, 1, draw.choice([1, 2]))),
            )
        )
    return spark.createDataFrame(rows, SCHEMA)


def windows_of(
    records: DataFrame, windows: TimeWindows, of: list[Aggregation], *, pre_aggregate: bool
) -> list[str]:
    # Sums of several of the largest integers do not fit, so the values are divided.
    halved = records.withColumn("whole", F.expr("whole div 64"))
    timed = wp.windowed(halved, windows).by("key").event_time("ms")
    found = timed.arrival("at", partition="source").agg(*of, pre_aggregate=pre_aggregate)
    return sorted(map(repr, found.collect()))


@pytest.mark.parametrize(
    ("windows", "of"),
    [
        (TimeWindows(20, 4, 3), [*MERGED, *SQUARED]),
        (TimeWindows(10, 7, 2, first_window_start_ms=-60, emit_empty=True), [*MERGED, *OF_VALUES]),
        (TimeWindows(3, 5, 30), MERGED),
        (TimeWindows(40, 20, 5), BESIDE_VALUES),
    ],
    ids=["hopping", "no-multiple", "gaps", "values repeat"],
)
def test_slices_change_no_result(
    spark: SparkSession, windows: TimeWindows, of: list[Aggregation]
) -> None:
    """Rules A5, C1, C2: also where records are late for some or all windows of their slice."""
    records = drawn(spark)
    of_records = windows_of(records, windows, of, pre_aggregate=False)
    assert len(of_records) > 20
    assert windows_of(records, windows, of, pre_aggregate=True) == of_records


def test_records_are_aggregated_before_the_shuffle(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rule C2: the shuffle before the kernel moves one row a key, slice and value."""
    records = spark.range(1000).selectExpr("id AS ms", "id % 2 AS key", "id % 3 AS value")
    hops = TimeWindows.of_size_with_no_grace("100 ms").advance_by("10 ms")
    of = [count(), count_distinct("value"), median("value")]

    by_key = wp.windowed(records, hops).by("key").event_time("ms")

    def plan(more: list[Aggregation]) -> list[str]:
        by_key.agg(*of, *more).explain()
        return capsys.readouterr().out.split("MapInArrow")

    kernel, *inputs = plan([])
    assert "partial_count" not in kernel
    assert "partial_count" in inputs[0]
    assert "_slice_value_1" in inputs[0].split("HashAggregate(keys=")[1].split("functions")[0]
    assert (
        "partial_count" not in plan([collect_list("value")])[1]
    )  # the partial result of a list is its records
    rows = by_key.agg(*of).collect()
    assert sum(row["count"] for row in rows) == 10_000  # each record in ten windows
    assert {row["count_distinct_value"] for row in rows if row["count"] > 3} == {3}


def test_a_partial_sum_may_have_more_than_38_digits(spark: SparkSession) -> None:
    """Rule G2: also within a slice."""
    most, kinds = 10**38 - 1, ("decimal(38,0)", "decimal(38,38)")
    for kind, scale in zip(kinds, (0, 38), strict=True):
        values = [most, most, 5 - most, -2, -most, most - 9]
        rows = [("k", 0, Decimal(value).scaleb(-scale, LONG)) for value in values]
        records = spark.createDataFrame(rows, f"key string, ms bigint, long {kind}")
        tumbling = TimeWindows.of_size_with_no_grace("10 ms")
        by_key = wp.windowed(records, tumbling).by("key").event_time("ms")
        [row] = by_key.agg(sum_("long").alias("total")).collect()
        assert row["total"] == Decimal(sum(values)).scaleb(-scale, LONG)


def test_a_sum_that_does_not_fit_names_its_window(spark: SparkSession) -> None:
    """Rule G2: the parts in two slices fit, their sum does not."""
    rows = [("k", 0, 2**62), ("k", 5, 2**62)]
    records = spark.createDataFrame(rows, "key string, ms bigint, whole bigint")
    hops = TimeWindows.of_size_with_no_grace("10 ms").advance_by("5 ms")
    found = wp.windowed(records, hops).by("key").event_time("ms").agg(sum_("whole"))
    with pytest.raises(PythonException, match="overflows bigint in the window of key 'k' from 0"):
        found.collect()
