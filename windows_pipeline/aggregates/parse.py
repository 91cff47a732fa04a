"""Parses the text of aggregates, such as 'avg(dep_delay)'."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from windows_pipeline.aggregates.aggregate import Aggregate
from windows_pipeline.aggregates.function import Function
from windows_pipeline.aggregates.registry import FUNCTIONS, RECORD_COUNTS, SYNONYMS, meant
from windows_pipeline.aggregates.user_aggregate import UserAggregate
from windows_pipeline.aggregates.user_modules import UserModules
from windows_pipeline.text.limits import require_short
from windows_pipeline.text.problems import nearest

_VALUE = "_value_"
"""The prefix of the engine's column for an expression or a condition; a result's name follows."""
_NAME = re.compile(r"\w+")
_START = re.compile(r"\s*(\w+|[^\s():]*:[^\s():]*)\s*\(")
_CODE = re.compile(
    r"\s*(?P<reference>[^\s():]+:[^\s():]+)\s*(\(\s*\)\s*)?(?P<rest>where\b.*)?",
    re.IGNORECASE | re.DOTALL,
)
"""Matches 'my_module:spread' and 'my_module:spread()', which lack a column."""
_DOTTED = re.compile(r"\s*(?P<module>\w+)\.(?P<name>\w+)\s*\((?P<rest>.*)", re.DOTALL)
"""Matches 'my_module.spread(price)', which has a point for the colon."""
_WORD = re.compile(r"\s*(\w+)")
_AFTER = ("where", "over")
"""What may follow a call."""
_NO_MODULES = UserModules()
_REST = re.compile(r"\s*(where\b(?P<condition>.*))?", re.IGNORECASE | re.DOTALL)
_OVER = re.compile(r"(?P<call>.*\S)\s+over\s+(?P<frame>\w+)\s*", re.IGNORECASE | re.DOTALL)
_OVER_FIRST = re.compile(
    r"(?P<call>.*\S)\s+over\s+(?P<frame>\w+)\s+(?P<condition>where\b.*)", re.IGNORECASE | re.DOTALL
)
_FILTER = re.compile(r"\s*filter\s*\(\s*where\b(?P<condition>.*)\)\s*", re.IGNORECASE | re.DOTALL)
_QUOTES = "'\"`"
_NO_CALL = re.compile(
    r"\s*(?P<function>[a-z]\w*)(\s+(?P<column>[a-z]\w*)|\s*\(\s*\))?\s*", re.IGNORECASE
)
"""Matches 'mean', 'mean delay' and 'mean()', which lack parentheses or a column."""
_COUNT_WHERE = re.compile(r"\s*count\s+(?P<condition>where\b.*)", re.IGNORECASE | re.DOTALL)
_DISTINCT = re.compile(
    r"\s*count\s*\(\s*distinct\s*[\s(]\s*(?P<column>\w+)[\s)]*\)\s*", re.IGNORECASE
)
_RECORD_COUNT = (
    "every result already has the number of records, as record_count; leave this aggregate out, "
    "or name a column"
)


@dataclass(frozen=True, slots=True)
class _Call:
    """The parts of a call as the text writes them.

    Attributes:
        function: The function's name.
        arguments: The arguments.
        condition: The text after `where`; None without it.
        filtered: The condition of SQL's `filter (where ...)`, which is an error here.
    """

    function: str
    arguments: list[str]
    condition: str | None
    filtered: str | None = None


def parse_aggregate(
    name: str, text: str, modules: UserModules = _NO_MODULES, *, frames: bool = False
) -> Aggregate:
    """Parses an aggregate such as 'avg(dep_delay)' or 'sum(price * quantity) where price > 0'.

    An aggregate of an expression, or with a condition, takes a column that the caller computes;
    its name begins with `_value_`.

    Args:
        name: The result's column.
        text: The aggregate. Its expression and its condition are not parsed.
        modules: Where a user's aggregate, such as `my_module:spread(price)`, comes from.
        frames: Whether the text may end with `over NAME`, the name of a frame.

    Raises:
        ValueError: The text is not the call of a known function, or is too long; the message
            has the text and the fix.
    """
    require_short(text, "aggregate")
    named = _OVER.fullmatch(text) if frames else None
    call = text if named is None else named["call"]
    try:
        aggregate = _parsed(name, call, modules, counts_rows=named is not None)
    except ValueError as error:
        turned = _OVER_FIRST.fullmatch(text) if frames else None
        if turned is not None:
            fix = f"{turned['call']} {turned['condition'].strip()} over {turned['frame']}"
            raise ValueError(f"{text!r} has its condition after the frame; write {fix!r}") from None
        if named is None:
            raise
        raise ValueError(f"{text!r}: {str(error).removeprefix(repr(call)).lstrip(': ')}") from None
    return aggregate if named is None else replace(aggregate, over=named["frame"])


def _parsed(name: str, text: str, modules: UserModules, *, counts_rows: bool) -> Aggregate:
    """See `parse_aggregate`; `counts_rows` is whether `count()` needs no condition."""
    call = _call(text, counts_rows=counts_rows)
    if call is None:
        raise ValueError(_not_a_call(text))
    function, argument = _function(text, call, modules), str(call.arguments[0])
    if call.filtered is not None:
        plain = f"{function.name}({', '.join(call.arguments)})"
        fix = f"{plain} where {call.filtered.strip()}"
        raise ValueError(f"{text!r} is not an aggregate; write {fix!r}")
    counts = function.counts_records and (counts_rows or call.condition is not None)
    if argument in ("", "*") and not counts:
        if isinstance(function, UserAggregate):
            raise ValueError(_no_column(text, call.function, call.condition))
        raise ValueError(f"{text!r}: {_RECORD_COUNT}")
    second = ", ".join(call.arguments[1:]) or None
    if second is not None and function.second is None:
        fix = f"'{function.name}({argument})', and a second aggregate for another column"
        if isinstance(function, UserAggregate):
            fix = f"'{function.name}(struct({', '.join(call.arguments)}))' for a value of them all"
        raise ValueError(f"{text!r}: {function.name} takes one column; write {fix}")
    takes_by = function.second == "by"
    if takes_by and len(call.arguments) > 2:
        raise ValueError(
            f"{text!r}: {function.name} takes two columns; write "
            f"'{function.name}({argument}, {call.arguments[1]})'"
        )
    is_plain = not takes_by and call.condition is None and _NAME.fullmatch(argument) is not None
    column = argument if is_plain else f"{_VALUE}{name}"
    written = None if is_plain else argument or "*"
    try:
        if takes_by:
            return Aggregate(name, function, column, None, written, call.condition, by=second)
        return Aggregate(name, function, column, _number(second), written, call.condition)
    except ValueError as error:
        example = "" if takes_by else ", as in 'percentile(column, 0.95)'"
        raise ValueError(f"{text!r}: {error}{example}") from None


def split_arguments(text: str) -> list[str]:
    """Splits a text at the commas outside parentheses, brackets and quotes."""
    parts, depth, start = [], 0, 0
    for index, character in _outside_quotes(text):
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    return [*parts, text[start:].strip()]


def _call(text: str, *, counts_rows: bool) -> _Call | None:
    """Splits a text into the parts of a call; None if the text is not a call."""
    start = _START.match(text)
    if start is None or _DISTINCT.fullmatch(text):
        return None
    inside = text[start.end() :]
    end = _closing(inside)
    if end is None:
        return None
    arguments, after = split_arguments(inside[:end]), inside[end + 1 :]
    filtered = _FILTER.fullmatch(after)
    if filtered:
        return _Call(start[1], arguments, None, filtered["condition"])
    rest = _REST.fullmatch(after)
    if rest is None or (arguments == [""] and rest["condition"] is None and not counts_rows):
        return None
    condition = rest["condition"]
    return _Call(start[1], arguments, condition if condition is None else condition.strip())


def _closing(text: str) -> int | None:
    """The position of the parenthesis that closes one before the text; None without it."""
    depth = 1
    for index, character in _outside_quotes(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return index
    return None


def _outside_quotes(text: str) -> Iterator[tuple[int, str]]:
    """The characters of a text that are not within quotes, with their positions."""
    quote = ""
    for index, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in _QUOTES:
            quote = character
        else:
            yield index, character


def _function(text: str, call: _Call, modules: UserModules) -> Function | UserAggregate:
    if ":" in call.function:
        try:
            return modules.aggregate(call.function)
        except ValueError as error:
            raise ValueError(f"{text!r}: {error}") from None
    called = call.function.lower()
    function = FUNCTIONS.get(called) or SYNONYMS.get(called)
    if function is None:
        similar = meant(called, call.arguments[0])
        fix = f"did you mean {similar!r}? Otherwise use" if similar else "use"
        known = ", ".join(FUNCTIONS)
        raise ValueError(f"{text!r}: unknown aggregate {call.function!r}; {fix} one of {known}")
    return function


def _not_a_call(text: str) -> str:
    """Returns the error about a text that is not a call with one column."""
    distinct = _DISTINCT.fullmatch(text)
    if distinct:
        return f"{text!r} is not an aggregate; write 'count_distinct({distinct['column']})'"
    code = _CODE.fullmatch(text)
    if code:
        condition = (code["rest"] or "")[len("where") :].strip()
        return _no_column(text, code["reference"], condition or None)
    dotted = _DOTTED.fullmatch(text)
    if dotted:
        meant_call = f"{dotted['module']}:{dotted['name']}({dotted['rest']}"
        return f"{text!r} is not an aggregate; did you mean {meant_call!r}?"
    count = _COUNT_WHERE.fullmatch(text)
    if count:
        fix = f"count() {count['condition'].strip()}"
        return f"{text!r} is not an aggregate; write {fix!r}"
    after = _after_call(text)
    if after is not None:
        return f"{text!r} has {after!r} after the call; {_after_fix(after)}"
    written = _NO_CALL.fullmatch(text)
    name = "" if written is None else written["function"].lower()
    if written is not None and written["column"] is None and name in RECORD_COUNTS:
        return f"{text!r} is not an aggregate: {_RECORD_COUNT}, as in 'count(column)'"
    column = (written and written["column"]) or "column"
    similar = meant(name, column) if name else None
    if similar:
        call = similar if "(" in similar else f"{similar}({column})"
        return f"{text!r} is not an aggregate; did you mean {call!r}?"
    known = ", ".join(FUNCTIONS)
    return f"{text!r} is not an aggregate; write it as 'avg(column)', with one of {known}"


def _no_column(text: str, reference: str, condition: str | None) -> str:
    """Returns the error about a user's aggregate without a column."""
    call = f"{reference}(column)" + ("" if condition is None else f" where {condition}")
    return f"{text!r} names no column; write {call!r}"


def _after_call(text: str) -> str | None:
    """The first word after the call of a known function; None where there is no such word."""
    start = _START.match(text)
    end = None if start is None else _closing(text[start.end() :])
    if start is None or end is None:
        return None
    word = _WORD.match(text[start.end() + end + 1 :])
    known = ":" in start[1] or start[1].lower() in {*FUNCTIONS, *SYNONYMS}
    return word[1] if known and word is not None and word[1].lower() not in _AFTER else None


def _after_fix(word: str) -> str:
    fix = "write 'where' and a condition there, or nothing"
    return nearest(word.lower(), _AFTER, fix)


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
