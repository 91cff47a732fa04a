"""The partial aggregates of slices, as limbs and as distinct values, are exact (rule G2)."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.support.oracle.aggregates import aggregate as of_oracle
from tests.support.spark_cases import PROPERTY
from tests.support.windowed import WindowedCase, one_window, texts, windowed
from windows_pipeline.aggregates import FUNCTIONS, Aggregate
from windows_pipeline.engine.preaggregation.combine import (
    MAX_SLICE_RECORDS,
    combine_slices,
    record_count_of_slices,
)
from windows_pipeline.engine.preaggregation.partial_result import RECORDS
from windows_pipeline.engine.preaggregation.slice_numbers import (
    LIMB_BITS,
    limbs_of_integer,
    limbs_of_scaled,
    limbs_of_wholes,
    power_of,
    scaled,
    square_of,
    wholes_of_decimal,
)
from windows_pipeline.kernels.aggregates.running import running_sum_of_multiples

LOWEST_POWER, HIGHEST_POWER = -1074, 960
MOST = 2**63 - 1
"""The most that the limbs of 2**31 values, each below 2**32, add up to."""

LIMB = st.integers(-MOST, MOST) | st.sampled_from((0, 1, -1, 2**53, MOST, -MOST))
MULTIPLES = st.tuples(
    st.integers(LOWEST_POWER, HIGHEST_POWER) | st.sampled_from((-66, LOWEST_POWER, HIGHEST_POWER)),
    st.tuples(LIMB, LIMB, LIMB),
)


def exact(limbs: Sequence[int], power: int) -> Fraction:
    whole = sum(limb << LIMB_BITS * index for index, limb in enumerate(limbs))
    return Fraction(whole) * Fraction(2) ** power


def rounded(total: Fraction) -> float:
    try:
        return total.numerator / total.denominator
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def sums_of(case: WindowedCase) -> list[float]:
    present = [value or (0, (0, 0, 0)) for value in case.values]
    powers = np.array([power for power, _ in present], np.int64)
    limbs = np.array([limbs for _, limbs in present], np.int64).reshape(-1, 3).T.copy()
    by = np.ones(len(case.inside), np.int64)
    none = np.zeros(len(powers), np.int64)
    sums = running_sum_of_multiples(
        case.records.windows, powers, limbs, LIMB_BITS, by, nans=none, above=none, below=none
    )
    return [float(total) for total in sums]


@settings(PROPERTY, max_examples=100)
@given(windowed(MULTIPLES))
@example(one_window([(HIGHEST_POWER, (0, 0, MOST)), (HIGHEST_POWER, (1, 0, -MOST))]))
def test_sums_of_multiples_are_exact_and_rounded_once(case: WindowedCase) -> None:
    """Also where a partial sum, or the sum itself, is beyond the largest double."""
    wanted = [
        rounded(
            sum((exact(each.value[1], each.value[0]) for each in held if each.value), Fraction(0))
        )
        for held in case.held()
    ]
    assert texts(sums_of(case)) == texts(wanted)


def test_every_double_is_its_limbs_times_a_power_of_two(spark: SparkSession) -> None:
    """And its square, too: for every other exponent the smallest, the largest and one between."""
    draw = Random(450)
    values = [0.0]
    for exponent in (*range(-1074, 1023, 2), 1023):
        least = math.ldexp(1.0, exponent)
        most = math.nextafter(2 * least, 0) if exponent < 1023 else sys.float_info.max
        values += [least, -most, min(least * (1 + draw.random()), most)]
    signed = [(draw.choice((1, -1)) * value,) for value in values]
    doubles = spark.createDataFrame(signed, "value double").coalesce(1)
    powers = doubles.withColumn("power", power_of(F.col("value")))
    multiples = powers.withColumn("multiple", scaled(F.col("value"), F.col("power")))
    limbs = limbs_of_scaled(F.col("multiple"))
    rows = multiples.select("value", "power", F.array(*limbs), F.array(*square_of(limbs))).collect()
    assert len(rows) == len(signed)
    for value, power, parts, squares in rows:
        assert exact(parts, power) == Fraction(value)
        assert exact(squares, 2 * power) == Fraction(value) ** 2
        assert all(abs(part) < 2**LIMB_BITS for part in parts)
        assert all(0 <= square * MAX_SLICE_RECORDS < 2**63 for square in squares)
        assert LOWEST_POWER <= power <= HIGHEST_POWER
    assert len({power for _, power, *_ in rows}) <= 56  # so a slice has few rows


def test_every_integer_is_its_limbs(spark: SparkSession) -> None:
    """And its square, too."""
    edges = {2**bits + by for bits in range(64) for by in (-1, 0, 1)} | {0}
    values = [
        (sign * edge,) for edge in edges for sign in (1, -1) if -(2**63) <= sign * edge < 2**63
    ]
    limbs = limbs_of_integer(F.col("value"))
    integers = spark.createDataFrame(values, "value bigint").coalesce(1)
    rows = integers.select("value", F.array(*limbs), F.array(*square_of(limbs))).collect()
    assert len(rows) == len(values)
    for value, parts, squares in rows:
        assert exact(parts, 0) == value
        assert exact(squares, 0) == value**2


def test_every_decimal_is_its_limbs(spark: SparkSession) -> None:
    """At every scale; and its square, too, with room for the sum over all records of a slice."""
    largest = 10**38 - 1
    edges = {2**bits + by for bits in (0, 31, 59, 62, 93, 124, 126) for by in (-1, 0, 1)}
    edges |= {0, 10**18 - 1, 10**18, largest}
    signed = sorted({sign * edge for edge in edges for sign in (1, -1)})
    wholes = spark.createDataFrame([(Decimal(each),) for each in signed], "whole decimal(38,0)")
    columns = []
    for scale in range(39):
        # Spark rounds a product that it casts, but parses text exactly.
        digits = F.concat("whole", F.lit(f"e-{scale}")).cast(f"decimal(38,{scale})")
        columns.append(F.array(*limbs_of_wholes(wholes_of_decimal(digits, scale))))
    squares = F.array(*square_of(limbs_of_wholes(wholes_of_decimal(F.col("whole"), 0))))
    rows = wholes.coalesce(1).select("whole", squares, *columns).collect()
    assert [int(row[0]) for row in rows] == signed
    for whole, square, *of_scales in rows:
        assert all(exact(parts, 0) == int(whole) for parts in of_scales)
        assert all(abs(part) < 2**LIMB_BITS for parts in of_scales for part in parts)
        assert exact(square, 0) == int(whole) ** 2
        assert all(0 <= part * MAX_SLICE_RECORDS < 2**63 for part in square)


REPEATED = st.tuples(st.sampled_from((0.0, -0.0, 1.5, -2.0, math.nan, math.inf)), st.integers(1, 3))


@settings(PROPERTY, max_examples=100)
@given(windowed(REPEATED), st.sampled_from((0.0, 0.3, 0.5, 0.95, 1.0)))
def test_distinct_counts_and_percentiles_weigh_values_by_their_records(
    case: WindowedCase, which: float
) -> None:
    """Rules A6, G1: a row of a slice is a value and the number of its records."""
    present = [value or (None, 2) for value in case.values]
    slices = pa.table(
        {
            "value": pa.array([value for value, _ in present], pa.float64()),
            RECORDS: pa.array([times for _, times in present], pa.int64()),
        }
    )
    held = [
        [value for each in rows if each.value for value in [each.value[0]] * each.value[1]]
        for rows in case.held()
    ]
    for one, function in (
        (Aggregate("result", FUNCTIONS["count_distinct"], "value"), "count_distinct"),
        (Aggregate("result", FUNCTIONS["percentile"], "value", which), f"percentile({which})"),
    ):
        wanted = [of_oracle(function, values) for values in held]
        assert texts(combine_slices(one, slices, case.records).to_pylist()) == texts(wanted)


@pytest.mark.parametrize("more", [0, 1])
def test_a_slice_with_too_many_records_for_exact_sums_is_refused(more: int) -> None:
    """Rule G1: no sum overflows unnoticed."""
    slices = pa.table({RECORDS: [MAX_SLICE_RECORDS + more, 1]})
    records = one_window([1, 2]).records
    if more:
        with pytest.raises(ArithmeticError, match=r"536870913 records .* pre_aggregate=False"):
            record_count_of_slices(slices, records)
    else:
        assert record_count_of_slices(slices, records).to_pylist() == [MAX_SLICE_RECORDS + 1]
