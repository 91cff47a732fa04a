"""What a window is: frozen, validated specifications. Nothing here knows Spark."""

from windows_pipeline.windows.count_windows import CountWindows
from windows_pipeline.windows.forward import ForwardSlidingWindows
from windows_pipeline.windows.graced_rows import ROW_NAME, GracedRows
from windows_pipeline.windows.group_window import GroupWindow, Session, Slide, Tumble
from windows_pipeline.windows.row_bounds import (
    CURRENT_RANGE,
    CURRENT_ROW,
    UNBOUNDED_RANGE,
    UNBOUNDED_ROW,
)
from windows_pipeline.windows.row_count import RowCount, rows
from windows_pipeline.windows.row_windows import RowWindow, SessionRows, SlideRows, TumbleRows
from windows_pipeline.windows.session import SessionWindows
from windows_pipeline.windows.sliding import SlidingWindows
from windows_pipeline.windows.time_window import TimeWindow
from windows_pipeline.windows.time_windows import TimeWindows

WindowSpec = SlidingWindows | ForwardSlidingWindows | TimeWindows | SessionWindows
FixedWindows = SlidingWindows | TimeWindows
"""Those of a pipeline whose bounds do not follow from what they hold."""
FiringWindows = FixedWindows | SessionWindows
"""Those that can fire before they close."""
PipelineWindows = FiringWindows | GracedRows
"""Those that a pipeline's file can name."""

__all__ = [
    "CURRENT_RANGE",
    "CURRENT_ROW",
    "ROW_NAME",
    "UNBOUNDED_RANGE",
    "UNBOUNDED_ROW",
    "CountWindows",
    "FiringWindows",
    "FixedWindows",
    "ForwardSlidingWindows",
    "GracedRows",
    "GroupWindow",
    "PipelineWindows",
    "RowCount",
    "RowWindow",
    "Session",
    "SessionRows",
    "SessionWindows",
    "Slide",
    "SlideRows",
    "SlidingWindows",
    "TimeWindow",
    "TimeWindows",
    "Tumble",
    "TumbleRows",
    "WindowSpec",
    "rows",
]
