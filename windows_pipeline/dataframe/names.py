"""No two columns of a result have one name: each refusal names the argument and the fix."""

from __future__ import annotations

import re
from collections.abc import Sequence

from windows_pipeline.aggregates import Aggregate

RESERVED = "_"
"""How each column begins that the engine adds while it computes."""
_NAME = re.compile(r"\w+")
_QUOTED = re.compile("`((?:[^`]|``)*)`")


def split_name(text: str) -> tuple[str, str | None]:
    """What stands before a final ' as name', in any case, and that name; None where none does."""
    parts = text.rsplit(None, 2)
    if len(parts) == 3 and parts[1].lower() == "as" and _NAME.fullmatch(parts[2]):
        return parts[0].strip(), parts[2]
    return text.strip(), None


def unquoted(name: str) -> str:
    """A column's name as it is, without the backticks that it is written in: a.b for `a.b`."""
    return _QUOTED.sub(lambda part: part[1].replace("``", "`"), name)


def quoted(name: str) -> str:
    """A column's name as Spark finds it: in backticks where a point in it would say otherwise."""
    return "`{}`".format(name.replace("`", "``")) if set(name) & set(".`") else name


def require_once(argument: str, names: Sequence[str], fix: str) -> None:
    """Refuses a name that comes twice.

    Args:
        argument: Where they stand.
        names: The names.
        fix: What to do about it, the end of a sentence.

    Raises:
        ValueError: Names it.
    """
    seen: set[str] = set()
    for name in names:
        # Spark does not tell names apart by case.
        if name.lower() in seen:
            raise ValueError(f"{argument}: {name!r} comes twice; {fix}")
        seen.add(name.lower())


def require_results(by: Sequence[str], own: Sequence[str], aggregates: Sequence[Aggregate]) -> None:
    """Refuses a key or an aggregate that has another column's name in the result.

    Args:
        by: The key's columns.
        own: The columns that the result has anyway.
        aggregates: The aggregates.

    Raises:
        ValueError: Names it.
    """
    require_once("by", by, "name each column of the key once")
    require_apart("by", by, own)
    taken = {name.lower() for name in (*by, *own)}
    for one in aggregates:
        if one.name.lower() in taken:
            raise ValueError(
                f"aggregates: {one.name!r} would be the name of two columns of the result; give "
                f"{one} another with .alias('...')"
            )
        if one.name.startswith(RESERVED):
            raise ValueError(
                f"aggregates: a result's name must not begin with {RESERVED!r}, and {one.name!r} "
                f"does; give {one} another name with .alias('...')"
            )
        taken.add(one.name.lower())


def require_apart(argument: str, columns: Sequence[str], own: Sequence[str]) -> None:
    """Refuses a column of the user's that has the name of one that the result has anyway.

    Raises:
        ValueError: Names it.
    """
    taken = {name.lower() for name in own}
    for name in columns:
        if name.lower() in taken:
            raise ValueError(
                f"{argument}: {name!r} is a column that the result has of its own; rename yours "
                f"before, as with events.withColumnRenamed({name!r}, 'own_{name}')"
            )
