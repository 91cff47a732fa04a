"""Parses the text of aggregates, such as 'avg(dep_delay)'."""

from __future__ import annotations

import re
from difflib import get_close_matches

from windows_pipeline.aggregates.aggregate import Aggregate, Function
from windows_pipeline.text.limits import require_short

_CALL = re.compile(
    r"\s*(?P<function>\w+)\s*\(\s*(?P<column>\w+|\*)\s*"
    r"(,(?P<percentage>(?:[^()]|\([^()]*\))*))?\)\s*"
)
"""Matches any second argument, so that the error can name one that is not a number."""

_OTHER_NAMES = {
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
"""Names of these functions in other tools: errors suggest ours, as these are not accepted."""
_SYNONYMS = {"var_samp": Function.VARIANCE, "stddev_samp": Function.STDDEV}


def parse_aggregate(name: str, text: str, *, takes_lists: bool = False) -> Aggregate:
    """Parses an aggregate such as 'avg(dep_delay)' or 'percentile(dep_delay, 0.95)'.

    Args:
        name: The result's column.
        text: The aggregate.
        takes_lists: Whether a result may be a list, as in a query. Columns of a pipeline's
            tables cannot be lists, as no rule can compare them.

    Raises:
        ValueError: The text is not the call of a known function, or is too long; the message
            has the text and the fix.
    """
    require_short(text, "aggregate")
    functions = [
        function for function in Function if takes_lists or function is not Function.COLLECT_LIST
    ]
    known = ", ".join(functions)
    call = _CALL.fullmatch(text)
    if call is None:
        raise ValueError(
            f"{text!r} is not an aggregate; write it as 'avg(column)', with one of {known}"
        )
    called = call["function"].lower()
    function = _SYNONYMS.get(called, called)
    if function == Function.COLLECT_LIST and not takes_lists:
        raise ValueError(
            f"{text!r} is a list, which rules cannot compare; use one of {known} "
            "(windowed(...).agg(...) and sql take lists)"
        )
    if function not in functions:
        similar = next(iter(get_close_matches(called, functions, 1, 0.8)), "")
        meant = _OTHER_NAMES.get(called) or similar
        fix = f"did you mean {str(meant)!r}? Otherwise use" if meant else "use"
        raise ValueError(f"{text!r}: unknown aggregate {call['function']!r}; {fix} one of {known}")
    if call["column"] == "*":
        raise ValueError(
            f"{text!r}: every result already has the number of records, as record_count; leave "
            "this aggregate out, or name a column"
        )
    if call["percentage"] is not None and function != Function.PERCENTILE:
        raise ValueError(
            f"{text!r}: {function} takes one column; write '{function}({call['column']})', and "
            "a second aggregate for another column"
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
            f"percentage: {text!r} is not a number; write one from 0 to 1, and one aggregate for "
            "each percentile"
        ) from None
