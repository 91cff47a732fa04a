"""A result's columns have names of their own, and each cure can be taken where it stands (F3)."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from windows_pipeline import (
    Arrival,
    TimeWindows,
    Trigger,
    Tumble,
    aggregate,
    count,
    firings,
    group_windows,
    rows,
    windows_sql,
)
from windows_pipeline.aggregates import Aggregate, Function
from windows_pipeline.dataframe.names import (
    quoted,
    require_apart,
    require_once,
    require_results,
    unquoted,
)

TOTAL = Aggregate("total", Function.SUM, "value_0_0", written="amount")


def test_a_key_that_is_named_twice_is_to_be_named_once() -> None:
    """Spark does not tell names apart by case, and a key has no alias."""
    with pytest.raises(ValueError, match=r"^by: 'Key' comes twice; name each column"):
        require_results(["key", "Key"], [], [])


@pytest.mark.parametrize("name", ["closed", "Window_End"])
def test_a_key_with_the_name_of_the_results_own_is_to_be_renamed_before(name: str) -> None:
    cure = f"rename yours before, as with events.withColumnRenamed\\('{name}', 'own_{name}'\\)"
    with pytest.raises(ValueError, match=f"^by: '{name}' is a column that the result .*; {cure}"):
        require_results(["key", name], ["window_end", "closed"], [])


@pytest.mark.parametrize("taken", [["total"], ["TOTAL"]])
def test_an_aggregate_with_another_columns_name_is_to_have_an_alias(taken: list[str]) -> None:
    told = r"^of: 'total' would be .*; give sum\(amount\) another with \.alias\('...'\)"
    with pytest.raises(ValueError, match=told):
        require_results(taken, [], [TOTAL])
    with pytest.raises(ValueError, match=told):
        require_results([], taken, [TOTAL])
    with pytest.raises(ValueError, match=told):
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
    asked: dict[str, Any] = {"by": "`a.b`", "event_time": "`t.ms`", "of": [count()]}
    found = [records.transform(aggregate(tumbling, **asked))]
    fired = firings(tumbling, Trigger.at_window_end(), **asked, arrival=Arrival("`t.ms`"))
    found.append(records.transform(fired))
    for size in ("10 ms", rows(2)):
        grouped = group_windows(records, Tumble.over(size).on("t.ms").alias("w"))
        found.append(grouped.group_by("w", "a.b").select("a.b", "w.start", count()))
    call = "TABLE(dotted) PARTITION BY `a.b`, time_col => 't.ms', size => '10 ms'"
    query = f"SELECT * FROM tumbling_windows({call}, aggregates => 'count(*)')"  # noqa: S608
    found.append(windows_sql(spark, query))
    assert [each.columns[0] for each in found] == ["a.b"] * 5
