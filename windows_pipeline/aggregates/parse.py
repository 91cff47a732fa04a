"""Aggregates by their text in a pipeline's file."""

from __future__ import annotations

import re
from difflib import get_close_matches

from windows_pipeline.aggregates.aggregate import Aggregate, Function
from windows_pipeline.text.limits import require_short

_CALL = re.compile(
    r"\s*(?P<function>\w+)\s*\(\s*(?P<column>\w+|\*)\s*"
    r"(,(?P<percentage>(?:[^()]|\([^()]*\))*))?\)\s*"
)
"""The second argument may be anything, so that it can be named where it is no number."""

_MEANT = {
    **dict.fromkeys(("mean", "average"), Function.AVG),
    **dict.fromkeys(("std", "stdev", "stddev_sampled"), Function.STDDEV),
    **dict.fromkeys(("var", "var_sample"), Function.VARIANCE),
    **dict.fromkeys(("minimum", "least"), Function.MIN),
    **dict.fromkeys(("maximum", "greatest"), Function.MAX),
    **dict.fromkeys(("nunique", "distinct", "approx_count_distinct"), Function.COUNT_DISTINCT),
    **dict.fromkeys(("quantile", "percentile_cont", "approx_percentile"), Function.PERCENTILE),
    **dict.fromkeys(("total", "add"), Function.SUM),
    **dict.fromkeys(("first_value", "earliest"), Function.FIRST),
    **dict.fromkeys(("last_value", "latest"), Function.LAST),
}
"""What other tools call these functions: a name to suggest, not to take."""
_SYNONYMS = {"var_samp": Function.VARIANCE, "stddev_samp": Function.STDDEV}


def parse_aggregate(name: str, text: str, *, takes_lists: bool = False) -> Aggregate:
    """Reads an aggregate from text such as 'avg(dep_delay)' or 'percentile(dep_delay, 0.95)'.

    Args:
        name: The result's column.
        text: The aggregate.
        takes_lists: Whether a result may be a list: a query's can, but no column of a pipeline's
            tables, nor what a rule compares.

    Raises:
        ValueError: No call of a function, an unknown one, or a text that is too long; names the
            value and the cure.
    """
    require_short(text, "aggregate")
    functions = [each for each in Function if takes_lists or each is not Function.COLLECT_LIST]
    known = ", ".join(functions)
    call = _CALL.fullmatch(text)
    if call is None:
        raise ValueError(
            f"{text!r} is no aggregate; write one as 'avg(column)', with one of {known}"
        )
    called = call["function"].lower()
    function = _SYNONYMS.get(called, called)
    if function == Function.COLLECT_LIST and not takes_lists:
        raise ValueError(
            f"{text!r} is a list, which no rule could compare; take one of {known} (lists are for "
            "DataFrames: windowed(...).agg(...) and sql)"
        )
    if function not in functions:
        meant = _MEANT.get(called) or next(iter(get_close_matches(called, functions, 1, 0.8)), "")
        cure = f"did you mean {str(meant)!r}? Else use" if meant else "use"
        raise ValueError(f"{text!r}: unknown aggregate {call['function']!r}; {cure} one of {known}")
    if call["column"] == "*":
        raise ValueError(
            f"{text!r}: how many records a window holds is there without asking, as record_count; "
            "leave it out, or name a column"
        )
    if call["percentage"] is not None and function != Function.PERCENTILE:
        raise ValueError(
            f"{text!r}: {function} takes one column; write '{function}({call['column']})', and "
            "an aggregate of its own for another column"
        )
    try:
        return Aggregate(name, Function(function), call["column"], _number(call["percentage"]))
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}, as in 'percentile(column, 0.95)'") from None


def _number(text: str | None) -> float | None:
    if text is None:
        return None
    text = text.strip()
    try:
        return float(text)
    except ValueError:
        raise ValueError(
            f"percentage: {text!r} is no number; write one from 0 to 1, for each percentile"
            " an aggregate"
        ) from None
