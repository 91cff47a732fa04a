"""What a window is: frozen, validated specifications. Nothing here knows Spark."""

from windows_pipeline.windows.forward import ForwardSlidingWindows
from windows_pipeline.windows.session import SessionWindows
from windows_pipeline.windows.sliding import SlidingWindows
from windows_pipeline.windows.time_window import TimeWindow
from windows_pipeline.windows.time_windows import TimeWindows

WindowSpec = SlidingWindows | ForwardSlidingWindows | TimeWindows | SessionWindows

__all__ = [
    "ForwardSlidingWindows",
    "SessionWindows",
    "SlidingWindows",
    "TimeWindow",
    "TimeWindows",
    "WindowSpec",
]
