"""Keeps PySpark from logging an error that is caught; its loggers' names are documented nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from logging import Filter, LogRecord

from pyspark.logger import PySparkLogger

_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


class _Nothing(Filter):
    def filter(self, record: LogRecord) -> bool:
        return False


@contextmanager
def without_query_context() -> Iterator[None]:
    """Has PySpark log no error of a query: 2,000 characters of JSON on standard error."""
    nothing = _Nothing()  # of this call alone, as other threads may have theirs
    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(nothing)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(nothing)
