"""What a window is: frozen, validated specifications. Nothing here knows Spark."""

from windows_pipeline.windows.sliding import SlidingWindows, TimeWindow

__all__ = ["SlidingWindows", "TimeWindow"]
