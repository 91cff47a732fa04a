"""What a file has wrong that is no YAML, in words for whoever wrote it."""

from __future__ import annotations

import re
from itertools import takewhile

import yaml

_GENERAL_CURE = "check the indentation (spaces, no tabs), colons and quotes there"
_NAME = re.compile(r"( *)[\w'\"-]+:(?=\s|$)")
_QUOTED = re.compile(r"'.*'", re.DOTALL)
_QUOTES = "put the value in quotes"
_SIGN = f"has a value with a sign of YAML's own in front; {_QUOTES}"
_NO_NAME = (
    "is no 'name: value'; write it so, with a blank after the colon, or indent it deeper than its "
    "name where it goes on from the line before"
)
_BRACKET = f"opens a bracket that line {{line}} does not fit into; close it before, or {_QUOTES}"
_LIST = "begins a list with '- ', and line {line} goes on as 'name: value'; leave '- ' out"
_ITEM = "begins with '- ', as a list's item does, among 'name: value' lines; leave '- ' out"
_MINUS = f"has a value that begins with '- ', as a list's item does; {_QUOTES}"
_SECOND = "begins a second document; leave '---' out: each pipeline has a file of its own"
_TAG = f"has a value with a tag in front (!name), or a single '='; {_QUOTES}"
_ESCAPE = "has a backslash in double quotes that begins no escape; take single quotes instead"
# Words of the parser; whether the mistake is where it began, not where it stopped; what to say
# instead, where '{line}' is where it stopped.
_TOLD = (
    ("could not find expected ':'", True, _NO_NAME),
    ("unexpected end of stream", True, "opens a quote that nothing closes; close it"),
    ("expected ',' or ", True, _BRACKET),
    ("but found '?'", True, _LIST),
    ("but found '-'", False, _ITEM),
    ("but found '<block sequence start>'", False, _ITEM),
    ("sequence entries are not allowed", False, _MINUS),
    ("character '\\t'", False, "has a tab where YAML takes spaces only; write spaces"),
    ("cannot start any token", False, _SIGN),
    ("expected a comment or a line break", True, _SIGN),
    ("expected chomping or indentation indicators", True, _SIGN),
    ("expected alphabetic or numeric character", True, _SIGN),
    ("found another document", False, _SECOND),
    ("could not determine a constructor", False, _TAG),
    ("unknown escape character", False, _ESCAPE),
    ("escape sequence of", False, _ESCAPE),
)


def yaml_mistake(error: yaml.MarkedYAMLError, text: str) -> str:
    """Where the mistake is, which may be before the parser stopped, what it is and the cure.

    Args:
        error: What the parser said; where it is none of the usual mistakes, its words stay.
        text: The file's text.

    Returns:
        ``line: column N: no YAML: what is wrong; cure``.
    """
    stopped, began = error.problem_mark, error.context_mark
    if stopped is None:
        return f"1: no YAML: {_without_values(error.problem)}; {_GENERAL_CURE}"
    mark, told = stopped, f"{_without_values(error.problem)}; {_GENERAL_CURE}"
    problem = error.problem or ""
    if "<scalar>" in problem:
        mark, told = _after_a_quote(stopped, text)
    elif "mapping values are not allowed" in problem or "<block mapping start>" in problem:
        told = _misplaced_name(stopped, text.splitlines())
    else:
        for said, is_at_begin, instead in _TOLD:
            if said in problem:
                mark = began if began is not None and is_at_begin else stopped
                told = instead.format(line=stopped.line + 1)
                break
    return f"{mark.line + 1}: column {mark.column + 1}: no YAML: {told}"


def _without_values(problem: str | None) -> str:
    """What the parser said without what it quotes: that may be a secret of the file's."""
    return _QUOTED.sub("'...'", problem or "is not readable")


def _after_a_quote(stopped: yaml.Mark, text: str) -> tuple[yaml.Mark, str]:
    """Text that follows a quoted one: too little is in quotes, or a line above closes none."""
    # No further than the parser came: what follows may be no tokens either.
    tokens = takewhile(lambda token: token.start_mark.index < stopped.index, yaml.scan(text))
    before = list(tokens)[-1]
    quoted = before.start_mark
    if not isinstance(before, yaml.ScalarToken) or before.plain:
        return stopped, _NO_NAME
    if quoted.line < before.end_mark.line:
        line = before.end_mark.line + 1
        return quoted, f"opens a quote that line {line} closes; close it where the value ends"
    return stopped, f"follows a closed quote; {_QUOTES} as a whole, in those of the other kind"


def _misplaced_name(stopped: yaml.Mark, lines: list[str]) -> str:
    """A 'name:' where none can be: within a value, or on a line that is indented like none."""
    own = _NAME.match(lines[stopped.line])
    if own is None or stopped.column not in (own.end(1), own.end() - 1):
        return f"has ': ' within a value; {_QUOTES}"
    indent = len(own[1])
    # The blocks that are open here: each line above that is indented less than all below it.
    blocks: dict[int, int] = {}
    for number in range(stopped.line - 1, -1, -1):
        above = _NAME.match(lines[number])
        if above is not None and (not blocks or len(above[1]) < min(blocks)):
            blocks[len(above[1])] = number + 1
    if not blocks:
        return "follows what is no 'name: value'; write that so, with a blank after the colon"
    if indent > max(blocks):
        line = blocks[max(blocks)]
        return f"is indented deeper than line {line}, which has a value already; indent both alike"
    known = ", or ".join(f"by {blanks} as line {line}" for blanks, line in blocks.items())
    return f"is indented by {indent}, as no block above it is; indent it {known}"
