"""Aggregates: their names, the types that they take, and the types of their results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql.connect import functions as F  # whose columns need no session

import windows_pipeline as wp
from tests.support.spark_cases import aggregate_of
from windows_pipeline import (
    Aggregation,
    UserAggregate,
    count,
    min_by,
    percentile,
    sum_,
    user_aggregate,
)
from windows_pipeline.aggregates import FUNCTIONS, Aggregate, Function, parse_aggregate
from windows_pipeline.aggregates.column_type import ColumnType, parse_type

TOTAL = UserAggregate(int, lambda acc, v: acc + v, lambda a, b: a + b, int, "bigint")


SUFFIXES = {"percentage": "_0_95", "by": "_at", None: ""}


def made(function: Function) -> Aggregation:
    """What the library's function of this name makes of a column."""
    name = function.name if hasattr(wp, function.name) else f"{function.name}_"
    second = {"percentage": (0.95,), "by": ("at",), None: ()}[function.second]
    aggregation = getattr(wp, name)("amount", *second)
    assert isinstance(aggregation, Aggregation)
    return aggregation


@pytest.mark.parametrize(
    ("aggregation", "function", "name"),
    [
        (count(), FUNCTIONS["count"], "count"),
        (count("*"), FUNCTIONS["count"], "count"),
        (user_aggregate("amount", TOTAL), TOTAL, "user_aggregate_amount"),
        *(
            (made(each), each, f"{each.name}_amount{SUFFIXES[each.second]}")
            for each in FUNCTIONS.values()
        ),
    ],
)
def test_an_aggregation_has_a_name(
    aggregation: Aggregation, function: Function | UserAggregate, name: str
) -> None:
    """Rule G1: every function; an alias and a condition change nothing else."""
    assert (aggregation.function, aggregation.result_name) == (function, name)
    assert aggregation.condition is None
    filtered = aggregation.where("amount > 0").alias("x")
    assert (filtered.result_name, filtered.condition) == ("x", "amount > 0")
    assert (filtered.function, filtered.column, filtered.percentage) == (
        aggregation.function,
        aggregation.column,
        aggregation.percentage,
    )


def test_an_aggregate_of_a_nested_column_needs_an_alias() -> None:
    """The library makes no name from 'address.number'."""
    nested = sum_("address.number")
    assert nested.name is None
    with pytest.raises(ValueError, match=r"sum of address\.number has no name; .*alias"):
        _ = nested.result_name
    assert nested.alias("numbers").result_name == "numbers"
    assert percentile("address.number", 0.5).name is None


