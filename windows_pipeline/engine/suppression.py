"""Reduces window results to the final results of closed windows."""

from __future__ import annotations

from pyspark.sql import DataFrame


def until_window_closes(keyed_windows: DataFrame) -> DataFrame:
    """Selects the final result of each closed window (rule E1).

    Args:
        keyed_windows: The state of each window after each arrival unit, with the boolean column
            `closed`.

    Returns:
        The rows of closed windows, without the column `closed`. Exactly one arrival unit closes
        a window, so each closed window has one row.

    Raises:
        ValueError: `keyed_windows` is no DataFrame, or has no boolean column `closed`.
    """
    is_frame = isinstance(keyed_windows, DataFrame)
    if not is_frame or dict(keyed_windows.dtypes).get("closed") != "boolean":
        raise ValueError(
            "keyed_windows: must be a DataFrame of windows, with a boolean column 'closed', not "
            f"{keyed_windows!r}; pass what windowed(events, windows).agg(...) returns"
        )
    return keyed_windows.where("closed").drop("closed")
