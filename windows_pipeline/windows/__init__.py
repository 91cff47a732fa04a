"""What a window is: frozen, validated specifications. Nothing here knows Spark."""

from windows_pipeline.windows.count_windows import CountWindows
from windows_pipeline.windows.forward import ForwardSlidingWindows
from windows_pipeline.windows.group_window import GroupWindow, Session, Slide, Tumble
from windows_pipeline.windows.row_count import RowCount, rows
from windows_pipeline.windows.session import SessionWindows
from windows_pipeline.windows.sliding import SlidingWindows
from windows_pipeline.windows.time_window import TimeWindow
from windows_pipeline.windows.time_windows import TimeWindows

WindowSpec = SlidingWindows | ForwardSlidingWindows | TimeWindows | SessionWindows

__all__ = [
    "CountWindows",
    "ForwardSlidingWindows",
    "GroupWindow",
    "RowCount",
    "Session",
    "SessionWindows",
    "Slide",
    "SlidingWindows",
    "TimeWindow",
    "TimeWindows",
    "Tumble",
    "WindowSpec",
    "rows",
]
