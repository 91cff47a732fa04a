"""FLIP-11's group windows and row windows, under Flink's names.

They have a separate namespace because `Session` or `rows` alone would be unclear::

    import windows_pipeline as wp
    from windows_pipeline import flip11

    ten_minutes = flip11.Tumble.over("10 minutes").on("ts").alias("w")
    wp.windowed(events, ten_minutes).by("user").agg(wp.count())
"""

from windows_pipeline.windows import (
    CURRENT_RANGE,
    CURRENT_ROW,
    UNBOUNDED_RANGE,
    UNBOUNDED_ROW,
    GroupWindow,
    RowCount,
    RowWindow,
    Session,
    SessionRows,
    Slide,
    SlideRows,
    Tumble,
    TumbleRows,
    rows,
)

__all__ = [
    "CURRENT_RANGE",
    "CURRENT_ROW",
    "UNBOUNDED_RANGE",
    "UNBOUNDED_ROW",
    "GroupWindow",
    "RowCount",
    "RowWindow",
    "Session",
    "SessionRows",
    "Slide",
    "SlideRows",
    "Tumble",
    "TumbleRows",
    "rows",
]
