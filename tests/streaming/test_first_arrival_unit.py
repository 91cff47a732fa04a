"""The first of a micro-batch's units, of any number of them."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from windows_pipeline.incremental.closed_days import first_arrival_unit

FIRST, LAST = date(2020, 1, 1), date(2030, 1, 1)


@pytest.mark.parametrize("count", [0, 1, 2, 7, 1_000])
def test_the_first_arrival_unit_whose_condition_holds(spark: SparkSession, count: int) -> None:
    """Rule E4: also for more days than Spark can nest in an expression."""
    days = [FIRST + timedelta(days=number) for number in range(count)]
    arrival_units = [(day, F.col("id") < F.lit(3 * number)) for number, day in enumerate(days)]
    rows = (
        spark.range(-1, 3 * count + 1)
        .select("id", first_arrival_unit(arrival_units, LAST))
        .collect()
    )
    assert len(rows) == 3 * count + 2
    for at, arrival_unit in rows:
        assert arrival_unit == next(
            (day for number, day in enumerate(days) if at < 3 * number), LAST
        )
