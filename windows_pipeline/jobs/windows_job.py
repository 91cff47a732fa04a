"""What the jobs of one named window definition have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from pyspark.sql import SparkSession

from windows_pipeline.config import Pipeline
from windows_pipeline.config import Windows as WindowsConfig
from windows_pipeline.jobs.arrivals import Arrivals, late_facts, read_arrivals
from windows_pipeline.jobs.job import Facts
from windows_pipeline.settings import Settings
from windows_pipeline.tables.catalog import SourceTables, WindowTables, source_tables, window_tables


@dataclass(frozen=True)
class WindowsJob:
    """The definition that a job computes, and where its tables lie."""

    pipeline: Pipeline
    windows_name: str
    settings: Settings

    @property
    def windows(self) -> WindowsConfig:
        """The definition."""
        return self.pipeline.windows[self.windows_name]

    @property
    def source(self) -> SourceTables:
        """The tables of the pipeline's source."""
        return source_tables(self.pipeline, self.settings.warehouse)

    @property
    def own(self) -> WindowTables:
        """The tables of the definition."""
        return window_tables(self.pipeline, self.windows_name, self.settings.warehouse)

    def arrivals(self, spark: SparkSession) -> Arrivals:
        """What has arrived."""
        return read_arrivals(spark, self.pipeline, self.source, self.windows.spec)

    def facts(self, spark: SparkSession, days: Sequence[date]) -> dict[date, Facts]:
        """Late and rejected records, and how far each day closed."""
        return late_facts(spark, self.own, self.arrivals(spark), days)
