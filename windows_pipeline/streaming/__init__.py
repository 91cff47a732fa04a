"""Runs a pipeline as a stream: each micro-batch is an arrival unit or a part of a day's unit."""

from windows_pipeline.streaming.checkpoint import StreamBehindError
from windows_pipeline.streaming.micro_batch import BatchResult
from windows_pipeline.streaming.query import Stream, prepared_stream, run_stream

__all__ = ["BatchResult", "Stream", "StreamBehindError", "prepared_stream", "run_stream"]
