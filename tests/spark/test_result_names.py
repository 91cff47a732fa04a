"""A result's columns have names of their own, and each fix can be taken where it stands (F3)."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import windows_pipeline as wp
from windows_pipeline import TimeWindows, Trigger, count
from windows_pipeline.aggregates import FUNCTIONS, Aggregate
from windows_pipeline.dataframe.names import (
    quoted,
    require_apart,
    require_once,
    require_results,
    unquoted,
)
from windows_pipeline.flip11 import SlideRows, Tumble, rows

TOTAL = Aggregate("total", FUNCTIONS["sum"], "value_0_0", written="amount")


def test_a_key_that_is_named_twice_is_to_be_named_once() -> None:
    """Spark does not distinguish names by case, and a key has no alias."""
    with pytest.raises(ValueError, match=r"^by: 'Key' comes twice; name each column"):
        require_results(["key", "Key"], [], [])


@pytest.mark.parametrize("name", ["closed", "Window_End"])
def test_a_key_with_the_name_of_the_results_own_is_to_be_renamed_before(name: str) -> None:
    fix = f"rename yours before, as with events.withColumnRenamed\\('{name}', 'my_{name}'\\)"
    with pytest.raises(
        ValueError, match=f"^by: must not name '{name}', because the result .*; {fix}"
    ):
        require_results(["key", name], ["window_end", "closed"], [])


@pytest.mark.parametrize("taken", [["total"], ["TOTAL"]])
def test_an_aggregate_with_another_columns_name_is_to_have_an_alias(taken: list[str]) -> None:
    message = (
        r"^aggregates: 'total' would be .*; give sum\(amount\) another name with \.alias\('...'\)"
    )
    with pytest.raises(ValueError, match=message):
        require_results(taken, [], [TOTAL])
    with pytest.raises(ValueError, match=message):
        require_results([], taken, [TOTAL])
    with pytest.raises(ValueError, match=message):
        require_results([], [], [TOTAL, TOTAL])


def test_names_that_differ_are_taken() -> None:
    require_results(["key", "part"], ["closed"], [TOTAL])
    require_apart("events", ["key", "at"], ["reason"])
    require_once("select", ["start", "end"], "rename one")


@pytest.mark.parametrize("name", ["key", "a.b", "a`b", "``", "a b"])
def test_a_name_is_the_same_out_of_its_quotes(name: str) -> None:
    assert unquoted(quoted(name)) == name


def test_a_struct_and_its_field_need_no_quotes() -> None:
    assert unquoted("part.`a.b`") == "part.a.b"


def test_a_key_with_a_point_in_its_name_keeps_it_in_results(spark: SparkSession) -> None:
    """Rule F3: backticks say which column is meant; they are no part of its name."""
    records = spark.range(1).selectExpr("id AS `a.b`", "id AS `t.ms`")
    records.createOrReplaceTempView("dotted")
    tumbling = TimeWindows.of_size_with_no_grace("10 ms")
    timed = wp.windowed(records, tumbling).by("`a.b`").event_time("`t.ms`")
    found = [timed.agg(count()), timed.arrival("`t.ms`").firings(Trigger.at_window_end(), count())]
    for size in ("10 ms", rows(2)):
        grouped = wp.windowed(records, Tumble.over(size).on("`t.ms`").alias("w")).by("`a.b`")
        found.append(grouped.agg(count()))
    around = wp.windowed(records, SlideRows.preceding("1 ms")).by("`a.b`").arrival("`t.ms`")
    found.append(around.event_time("`t.ms`").agg(count()))
    call = "TABLE(dotted) PARTITION BY `a.b`, time_col => 't.ms', size => '10 ms'"
    query = f"SELECT * FROM tumbling_windows({call}, aggregates => 'count(*)')"  # noqa: S608
    found.append(wp.sql(spark, query))
    call = "TABLE(dotted) PARTITION BY `a.b`, order_col => 't.ms', size => 1"
    query = f"SELECT * FROM count_windows({call}, aggregates => 'count(*)')"  # noqa: S608
    found.append(wp.sql(spark, query))
    assert [each.columns[0] for each in found] == ["a.b"] * 7
