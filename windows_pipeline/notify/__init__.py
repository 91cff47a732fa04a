"""Notifies people of events of alert episodes and of failed runs, without Spark: the only door."""

from windows_pipeline.notify.delivered import BusyError
from windows_pipeline.notify.events import unfilled
from windows_pipeline.notify.pipeline_events import FAILED, note_failure, notifies_of
from windows_pipeline.notify.run import (
    Due,
    Sent,
    WrongTargetsError,
    deliver,
    what_is_due,
)

__all__ = [
    "FAILED",
    "BusyError",
    "Due",
    "Sent",
    "WrongTargetsError",
    "deliver",
    "note_failure",
    "notifies_of",
    "unfilled",
    "what_is_due",
]
