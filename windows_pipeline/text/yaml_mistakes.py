"""Explains why a file is not YAML, in words for the person who wrote it."""

from __future__ import annotations

import re
from itertools import takewhile

import yaml

_GENERAL_FIX = "check the indentation (spaces, no tabs), colons and quotes there"
_NAME = re.compile(r"( *)[\w'\"-]+:(?=\s|$)")
_QUOTED = re.compile(r"'.*'", re.DOTALL)
_QUOTES = "put the value in quotes"
_SIGN = f"has a value that begins with a special character of YAML; {_QUOTES}"
_NO_NAME = (
    "is not 'name: value'; write it so, with a blank after the colon, or, if the line before "
    "continues here, indent this line deeper"
)
_BRACKET = (
    f"opens a bracket that is still open at line {{line}}; close it before that line, or {_QUOTES}"
)
_LIST = "begins a list with '- ', but line {line} continues with 'name: value'; remove '- '"
_ITEM = "begins with '- ', like an item of a list, among 'name: value' lines; remove '- '"
_MINUS = f"has a value that begins with '- ', like an item of a list; {_QUOTES}"
_SECOND = "begins a second document; remove '---': each pipeline has a file of its own"
_TAG = f"has a value that begins with a tag (!name), or is a single '='; {_QUOTES}"
_ESCAPE = "has a backslash in double quotes that is not an escape; use single quotes instead"
# The parser's words; whether the mistake is where the parser began, not where it stopped; the
# text to report, in which '{line}' is the line where the parser stopped.
_EXPLANATIONS = (
    ("could not find expected ':'", True, _NO_NAME),
    ("unexpected end of stream", True, "opens a quote and never closes it; close it"),
    ("expected ',' or ", True, _BRACKET),
    ("but found '?'", True, _LIST),
    ("but found '-'", False, _ITEM),
    ("but found '<block sequence start>'", False, _ITEM),
    ("sequence entries are not allowed", False, _MINUS),
    ("character '\\t'", False, "has a tab where YAML allows spaces only; write spaces"),
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
    """Names the mistake, its position (which may precede the parser's position) and the fix.

    Args:
        error: The parser's error; a mistake that is not a usual one is reported in its words.
        text: The file's text.

    Returns:
        ``line: column N: not YAML: what is wrong; fix``.
    """
    stopped, began = error.problem_mark, error.context_mark
    if stopped is None:
        return f"1: not YAML: {_without_values(error.problem)}; {_GENERAL_FIX}"
    mark, explanation = stopped, f"{_without_values(error.problem)}; {_GENERAL_FIX}"
    problem = error.problem or ""
    if "<scalar>" in problem:
        mark, explanation = _after_a_quote(stopped, text)
    elif "mapping values are not allowed" in problem or "<block mapping start>" in problem:
        explanation = _misplaced_name(stopped, text.splitlines())
    else:
        for parser_words, is_at_begin, template in _EXPLANATIONS:
            if parser_words in problem:
                mark = began if began is not None and is_at_begin else stopped
                explanation = template.format(line=stopped.line + 1)
                break
    return f"{mark.line + 1}: column {mark.column + 1}: not YAML: {explanation}"


def _without_values(problem: str | None) -> str:
    """Removes quoted text from the parser's words: it may be a secret from the file."""
    return _QUOTED.sub("'...'", problem or "is not readable")


def _after_a_quote(stopped: yaml.Mark, text: str) -> tuple[yaml.Mark, str]:
    """Explains text after a closing quote: the value continues, or a quote above is open."""
    # Scanning past the parser's position could fail as well.
    tokens = takewhile(lambda token: token.start_mark.index < stopped.index, yaml.scan(text))
    before = list(tokens)[-1]
    quoted = before.start_mark
    if not isinstance(before, yaml.ScalarToken) or before.plain:
        return stopped, _NO_NAME
    if quoted.line < before.end_mark.line:
        line = before.end_mark.line + 1
        return quoted, f"opens a quote that line {line} closes; close it where the value ends"
    whole_value = f"{_QUOTES} as a whole, with the other kind of quote"
    return stopped, f"follows a closing quote; {whole_value}"


def _misplaced_name(stopped: yaml.Mark, lines: list[str]) -> str:
    """Explains a 'name:' within a value, or on a line whose indentation fits no block."""
    name = _NAME.match(lines[stopped.line])
    if name is None or stopped.column not in (name.end(1), name.end() - 1):
        return f"has ': ' within a value; {_QUOTES}"
    indent = len(name[1])
    # The open blocks, by indentation: a line above opens one if all lines after it are deeper.
    blocks: dict[int, int] = {}
    for number in range(stopped.line - 1, -1, -1):
        above = _NAME.match(lines[number])
        if above is not None and (not blocks or len(above[1]) < min(blocks)):
            blocks[len(above[1])] = number + 1
    if not blocks:
        return (
            "follows a line that is not 'name: value'; write that line so, with a blank after "
            "the colon"
        )
    if indent > max(blocks):
        line = blocks[max(blocks)]
        return (
            f"is indented deeper than line {line}, which already has a value; indent both equally"
        )
    known = ", or ".join(f"by {blanks} like line {line}" for blanks, line in blocks.items())
    return f"is indented by {indent}, but no block above it is; indent it {known}"