def test_an_expression_needs_an_alias() -> None:
    """The text of a Column is not a good name for a table's column."""
    doubled = sum_(F.col("amount") * 2)
    with pytest.raises(ValueError, match=r"sum of .* has no name; give it one with \.alias"):
        _ = doubled.result_name
    assert doubled.alias("twice").where(F.col("amount") > 0).result_name == "twice"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sum_(None), "column: None is not a column; pass a column's name, or a Column"),  # type: ignore[arg-type]
        (lambda: Aggregation(FUNCTIONS["sum"]), "column: sum needs a column, not None; pass"),
        (lambda: Aggregate("x", FUNCTIONS["sum"], "a", by="b"), "by: sum takes none, not 'b'"),
        (lambda: min_by("a", 5), "by: 5 is not a column; pass a column's name, or a Column"),  # type: ignore[arg-type]
        (lambda: percentile("a", 95), "percentage: 95 is not from 0 to 1"),
        (lambda: percentile("a", "0.5"), "percentage: '0.5' is not a number"),  # type: ignore[arg-type]
        (
            lambda: percentile("a", [0.5, 0.9]),  # type: ignore[arg-type]
            r"percentage: must be one number, not \[0.5, 0.9\]; write one aggregate for each",
        ),
        (lambda: Aggregate("x", FUNCTIONS["sum"], "a", 0.5), "percentage: sum takes none, not 0.5"),
        (lambda: sum_("a").alias("a`b"), "name: 'a`b' is not a name; pass text without backticks"),
        (lambda: user_aggregate("a", len), "aggregate: must be a UserAggregate, not <built-in"),  # type: ignore[arg-type]
        (lambda: replace(TOTAL, result_type=None), "result_type: None is not a column type"),  # type: ignore[arg-type]
        (lambda: sum_("a").where(True), "condition: True is not a condition; pass SQL as text, or"),  # type: ignore[arg-type]
        (
            lambda: sum_("a").where("b").where("c"),
            "condition: the aggregate already has one, b; join both with AND",
        ),
        (
            lambda: user_aggregate("a", replace(TOTAL, skip_nulls=False)).where("b"),
            "condition: an aggregate with skip_nulls=False cannot have one",
        ),
        (lambda: replace(TOTAL, merge=None), "merge: None is not a function"),  # type: ignore[arg-type]
        (
            lambda: replace(TOTAL, result_type="number"),
            "result_type: 'number' is not a column type",
        ),
    ],
)
def test_an_error_has_the_argument_and_the_value(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("bigint", ColumnType("bigint")),
        ("INTEGER", ColumnType("int")),
        ("decimal(38, 10)", ColumnType("decimal", 38, 10)),
        ("decimal", ColumnType("decimal", 10, 0)),
        ("array<string>", ColumnType("array", fields=(("element", ColumnType("string")),))),
        (
            "struct<a:int, B decimal(3,1)>",
            ColumnType(
                "struct", fields=(("a", ColumnType("int")), ("B", ColumnType("decimal", 3, 1)))
            ),
        ),
    ],
)
def test_the_parser_reads_types_as_spark_writes_them(text: str, kind: ColumnType) -> None:
    assert parse_type(text) == kind


@pytest.mark.parametrize(
    "text",
    [
        "",
        "number",
        "decimal(39,0)",
        "decimal(3,4)",
        "array<",
        "struct<>",
        "struct<a:int",
        "map<string,int>",
        "string collate UTF8_LCASE",
    ],
)
def test_a_type_must_be_supported(text: str) -> None:
    with pytest.raises(ValueError, match="is not a column type that aggregates support; use tiny"):
        parse_type(text)


@pytest.mark.parametrize(
    ("function", "column_type", "result_type"),
    [
        (FUNCTIONS["count"], "map<string,int>", "bigint"),
        (FUNCTIONS["count_distinct"], "date", "bigint"),
        (FUNCTIONS["sum"], "tinyint", "bigint"),
        (FUNCTIONS["sum"], "float", "double"),
        (FUNCTIONS["avg"], "bigint", "double"),
        (FUNCTIONS["min"], "float", "float"),
        (FUNCTIONS["max"], "timestamp_ntz", "timestamp_ntz"),
        (FUNCTIONS["first"], "struct<a:int>", "struct<a:int>"),
        (FUNCTIONS["collect_list"], "decimal(3,1)", "array<decimal(3,1)>"),
        (TOTAL, "string", "bigint"),
        *(
            (FUNCTIONS["max_by"], f"struct<value:{kind},by:string>", kind)
            for kind in ("decimal(3,1)", "struct<a:int,b:timestamp>")
        ),
    ],
)
def test_result_type(
    function: Function | UserAggregate, column_type: str, result_type: str
) -> None:
    """Rules G1 and G2."""
    assert aggregate_of("x", function, "a").result_type(column_type) == result_type


@pytest.mark.parametrize(
    ("function", "column_type", "takes"),
    [
        (FUNCTIONS["sum"], "string", "sum takes numbers"),
        (FUNCTIONS["max"], "array<int>", "max takes types with an order"),
        (FUNCTIONS["count_distinct"], "struct<a:array<int>>", "count_distinct takes types with an"),
        (FUNCTIONS["first"], "map<string,int>", "first takes types with an order"),
        (TOTAL, "variant", "user_aggregate takes types with an order"),
        (FUNCTIONS["min_by"], "struct<value:int,by:map<int,int>>", "min_by takes a value and what"),
    ],
)
def test_a_column_must_have_a_type_that_the_function_takes(
    function: Function | UserAggregate, column_type: str, takes: str
) -> None:
    """The error comes when the query is planned, not in a worker."""
    message = rf"'a'( and 'by')? is of type {column_type}; {takes}"
    with pytest.raises(ValueError, match=message):
        aggregate_of("x", function, "a").result_type(column_type)


