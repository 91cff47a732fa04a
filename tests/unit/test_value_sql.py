"""Expressions of aggregates compile to SQL with a known type, which never fails a run (rule G3)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windows_pipeline.alerts.rule_sql import RuleError, canonical, compile_value

COLUMNS = {
    "price": "decimal(12,2)",
    "quantity": "bigint",
    "weight": "double",
    "status": "string",
    "sent_at": "timestamp",
    "day": "date",
    "paid": "boolean",
}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("quantity", "bigint"),
        ("quantity + 1", "bigint"),
        ("-quantity * abs(quantity) % 7", "bigint"),
        ("quantity / 2", "double"),
        ("quantity * weight", "double"),
        ("price * quantity", "decimal(33,2)"),
        ("price * 1.25", "decimal(16,4)"),
        ("price * 1e2", "double"),
        ("quantity * 0.5", "decimal(22,1)"),
        ("cast(price as double) * price", "double"),
        ("cast(weight as bigint)", "bigint"),
        ("floor(weight)", "bigint"),
        ("ceil(price)", "decimal(11,0)"),
        ("round(price, 1)", "decimal(12,1)"),
        ("round(price)", "decimal(11,0)"),
        ("round(quantity, -2)", "bigint"),
        ("coalesce(price, 0)", "decimal(12,2)"),
        ("greatest(quantity, weight)", "double"),
        ("case when paid then quantity else price end", "decimal(22,2)"),
        ("if(paid, 1, null)", "bigint"),
        ("status = 'failed' and quantity > 0", "boolean"),
        ("status in ('a', 'b') or price between 1 and 2.5 or day is null", "boolean"),
        ("coalesce(status, 'none')", "string"),
        ("sent_at - interval 3 hours", "timestamp"),
        ("to_date(sent_at)", "date"),
        ("hour(from_utc_timestamp(sent_at, 'America/New_York')) + year(day)", "bigint"),
        ("unix_millis(sent_at)", "bigint"),
    ],
)
def test_an_expression_has_one_type(text: str, kind: str) -> None:
    """Rules G1, G2: Spark's type, or a decimal that is wide enough for each exact result."""
    assert compile_value(text, COLUMNS).type == kind


@pytest.mark.parametrize(
    ("text", "may_fail"),
    [
        ("quantity", False),
        ("weight * weight / weight", False),
        ("price * quantity", False),
        ("status = 'failed'", False),
        ("quantity > -1", False),
        ("coalesce(quantity, 0)", False),
        ("quantity + 1", True),
        ("-quantity", True),
        ("abs(quantity) > 1", True),
        ("floor(weight)", True),
        ("cast(price as int)", True),
        ("sent_at + interval 1 day", True),
        ("case when paid then 1 else quantity * 2 end", True),
        ("coalesce(quantity, quantity * quantity)", True),
        ("paid and quantity * 2 > 1", True),
    ],
)
def test_only_what_may_not_fit_can_fail(text: str, *, may_fail: bool) -> None:
    """Rule G3: integers, casts and times may; doubles become infinite, decimals are wide enough."""
    assert (compile_value(text, COLUMNS).fails is not None) == may_fail


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prise * 2", "there is no column 'prise'; did you mean 'price'?"),
        ("price * price * price * quantity", "needs 59 digits, and a decimal has at most 38; make"),
        ("case when paid then price else 'x' end", "returns a number or a string; make all its"),
        ("sum(price)", "uses sum(), which expressions cannot use; write it under aggregates, or"),
        ("round(price, quantity)", "needs a whole number from -18 to 18 there; write"),
        ("null", "is no value of a record; name a column"),
        ("interval 3 days", "is no value of a record; name a column"),
        ("price, quantity", "is not a single SQL expression"),
        ("reflect('java.lang.System', 'exit', 1)", "uses reflect(), which expressions cannot use"),
        ("(select 1)", "uses 'subquery', which expressions cannot use"),
        ("price; drop table x", "is not a single SQL expression"),
        ("'${env:HOME}'", "holds '${', which Spark would replace; remove it"),
        ("", "is empty; write an expression"),
    ],
)
def test_an_error_has_the_fix(text: str, words: str) -> None:
    with pytest.raises(RuleError) as refused:
        compile_value(text, COLUMNS)
    assert str(refused.value).startswith(f"{text!r}: ")
    assert words in str(refused.value)


def test_an_expression_that_grows_too_long_is_refused() -> None:
    """Spark would take minutes to parse the condition under which it fails."""
    with pytest.raises(RuleError, match="is too long for Spark; split it up"):
        compile_value(" + ".join(["quantity"] * 95), COLUMNS)
    deep = "(" * 900 + "quantity" + ")" * 900
    with pytest.raises(RuleError, match="must have at most 20 parenthes"):
        compile_value(deep, COLUMNS)


def test_equal_expressions_have_one_text() -> None:
    """Rule H1: another layout of an expression is not another definition."""
    assert canonical("price*quantity") == canonical(" price  *  quantity -- of all")
    assert canonical("PRICE * quantity") != canonical("price * quantity")
    assert canonical("price is NOT null") == canonical("price IS not NULL")


OPERANDS = st.sampled_from(["price", "quantity", "weight", "1", "2.5", "'x'", "paid", "sent_at"])
EXPRESSIONS = st.recursive(
    OPERANDS,
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "*", "/", ">", "and"]), inner),
        st.builds("coalesce({}, {})".format, inner, inner),
        st.builds("case when {} then {} end".format, inner, inner),
        st.builds("abs({})".format, inner),
    ),
    max_leaves=6,
)


@given(st.one_of(EXPRESSIONS, st.text(max_size=60)))
def test_any_text_compiles_or_raises_a_rule_error(text: str) -> None:
    try:
        found = compile_value(text, COLUMNS)
    except RuleError:
        return
    assert re.fullmatch(
        r"bigint|double|boolean|string|timestamp|date|decimal\(\d+,\d+\)", found.type
    )
    assert "--" not in found.sql
    # The compiled text is an expression of its canonical text, too.
    assert compile_value(canonical(text), COLUMNS) == found
