"""Regular expressions that a check may use: those that every engine reads in the same way.

A pipeline's file is validated by Python, and Spark matches by Java. Both read the forms listed
here alike, so an expression that loads can't fail in a run.
"""

from __future__ import annotations

import re

MOST_CHARACTERS = 200
"""The longest regular expression."""
_TOKEN = re.compile(
    r"""
    (?P<escape>\\([dDwWsSbBtnr]|[^A-Za-z0-9\s]))
    | (?P<open>\((\?:|(?!\?)))
    | (?P<close>\))
    | (?P<repeat>([*+?]|\{[0-9]{1,3}(,([0-9]{1,3})?)?\})\??)
    | (?P<set>\[\^?(\\([dDwWsStnr]|[^A-Za-z0-9\s])|(?!--|~~|\|\|)[^\]\[\\&])+\])
    | (?P<plain>[^\\()\[\]{}*+?])
    """,
    re.VERBOSE | re.DOTALL,
)
_FORMS = (
    "letters and signs, ., ^, $, |, [...], \\d, \\w, \\s, \\b, \\ before a sign, (...), (?:...), "
    "*, +, ? and {1,3}"
)


def require_portable(text: str) -> None:
    r"""Refuses a regular expression that is not one, or that engines may read differently.

    A group without a limit of repeats that itself holds a part without such a limit, as in
    ``(a+)+``, is refused as well: some texts would keep such an expression busy for years.

    Raises:
        ValueError: What is wrong, and the fix, without the text.
    """
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"is longer than {MOST_CHARACTERS} characters; make it shorter")
    if not text:
        raise ValueError("is empty; write a regular expression, as '^[A-Z]{3}$'")
    _require_forms(text)
    try:
        re.compile(text)
    except (re.error, OverflowError) as error:
        raise ValueError(
            f"is not a regular expression ({error}); correct it, or put \\ before a sign that "
            "stands for itself"
        ) from None


def _require_forms(text: str) -> None:
    """Reads the text form by form, with one flag for each open group: has it an endless part?"""
    position = 0
    endless = [False]
    last_is_endless = False
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            at = text[position : position + 10]
            raise ValueError(f"has {at!r}, which checks cannot use; use {_FORMS}")
        match token.lastgroup:
            case "open":
                endless.append(False)
            case "close" if len(endless) > 1:
                last_is_endless = endless.pop()
                endless[-1] |= last_is_endless
            case "repeat":
                is_endless = token[0][0] in "*+" or ",}" in token[0]
                if is_endless and last_is_endless:
                    raise ValueError(
                        "repeats without limit a group that itself repeats without limit, which "
                        "may take forever; write a limit, as in '{1,20}', for one of them"
                    )
                endless[-1] |= is_endless
        if token.lastgroup != "close":
            last_is_endless = False
        position = token.end()
