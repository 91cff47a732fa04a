"""Checks row windows against the columns of a DataFrame (rule F3)."""

from __future__ import annotations

from collections.abc import Sequence

from windows_pipeline.windows.frames.row_windows import RowWindow


def require_distinct_aliases(windows: Sequence[RowWindow]) -> None:
    """Checks that several windows have different aliases.

    Raises:
        ValueError: There is no window, one of several has no alias, or two have the same alias.
    """
    if not windows:
        raise ValueError("windows: must hold at least one window, not none; pass one")
    if len(windows) == 1:
        return
    seen: set[str] = set()
    for window in windows:
        if window.name is None:
            raise ValueError(
                f"{window.label}: each of several windows needs a name; add .alias('w')"
            )
        if window.name.lower() in seen:
            raise ValueError(
                f"{window.label}: another window has the same alias; use different aliases"
            )
        seen.add(window.name.lower())


def require_fitting(
    window: RowWindow,
    columns: Sequence[str],
    by: Sequence[str],
    arrival: Sequence[str],
    results: Sequence[str],
) -> None:
    """Checks that the DataFrame has a window's columns, and that its results hide no column.

    Args:
        window: The window.
        columns: The columns of the DataFrame, and those that other windows have added.
        by: The columns of the key.
        arrival: The columns that order arrival.
        results: The names of the aggregates' results.

    Raises:
        ValueError: A column is missing, a name is in use already, or a frame is always empty.
    """
    _require_rows(window)
    # Spark ignores the case of column names.
    known = [name.lower() for name in columns]
    duplicates = {name for name in known if known.count(name) > 1}
    if duplicates:
        raise ValueError(f"column {min(duplicates)!r} occurs twice; rename one of them")
    _require_time(window, known, columns)
    for argument, names in (("by", by), ("arrival", arrival)):
        for name in names:
            _require_known(f"{argument}: {name!r}", name, known, columns)
    _require_arrival(window, arrival)
    if window.name is not None:
        if window.name.lower() in known:
            raise ValueError(
                f"{window.label}: the alias hides the column of that name; use another alias"
            )
        known.append(window.name.lower())
    for name in results:
        if name.lower() in known:
            raise ValueError(
                f"{window.label}: the result {name!r} hides a column or another result; "
                "rename it with alias"
            )
        known.append(name.lower())


def _require_rows(window: RowWindow) -> None:
    try:
        window.require_rows()
    except ValueError as error:
        raise ValueError(f"{window.label}: {error}") from None


def _require_time(window: RowWindow, known: Sequence[str], columns: Sequence[str]) -> None:
    if window.time_column is not None:
        column = window.time_column
        _require_known(f"{window.label}: the time column {column!r}", column, known, columns)
    elif window.by_time:
        raise ValueError(
            f"{window.label}: a window by time needs a time column; name it with .on('ts')"
        )


def _require_arrival(window: RowWindow, arrival: Sequence[str]) -> None:
    reason = window.why_arrival
    if reason is None or arrival:
        return
    raise ValueError(f"{window.label}: {reason}; name the arrival column with .arrival('offset')")


def _require_known(label: str, name: str, known: Sequence[str], columns: Sequence[str]) -> None:
    if name.lower() not in known:
        raise ValueError(f"{label} is not a column; use one of {', '.join(columns)}")
