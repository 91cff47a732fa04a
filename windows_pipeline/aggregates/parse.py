"""Parses the text of aggregates, such as 'avg(dep_delay)'."""

from __future__ import annotations

import re
from collections.abc import Collection

from windows_pipeline.aggregates.aggregate import Aggregate, Function
from windows_pipeline.aggregates.other_names import RECORD_COUNTS, meant
from windows_pipeline.text.limits import require_short

_CALL = re.compile(
    r"\s*(?P<function>\w+)\s*\(\s*(?P<column>\w+|\*)\s*"
    r"(,(?P<percentage>(?:[^()]|\([^()]*\))*))?\)\s*"
)
"""Matches any second argument, so that the error can name one that is not a number."""
_NO_CALL = re.compile(
    r"\s*(?P<function>[a-z]\w*)(\s+(?P<column>[a-z]\w*)|\s*\(\s*\))?\s*", re.IGNORECASE
)
"""Matches 'mean', 'mean delay' and 'mean()', which lack parentheses or a column."""
_DISTINCT = re.compile(
    r"\s*count\s*\(\s*distinct\s*[\s(]\s*(?P<column>\w+)[\s)]*\)\s*", re.IGNORECASE
)
_RECORD_COUNT = (
    "every result already has the number of records, as record_count; leave this aggregate out, "
    "or name a column"
)
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
        raise ValueError(_not_a_call(text, functions))
    called = call["function"].lower()
    function = _SYNONYMS.get(called, called)
    if function == Function.COLLECT_LIST and not takes_lists:
        raise ValueError(
            f"{text!r} is a list, which rules cannot compare; use one of {known} "
            "(windowed(...).agg(...) and sql take lists)"
        )
    if function not in functions:
        similar = meant(called, call["column"], functions)
        fix = f"did you mean {similar!r}? Otherwise use" if similar else "use"
        raise ValueError(f"{text!r}: unknown aggregate {call['function']!r}; {fix} one of {known}")
    if call["column"] == "*":
        raise ValueError(f"{text!r}: {_RECORD_COUNT}")
    if call["percentage"] is not None and function != Function.PERCENTILE:
        raise ValueError(
            f"{text!r}: {function} takes one column; write '{function}({call['column']})', and "
            "a second aggregate for another column"
        )
    try:
        return Aggregate(name, Function(function), call["column"], _number(call["percentage"]))
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}, as in 'percentile(column, 0.95)'") from None


def _not_a_call(text: str, functions: Collection[Function]) -> str:
    """Returns the error about a text that is not a call with one column."""
    distinct = _DISTINCT.fullmatch(text)
    if distinct:
        return f"{text!r} is not an aggregate; write 'count_distinct({distinct['column']})'"
    written = _NO_CALL.fullmatch(text)
    name = "" if written is None else written["function"].lower()
    if written is not None and written["column"] is None and name in RECORD_COUNTS:
        return f"{text!r} is not an aggregate: {_RECORD_COUNT}, as in 'count(column)'"
    column = (written and written["column"]) or "column"
    similar = meant(name, column, functions) if name else None
    if similar:
        call = similar if "(" in similar else f"{similar}({column})"
        return f"{text!r} is not an aggregate; did you mean {call!r}?"
    known = ", ".join(functions)
    return f"{text!r} is not an aggregate; write it as 'avg(column)', with one of {known}"


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
