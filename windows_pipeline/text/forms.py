"""Forms of texts: a pattern of times, or the signs within numbers (rule A6)."""

from __future__ import annotations

import re
from typing import NamedTuple

from windows_pipeline.text.limits import require_short

_TWO, _ONE_OR_TWO = "([0-9]{2})", "([0-9]{1,2})"
_FRACTIONS = {"S" * most: f"([0-9]{{1,{most}}})" for most in range(1, 7)}
_PARTS = {
    "yyyy": ("year", "([0-9]{4})"),
    "MM": ("month", _TWO),
    "M": ("month", _ONE_OR_TWO),
    "dd": ("day", _TWO),
    "d": ("day", _ONE_OR_TWO),
    "HH": ("hour", _TWO),
    "H": ("hour", _ONE_OR_TWO),
    "hh": ("hour", "(0[1-9]|1[0-2])"),
    "h": ("hour", "(0?[1-9]|1[0-2])"),
    "mm": ("minute", _TWO),
    "ss": ("second", _TWO),
    **{letters: ("fraction", digits) for letters, digits in _FRACTIONS.items()},
    "a": ("AM or PM", "([AaPp])[Mm]"),
    "XXX": ("offset", "(Z|[+-][0-9]{2}:[0-9]{2})"),
}
"""The parts of a pattern, by Spark's letters: what each is, and the texts that it takes."""
_NEEDS = {
    "hour": "minute",
    "minute": "hour",
    "second": "minute",
    "fraction": "second",
    "offset": "minute",
}
_VARIABLE = {"M", "d", "H", "h", *_FRACTIONS}
_PIECE = re.compile(
    r"'(?P<quoted>(?:[^']|'')*)'|(?P<letters>([A-Za-z])\3*)|(?P<sign>[^\[\]{}#'0-9])"
)
_ESCAPED = re.compile(r"([!-/:-@\[-`{-~])")
_LETTERS = "yyyy, MM, M, dd, d, HH, H, mm, ss, S to SSSSSS, hh or h with a, and XXX for an offset"
_ALSO = {" ": " \u00a0\u202f", "'": "'\u2019"}
"""The signs for which others stand, too: blanks that break no line, the typographic apostrophe."""
_NO_NUMBER = "(?i:nan|[+-]?inf(?:inity)?)"
_OF_HALF_DAYS = (
    ("T12(:.*)[Aa]$", "T00$1"),
    *((f"T0?{hour}(:.*)[Pp]$", f"T{hour + 12}$1") for hour in range(1, 12)),
    ("[AaPp]$", ""),
)
"""What turns an hour of a half day, with the letter A or P at the end, into one of the day."""


class TextForm(NamedTuple):
    """The texts of a form, and how to write them as ISO 8601, or as a number with a point.

    Attributes:
        pattern: A regular expression, of Java and of RE2, that all texts of the form match.
        replaced: Regular expressions, each with what takes the place of all its matches.
    """

    pattern: str
    replaced: tuple[tuple[str, str], ...]


def form_of(time_format: str | None, decimal: str | None, thousands: str | None) -> TextForm | None:
    """The form of a column's texts, by the fields of the column; None for the forms of types."""
    if time_format is not None:
        return time_form(time_format)
    if decimal is None and thousands is None:
        return None
    return number_form(decimal or ".", thousands or "")


def time_form(pattern: str) -> TextForm:
    """The form of times that a pattern describes, in the letters of Spark's datetime patterns.

    Raises:
        ValueError: It is no such pattern; the message says what is wrong, and the fix.
    """
    require_short(pattern)
    regex, groups, used = "", dict[str, int](), [""]
    position = 0
    while position < len(pattern):
        piece = _PIECE.match(pattern, position)
        if piece is None:
            raise ValueError(
                f"has {pattern[position]!r}, which has no meaning here; put a text into two "
                "single quotes, as in yyyy-MM-dd'T'HH:mm"
            )
        position, letters = piece.end(), piece["letters"] or ""
        if not letters:
            text = piece["sign"] or piece["quoted"].replace("''", "'") or "'"
            regex += _ESCAPED.sub(r"\\\1", text)
        elif letters not in _PARTS:
            raise ValueError(f"has {letters!r}, which is no exact part of a time; use {_LETTERS}")
        else:
            part, taken = _PARTS[letters]
            if part in groups:
                raise ValueError(f"has the {part} twice; write it once")
            if used[-1] in _VARIABLE and letters not in ("a", "XXX"):
                raise ValueError(
                    f"has {letters!r} right after {used[-1]!r}, which takes one digit or more, so "
                    "that a text has several readings; put a sign between the two"
                )
            groups[part] = len(groups) + 1
            regex += taken
        used.append(letters)
    for needed in ("year", "month", "day", *(_NEEDS[part] for part in groups if part in _NEEDS)):
        if needed not in groups:
            raise ValueError(f"has no {needed}, without which a text is no exact time; add it")
    if ("a" in used) != ("hh" in used or "h" in used):
        raise ValueError("has an hour of half a day or AM and PM alone; write hh with a, or HH")
    whole = rf"^\s*{regex}\s*$"
    return TextForm(
        whole, ((whole, _iso(groups)), *(_OF_HALF_DAYS if "AM or PM" in groups else ()))
    )


def _iso(groups: dict[str, int]) -> str:
    """The text in ISO 8601, of a match's groups."""
    at = {part: f"${group}" for part, group in groups.items()}
    text = f"{at['year']}-{at['month']}-{at['day']}"
    if "minute" in at:
        text += f"T{at['hour']}:{at['minute']}:{at.get('second', '00')}"
        text += f".{at['fraction']}" if "fraction" in at else ""
    return text + at.get("offset", "") + at.get("AM or PM", "")


def number_form(decimal: str, thousands: str) -> TextForm:
    """The form of numbers with these signs; a number has all its signs between thousands or none.

    Args:
        decimal: The sign before the digits after the point.
        thousands: The sign between thousands; empty for none.
    """
    point, comma = f"[{decimal}]", f"[{_ALSO.get(thousands, thousands)}]"
    grouped = f"[0-9]{{1,3}}(?:{comma}[0-9]{{3}})+|" if thousands else ""
    digits = f"[+-]?(?:{grouped}[0-9]*)(?:{point}[0-9]*)?(?:[eE][+-]?[0-9]+)?"
    without = ((comma, ""),) if thousands else ()
    return TextForm(rf"^\s*(?:{digits}|{_NO_NUMBER})\s*$", (*without, (point, ".")))
