"""Keeps the column names of a result unique: each error names the argument and the fix."""

from __future__ import annotations

import re
from collections.abc import Sequence

from windows_pipeline.aggregates import Aggregate

RESERVED = "_"
"""The prefix of the columns that the engine adds while it computes; no result's name has it."""
_NAME = re.compile(r"\w+")
_QUOTED = re.compile("`((?:[^`]|``)*)`")


def split_name(text: str) -> tuple[str, str | None]:
    """Splits a final ' as name' (in any case) off a text; the name is None if there is none."""
    parts = text.rsplit(None, 2)
    if len(parts) == 3 and parts[1].lower() == "as" and _NAME.fullmatch(parts[2]):
        return parts[0].strip(), parts[2]
    return text.strip(), None


def unquoted(name: str) -> str:
    """A column's name without the backticks of its SQL form: a.b for `a.b`."""
    return _QUOTED.sub(lambda part: part[1].replace("``", "`"), name)


def quoted(name: str) -> str:
    """A column's name in SQL: in backticks if it contains a dot or a backtick."""
    return "`{}`".format(name.replace("`", "``")) if set(name) & set(".`") else name


def require_once(argument: str, names: Sequence[str], fix: str) -> None:
    """Requires that names are unique, regardless of case.

    Args:
        argument: The argument that contains the names.
        names: The names.
        fix: What to do about a repeated name; the end of the error's sentence.

    Raises:
        ValueError: A name occurs twice.
    """
    seen: set[str] = set()
    for name in names:
        # Spark compares names regardless of case.
        if name.lower() in seen:
            raise ValueError(f"{argument}: {name!r} comes twice; {fix}")
        seen.add(name.lower())


def require_results(
    by: Sequence[str], fixed: Sequence[str], aggregates: Sequence[Aggregate]
) -> None:
    """Requires that the columns of a result have unique names.

    Args:
        by: The key's columns.
        fixed: The columns that every result of these windows has.
        aggregates: The aggregates.

    Raises:
        ValueError: A key or an aggregate has the name of another column, or an aggregate's name
            begins with the reserved prefix.
    """
    require_once("by", by, "name each column of the key once")
    require_apart("by", by, fixed)
    taken = {name.lower() for name in (*by, *fixed)}
    for aggregate in aggregates:
        fix = f"give {aggregate} another name with .alias('...')"
        if aggregate.name.lower() in taken:
            raise ValueError(
                f"aggregates: {aggregate.name!r} would be the name of two columns of the result; "
                f"{fix}"
            )
        require_unreserved("aggregates", [aggregate.name], fix)
        taken.add(aggregate.name.lower())


def require_unreserved(argument: str, results: Sequence[str], fix: str) -> None:
    """Requires that no result's name begins with the reserved prefix.

    Args:
        argument: The argument that contains the names.
        results: The names.
        fix: What to do about such a name; the end of the error's sentence.

    Raises:
        ValueError: A name begins with the reserved prefix.
    """
    for name in results:
        if name.startswith(RESERVED):
            raise ValueError(
                f"{argument}: a result's name must not begin with {RESERVED!r}, but {name!r} "
                f"does; {fix}"
            )


def require_apart(argument: str, columns: Sequence[str], fixed: Sequence[str]) -> None:
    """Requires that no user's column has the name of a fixed column of the result.

    Raises:
        ValueError: A column has the name of a fixed column.
    """
    taken = {name.lower() for name in fixed}
    for name in columns:
        if name.lower() in taken:
            raise ValueError(
                f"{argument}: must not name {name!r}, because the result has a fixed column of "
                f"this name; rename yours before, as with "
                f"events.withColumnRenamed({name!r}, 'my_{name}')"
            )
