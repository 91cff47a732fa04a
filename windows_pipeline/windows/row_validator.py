"""What no row window may be asked of a DataFrame: each refusal names what and where (rule F3)."""

from __future__ import annotations

from collections.abc import Sequence

from windows_pipeline.windows.row_bounds import FrameUnit
from windows_pipeline.windows.row_windows import RowWindow, SessionRows, SlideRows, TumbleRows


def require_apart(windows: Sequence[RowWindow]) -> None:
    """Refuses several windows that cannot be told apart by their aliases.

    Raises:
        ValueError: No window, one of several without an alias, or an alias twice.
    """
    if not windows:
        raise ValueError("windows: there is none; pass at least one")
    if len(windows) == 1:
        return
    seen: set[str] = set()
    for window in windows:
        if window.name is None:
            raise ValueError(
                f"{window.label}: one of several windows needs a name; give it .alias('w')"
            )
        if window.name.lower() in seen:
            raise ValueError(f"{window.label}: the alias is another window's too; choose one each")
        seen.add(window.name.lower())


def require_fitting(
    window: RowWindow,
    columns: Sequence[str],
    by: Sequence[str],
    arrival: Sequence[str],
    results: Sequence[str],
) -> None:
    """Refuses a window that the columns do not serve, or whose names hide others.

    Args:
        window: The window.
        columns: What the DataFrame has, with what other windows have added.
        by: The columns of the key.
        arrival: The columns that order arrival.
        results: The names of the aggregates' results.

    Raises:
        ValueError: A missing column, a name that is there already, or a frame without rows.
    """
    if isinstance(window, SlideRows):
        _require_rows(window)
    # Spark does not tell names apart by case.
    known = [name.lower() for name in columns]
    twice = {name for name in known if known.count(name) > 1}
    if twice:
        raise ValueError(f"column {min(twice)!r} is there twice; rename one")
    _require_time(window, known, columns)
    for argument, names in (("by", by), ("arrival", arrival)):
        for name in names:
            _require_known(f"{argument}: {name!r}", name, known, columns)
    _require_arrival(window, arrival)
    if window.name is not None:
        if window.name.lower() in known:
            raise ValueError(f"{window.label}: the alias hides the column of that name; choose one")
        known.append(window.name.lower())
    for name in results:
        if name.lower() in known:
            raise ValueError(
                f"{window.label}: the result {name!r} hides a column or a result of that name; "
                "rename it with alias"
            )
        known.append(name.lower())


def _require_rows(window: SlideRows) -> None:
    try:
        window.require_rows()
    except ValueError as error:
        raise ValueError(f"{window.label}: {error}") from None


def _require_time(window: RowWindow, known: Sequence[str], columns: Sequence[str]) -> None:
    by_rows = not isinstance(window, SessionRows) and window.unit is FrameUnit.ROWS
    if window.time_column is not None:
        column = window.time_column
        _require_known(f"{window.label}: the time column {column!r}", column, known, columns)
    elif not by_rows:
        raise ValueError(f"{window.label}: it goes by time; name the time's column with .on('ts')")


def _require_arrival(window: RowWindow, arrival: Sequence[str]) -> None:
    peers = isinstance(window, SlideRows) and window.unit is FrameUnit.RANGE
    if arrival or peers:
        return
    reason = (
        "counts rows in the order of arrival"
        if isinstance(window, TumbleRows) and window.by_arrival
        else "takes rows one by one, those of equal times in the order of arrival"
    )
    raise ValueError(f"{window.label}: it {reason}; name its column with .arrival('offset')")


def _require_known(what: str, name: str, known: Sequence[str], columns: Sequence[str]) -> None:
    if name.lower() not in known:
        raise ValueError(f"{what} is not there; there are {', '.join(columns)}")
