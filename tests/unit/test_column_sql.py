"""Derived columns use the listed grammar and nothing else, and compile to safe SQL (rule H1)."""

from __future__ import annotations

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from windows_pipeline.alerts.rule_sql import RuleError, ValueSql, compile_column

COLUMNS = {
    "whole": "bigint",
    "real": "double",
    "amount": "decimal(12,2)",
    "text": "string",
    "at": "timestamp",
    "day": "date",
    "flag": "boolean",
}


def compiled(text: str, column_type: str) -> ValueSql:
    return compile_column(text, COLUMNS, column_type, "t")


def refusal(text: str, column_type: str = "string") -> str:
    with pytest.raises(RuleError) as refused:
        compiled(text, column_type)
    return str(refused.value)


@pytest.mark.parametrize(
    ("text", "column_type", "sql"),
    [
        ("lower(trim(text))", "string", "LOWER(TRIM(`t`.`text`))"),
        ("substring(text, 2, 3)", "string", "SUBSTRING(`t`.`text`, 2, 3)"),
        ("left(text, 2)", "string", "LEFT(`t`.`text`, 2)"),
        ("replace(text, 'a', 'b')", "string", "REPLACE(`t`.`text`, 'a', 'b')"),
        ("nullif(text, '')", "string", "NULLIF(`t`.`text`, '')"),
        ("length(text)", "bigint", "CAST(LENGTH(`t`.`text`) AS BIGINT)"),
        ("startswith(text, 'a')", "boolean", "STARTSWITH(`t`.`text`, 'a')"),
        ("text = 'a' and flag", "boolean", "((`t`.`text` = 'a') AND `t`.`flag`)"),
        ("flag is not null", "boolean", "(NOT (`t`.`flag` IS NULL))"),
        ("whole in (1, -2)", "boolean", None),
        ("coalesce(text, 'none')", "string", "COALESCE(`t`.`text`, 'none')"),
        ("try_cast(text as bigint)", "bigint", "TRY_CAST(`t`.`text` AS BIGINT)"),
        ("round(real, 2)", "double", "ROUND(`t`.`real`, 2)"),
        ("whole - real", "double", "(CAST(`t`.`whole` AS DOUBLE) - `t`.`real`)"),
        ("amount * 1.19", "decimal(12,2)", "(`t`.`amount` * CAST(1.19 AS decimal(3,2)))"),
        ("amount / 2", "double", None),
        ("whole % 2", "bigint", "(`t`.`whole` % NULLIF(2L, 0))"),
    ],
)
def test_what_cannot_fail_is_compiled_alone(text: str, column_type: str, sql: str | None) -> None:
    found = compiled(text, column_type)
    assert sql is None or found.sql == sql
    assert found.fails is None


@pytest.mark.parametrize(
    ("text", "column_type", "call"),
    [
        ("whole + 1", "bigint", "TRY_ADD("),
        ("whole * 2", "bigint", "TRY_MULTIPLY("),
        ("cast(text as bigint)", "bigint", "TRY_CAST("),
        ("at + interval 90 minutes", "timestamp", "TRY_ADD("),
        ("concat(text, concat(':', text))", "string", "OCTET_LENGTH(`t`.`text`)"),
        ("replace(text, 'a', 'bc')", "string", "OCTET_LENGTH(`t`.`text`)"),
        ("replace(text, text, 'a')", "string", "OCTET_LENGTH(`t`.`text`)"),
    ],
)
def test_what_may_fail_says_where(text: str, column_type: str, call: str) -> None:
    found = compiled(text, column_type)
    assert call in found.sql
    assert call in (found.fails or "")


@pytest.mark.parametrize(
    "text",
    [
        "(select max(text) from t)",
        "uuid()",
        "monotonically_increasing_id()",
        "regexp_replace(text, '(a+)+', '')",
        "text rlike '(a+)+$'",
        "text like 'a%'",
        "repeat(text, 1000000000)",
        "lpad(text, 1000000000, 'a')",
        "space(1000000000)",
        "transform(array(1), x -> x)",
        "concat_ws(',', text, text)",
        "concat(text, concat_ws(',', text, text))",
        "t.text",
        "lag(text) over (order by at)",
        "cast(text as array<string>)",
        "cast(text as date format 'yyyy')",
        "cast(text as decimal(39,2))",
        "cast(text as decimal)",
        "cast(flag as timestamp)",
        "cast(whole as timestamp)",
        "concat(text, whole)",
        "left(text, whole)",
        "substring(text, -1)",
        "left(text, 2147483648)",
        "right(text, 2147483648)",
        "substring(text, 2147483648)",
        "substring(text, 1, 2147483648)",
        "round(real, whole)",
    ],
)
def test_other_sql_is_refused(text: str) -> None:
    assert refusal(text)


def test_an_expression_that_grows_is_refused() -> None:
    """The SQL for where an expression fails repeats the parts of the expression."""
    grows = "replace(" * 9 + "text" + ", 'a', 'bc')" * 9
    assert "is too long for Spark; split it up, or simplify it" in refusal(grows)
    assert "is too long for Spark" in refusal("+".join(["whole"] * 90), "bigint")


def test_a_long_chain_is_refused() -> None:
    assert "simplify it" in refusal("+".join(["whole"] * 100), "bigint")


def test_a_decimal_needs_all_its_digits() -> None:
    """Nothing is rounded to fit."""
    wide = "amount * amount * amount * whole"
    assert "needs 59 digits, and a decimal has at most 38" in refusal(wide, "decimal(38,2)")


def test_a_value_must_be_of_the_columns_type() -> None:
    for name, kind in COLUMNS.items():
        assert compiled(name, kind).sql
    assert "is of kind number, but the column's type is of kind string" in refusal("whole")
    assert "is of kind timestamp, but the column's type is of kind date" in refusal("at", "date")


EXPRESSIONS = st.recursive(
    st.sampled_from([*COLUMNS, "1", "2.5", "'a'", "null", "true", "interval 1 hour"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/%=<>"), inner).map(" ".join),
        st.tuples(
            st.sampled_from(
                [
                    *("abs", "floor", "round", "lower", "length", "not ", "-", "year", "hour"),
                    *("to_date", "date", "unix_millis", "trim"),
                ]
            ),
            inner,
        ).map(lambda part: f"{part[0]}({part[1]})"),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"concat({', '.join(parts)})"),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"coalesce({', '.join(parts)})"),
        st.tuples(inner, inner, inner).map(
            lambda parts: f"case when {parts[0]} then {parts[1]} else {parts[2]} end"
        ),
        st.tuples(inner, st.sampled_from(["string", "bigint", "double", "date", "timestamp"])).map(
            lambda part: f"cast({part[0]} as {part[1]})"
        ),
    ),
    max_leaves=8,
)


@given(EXPRESSIONS, st.sampled_from([*COLUMNS.values()]))
def test_an_expression_compiles_or_is_refused(text: str, column_type: str) -> None:
    """The compiled SQL is text that sqlglot can read, and names columns of the struct only."""
    try:
        found = compiled(text, column_type)
    except RuleError:
        return
    for sql in (found.sql, found.fails or "FALSE"):
        tree = sqlglot.parse_one(sql, dialect="spark")
        assert {column.table for column in tree.find_all(sqlglot.exp.Column)} <= {"t"}
