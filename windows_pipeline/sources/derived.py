"""Computes the derived columns of landed records."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.config.source import Source
from windows_pipeline.sources.column_values import value_of, with_texts
from windows_pipeline.sources.typed_texts import typed
from windows_pipeline.sources.years import in_years

TYPED = "typed"
"""The struct of a record's values, which the SQL of derived columns reads."""
_VALUE, _FAILS = "_value", "_fails"
_KINDS = ("string", "boolean", "date", "timestamp")
"""The types whose expressions have values of the type; those of others have numbers."""


def failed(name: str) -> str:
    """The column that says whether a derived column's expression fails for a record."""
    return f"_failed_{name}"


def with_derived(records: DataFrame, source: Source) -> DataFrame:
    """Adds the derived columns to the struct of a record's values, each after the columns it reads.

    For each derived column, `failed` says whether the expression fails, or its value does not fit
    the column's type; the value is then null.

    Args:
        records: `arrival_unit`, and the struct `TYPED` with the columns that records hold.
        source: The source that declares the columns.
    """
    for name, derived in source.derived.items():
        sql, since = derived.sql(TYPED), source.long_forms[name].since
        applies = F.lit(True) if since is None else F.col("arrival_unit") >= F.lit(since)
        computed = records.withColumns(
            {
                _VALUE: F.when(applies, F.expr(sql.sql)),
                _FAILS: applies & F.expr(sql.fails or "FALSE"),
            }
        )
        value = F.col(_VALUE)
        if derived.gives_text:
            computed, fitting = with_texts(computed, {name: value}, source), value_of(name, source)
        else:
            fitting = _fitting(value, derived.type)
        fails = F.col(_FAILS) | (value.isNotNull() & fitting.isNull())
        records = computed.withColumns(
            {TYPED: F.struct(f"{TYPED}.*", fitting.alias(name)), failed(name): fails}
        ).drop(_VALUE, _FAILS)
    return records


def _fitting(value: Column, kind: str) -> Column:
    """A value in the column's type; null if it does not fit."""
    if kind in {"date", "timestamp"}:
        return in_years(value)
    return value if kind in _KINDS else _number(value, kind)


def _number(value: Column, kind: str) -> Column:
    """A number in the column's type; it must fit the type, as a text in a file must."""
    if kind == "double":
        # Adding 0.0 turns -0.0 into 0.0.
        return value.cast("double") + F.lit(0.0)
    return typed(value.cast("string"), kind)
