"""Spark computes the expressions of aggregates as the contract says (rules G1, G3)."""

from __future__ import annotations

import math
from decimal import Decimal
from random import Random
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.support.oracle.expressions import (
    Expression,
    ExpressionFailedError,
    text_of,
    value_of,
)
from tests.support.spark_cases import instant
from windows_pipeline.alerts.rule_sql import compile_value

MOST = 2**63 - 1
NUMBERS = (None, 0, 1, -1, 7, 2**40, -(2**62), MOST, -MOST - 1)
FAILS = "fails"
WEEKS_MS = 9999 * 7 * 86_400_000


def expression(random: Random, depth: int) -> Expression:
    """A random expression of bigints."""
    if depth == 0 or random.random() < 0.2:
        return random.choice(["a", "b", 0, 3, 2**31])
    name = random.choice(["+", "-", "*", "neg", "abs", "coalesce", "case"])
    if name == "case":
        return (name, condition(random, depth - 1), *_operands(random, depth, 2))
    return (name, *_operands(random, depth, 1 if name in ("neg", "abs") else 2))


def condition(random: Random, depth: int) -> Expression:
    """A random condition over bigints."""
    if depth > 0 and random.random() < 0.3:
        return ("and", condition(random, depth - 1), condition(random, depth - 1))
    return (random.choice([">", "="]), *_operands(random, depth, 2))


def _operands(random: Random, depth: int, count: int) -> list[Expression]:
    return [expression(random, max(depth - 1, 0)) for _ in range(count)]


def by_oracle(wanted: Expression, record: dict[str, Any]) -> Any:
    try:
        return value_of(wanted, record)
    except ExpressionFailedError:
        return FAILS


def test_integers_are_exact_or_fail(spark: SparkSession) -> None:
    """Rules A6, G3: null is null; nothing wraps around, and nothing raises."""
    random = Random(42)
    wanted = [expression(random, 3) for _ in range(60)]
    wanted += [condition(random, 2) for _ in range(20)]
    types = {"a": "bigint", "b": "bigint"}
    compiled = [compile_value(text_of(each), types) for each in wanted]
    rows = [(left, right) for left in NUMBERS for right in NUMBERS]
    columns = []
    for index, each in enumerate(compiled):
        columns.append(F.expr(each.sql).alias(f"v{index}"))
        columns.append(F.expr(each.fails or "FALSE").alias(f"f{index}"))
    frame = spark.createDataFrame(rows, "a bigint, b bigint").coalesce(1)
    found = frame.select("a", "b", *columns)
    kinds = {name: kind for name, kind in found.dtypes if name.startswith("v")}
    assert kinds == {f"v{index}": each.type for index, each in enumerate(compiled)}
    outcomes = set()
    for row in found.collect():
        record = {"a": row.a, "b": row.b}
        for index, each in enumerate(wanted):
            value = FAILS if row[f"f{index}"] else row[f"v{index}"]
            assert value == by_oracle(each, record), (text_of(each), record)
            outcomes.add(value if value in (None, FAILS, True, False) else "number")
    assert outcomes == {None, FAILS, True, False, "number"}


def test_each_type_is_the_type_that_the_compiler_says(spark: SparkSession) -> None:
    """Rules G2, G3: by hand; a division by zero is null, and a double never fails."""
    types = {
        "price": "decimal(12,2)", "n": "bigint", "x": "double", "s": "string", "t": "timestamp",
        "paid": "boolean",
    }  # fmt: skip
    rows = [
        (Decimal("1234567890.12"), 3, 1e308, "é'", instant(0), True),
        (None, None, math.nan, None, None, None),
        (Decimal("-0.05"), MOST, -2.5, "", instant(-1), False),
    ]
    wanted: dict[str, list[Any]] = {
        "price * n": [Decimal("3703703670.36"), None, Decimal(MOST) * Decimal("-0.05")],
        "price * 1.25": [Decimal("1543209862.6500"), None, Decimal("-0.0625")],
        "price % 0": [None, None, None],
        "n / 2": [1.5, None, 2.0**62],
        "n / (n - n)": [None, None, None],
        "x * 10": [math.inf, math.nan, -25.0],
        "floor(x)": [FAILS, FAILS, -3],
        "ceil(price)": [Decimal(1234567891), None, Decimal(0)],
        "cast(x as int)": [FAILS, FAILS, -2],
        "cast(price as bigint)": [1234567890, None, 0],
        "cast(n as int)": [3, None, FAILS],
        "round(price, 1)": [Decimal("1234567890.1"), None, Decimal("-0.1")],
        "round(price, 3)": [Decimal("1234567890.12"), None, Decimal("-0.05")],
        "round(x, 0)": [1e308, math.nan, -3.0],
        "round(n, -1)": [0, None, FAILS],
        "greatest(n, x, 0)": [1e308, math.nan, float(MOST)],
        "coalesce(s, 'none')": ["é'", "none", ""],
        "case when paid then n else price end": [Decimal("3.00"), None, Decimal("-0.05")],
        "year(t) + month(t)": [1971, None, 1981],
        "t + interval 1 second": [1000, None, 999],
        "t - interval 9999 weeks": [-WEEKS_MS, None, -WEEKS_MS - 1],
        "t + interval 3000000 days": [FAILS, None, FAILS],
        "unix_millis(t)": [0, None, -1],
        "t >= '1970-01-01'": [True, None, False],
        "paid and n > 2": [True, None, False],
        "n < 5 and n * 2 > 5": [True, None, False],
        "n > 5 or n * 2 > 5": [True, None, True],
        "n > 0 and n * 2 > 5": [True, None, FAILS],
        "s is not null and not paid": [False, False, True],
        "n in (1, 3)": [True, None, False],
    }
    compiled = {text: compile_value(text, types) for text in wanted}
    columns = []
    for index, each in enumerate(compiled.values()):
        value = F.expr(each.sql)
        value = F.unix_millis(value) if each.type == "timestamp" else value
        columns.append(value.alias(f"v{index}"))
        columns.append(F.expr(each.fails or "FALSE").alias(f"f{index}"))
    schema = ", ".join(f"{name} {kind}" for name, kind in types.items())
    found = spark.createDataFrame(rows, schema).coalesce(1).select(columns)
    assert [kind for name, kind in found.dtypes if name[0] == "v"] == [
        each.type.replace("timestamp", "bigint") for each in compiled.values()
    ]
    rows_found = found.collect()
    for index, (text, values) in enumerate(wanted.items()):
        results = [FAILS if row[f"f{index}"] else row[f"v{index}"] for row in rows_found]
        assert repr(results) == repr(values), text
