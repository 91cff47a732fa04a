"""Window specifications: frozen, validated values without Spark."""

from windows_pipeline.windows.count_windows import CountWindows
from windows_pipeline.windows.forward import ForwardSlidingWindows
from windows_pipeline.windows.frames.bounds import (
    CURRENT_RANGE,
    CURRENT_ROW,
    UNBOUNDED_RANGE,
    UNBOUNDED_ROW,
)
from windows_pipeline.windows.frames.row_count import RowCount, rows
from windows_pipeline.windows.frames.row_windows import (
    RowWindow,
    SessionRows,
    SlideRows,
    TumbleRows,
)
from windows_pipeline.windows.frames.several_rows import SeveralRows
from windows_pipeline.windows.graced import EpisodeEnd
from windows_pipeline.windows.graced_rows import ROW_KEY, GracedRows
from windows_pipeline.windows.group_window import GroupWindow, Session, Slide, Tumble
from windows_pipeline.windows.look_around import LookAround
from windows_pipeline.windows.session import SessionWindows
from windows_pipeline.windows.sliding import SlidingWindows
from windows_pipeline.windows.time_window import TimeWindow
from windows_pipeline.windows.time_windows import TimeWindows

WindowSpec = SlidingWindows | ForwardSlidingWindows | TimeWindows | SessionWindows
FixedWindows = SlidingWindows | ForwardSlidingWindows | TimeWindows
"""Windows of a pipeline whose length is fixed, unlike that of a session."""
FiringWindows = SlidingWindows | TimeWindows | SessionWindows
"""Windows that can fire before they close."""
PipelineWindows = FixedWindows | SessionWindows | GracedRows
"""Windows that a pipeline's file can declare."""

__all__ = [
    "CURRENT_RANGE",
    "CURRENT_ROW",
    "ROW_KEY",
    "UNBOUNDED_RANGE",
    "UNBOUNDED_ROW",
    "CountWindows",
    "EpisodeEnd",
    "FiringWindows",
    "FixedWindows",
    "ForwardSlidingWindows",
    "GracedRows",
    "GroupWindow",
    "LookAround",
    "PipelineWindows",
    "RowCount",
    "RowWindow",
    "Session",
    "SessionRows",
    "SessionWindows",
    "SeveralRows",
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