@pytest.mark.parametrize(
    ("text", "aggregate"),
    [
        ("avg(a)", Aggregate("x", FUNCTIONS["avg"], "a")),
        (" COUNT_DISTINCT ( a ) ", Aggregate("x", FUNCTIONS["count_distinct"], "a")),
        ("var_samp(a)", Aggregate("x", FUNCTIONS["variance"], "a")),
        ("percentile(a, 0.95)", Aggregate("x", FUNCTIONS["percentile"], "a", 0.95)),
        ("median(a)", Aggregate("x", FUNCTIONS["median"], "a")),
        ("sum(a * b)", Aggregate("x", FUNCTIONS["sum"], "_value_x", written="a * b")),
        (
            "percentile(coalesce(a, (b + 1)), 0.5)",
            Aggregate("x", FUNCTIONS["percentile"], "_value_x", 0.5, "coalesce(a, (b + 1))"),
        ),
        (
            "max(a) where b = ')' and c in (1, 2)",
            Aggregate("x", FUNCTIONS["max"], "_value_x", None, "a", "b = ')' and c in (1, 2)"),
        ),
        (
            "min_by(a, b + 1) where c",
            Aggregate("x", FUNCTIONS["min_by"], "_value_x", None, "a", "c", by="b + 1"),
        ),
        (
            "count(*) WHERE b",
            Aggregate("x", FUNCTIONS["count"], "_value_x", None, "*", "b"),
        ),
    ],
)
def test_the_parser_reads_aggregates(text: str, aggregate: Aggregate) -> None:
    assert parse_aggregate("x", text) == aggregate
    assert parse_aggregate("x", str(aggregate)) == aggregate


def test_a_count_of_some_records_names_no_column() -> None:
    assert parse_aggregate("x", "count() where b") == parse_aggregate("x", "count(*) where b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "is not an aggregate; write it as 'avg.column.', with one of count, count_distinct"),
        ("mode(a)", "unknown aggregate 'mode'; use one of count, count_distinct"),
        ("sum() where b", "the number of records, as record_count; leave this aggregate out"),
        ("sum(a) b", "has 'b' after the call; write 'where' and a condition there, or nothing"),
        ("sum(a) whre b > 1", "has 'whre' after the call; did you mean 'where'"),
        ("sum(a) ovr hour", "has 'ovr' after the call; did you mean 'over'"),
        ("my_module.spread(a)", "is not an aggregate; did you mean 'my_module:spread.a.'"),
        ("m:spread where b > 1", r"names no column; write 'm:spread\(column\) where b > 1'"),
        ("sum(a", "is not an aggregate; write it as 'avg.column.', with one of count"),
        ("percentile(a)", "percentage: is missing; write one from 0 to 1"),
        ("percentile(a, half)", "'half' is not a number"),
        (
            "percentile(a, array(0.5, 0.9))",
            r"^'percentile.a, array.*: percentage: 'array.0.5, 0.9.' is not a number; .* as in 'pe",
        ),
        ("min_by(a)", r"by: is missing; write the column that .* as in min_by\(value, by\)"),
        ("max_by(a, b, c)", r"max_by takes two columns; write 'max_by\(a, b\)'"),
        ("argmax(a, b)", "unknown aggregate 'argmax'; did you mean 'max_by'"),
        ("avg(a, 0.5)", "avg takes one column; write 'avg\\(a\\)'"),
    ],
)
def test_an_error_about_an_aggregate_has_the_fix(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_aggregate("x", text)
