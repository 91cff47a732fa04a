"""Results only when a window closes."""

from __future__ import annotations

from pyspark.sql import DataFrame


def until_window_closes(keyed_windows: DataFrame) -> DataFrame:
    """Keeps each window's last state, once it is closed (rule E1).

    Args:
        keyed_windows: Windows as each unit left them, with the column `closed`.

    Returns:
        The closed ones, without `closed`. A window is closed by one unit only, so each
        stands here once.

    Raises:
        ValueError: What has no boolean column `closed`.
    """
    is_frame = isinstance(keyed_windows, DataFrame)
    if not is_frame or dict(keyed_windows.dtypes).get("closed") != "boolean":
        raise ValueError(
            f"keyed_windows: {keyed_windows!r} has no boolean column 'closed', so it holds no "
            "windows; pass what windowed(events, windows).agg(...) gives"
        )
    return keyed_windows.where("closed").drop("closed")
