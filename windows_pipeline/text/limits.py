"""Limits of users' input: files, texts that are parsed, and how much of them an error shows."""

from __future__ import annotations

from windows_pipeline.text.values import cut

MAX_TEXT = 2_000
"""The most characters of a text that is parsed: real names, types and rules are far shorter."""
_MOST_SHOWN = 60
MAX_DEPTH = 20
"""The most levels of a YAML file: a pipeline has six, such as windows, name, alerts, rule, when."""
MAX_ENTRIES = 2_000
"""The most entries of a mapping or list of a YAML file, such as columns or aggregates."""
MAX_VALUES = 10_000
"""The most names and values of a YAML file."""
MAX_VALUE_BYTES = 1_000
"""The most bytes of a landed number, time, date or boolean, as UTF-8."""
MAX_FILE_COLUMNS = {"CSV": 50_000, "Parquet": 5_000}
"""The most columns of a landed file; Spark plans for each column of a Parquet file."""
MAX_PARQUET_VALUE_BYTES = 16 << 20
"""The most bytes of a text or binary value in a landed Parquet file."""
MAX_PROBLEMS = 100
"""The most mistakes of a file that an error lists."""
TOO_LONG = f"is longer than {MAX_TEXT} characters; make it shorter"
"""The error text for a longer text."""


def shown(value: object, most: int = _MOST_SHOWN) -> str:
    """Returns a value for an error message: its repr, cut to `most` characters."""
    return cut(repr(value), most)


def require_short(text: object, name: str = "") -> None:
    """Refuses a text that is too long to be parsed.

    Args:
        text: The value; only a `str` can be too long.
        name: The name for the error; without a name the error leaves the value out as well.

    Raises:
        ValueError: The text has more than `MAX_TEXT` characters.
    """
    if isinstance(text, str) and len(text) > MAX_TEXT:
        raise ValueError(f"{name}: {shown(text)} {TOO_LONG}" if name else TOO_LONG)
