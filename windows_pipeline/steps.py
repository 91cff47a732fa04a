"""The steps of a pipeline, in order."""

from __future__ import annotations

from enum import StrEnum


class Step(StrEnum):
    """A step of the chain, by the name of its first table."""

    RAW_EVENTS = "raw_events"
    KEYED_WINDOWS = "keyed_windows"
    FINAL_WINDOWS = "final_windows"
    ALERTS = "alerts"
    FIRINGS = "firings"
