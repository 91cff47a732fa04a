"""The report of real days has what Spark finds in the tables (rules A5, E5)."""

from __future__ import annotations

from datetime import UTC, datetime
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.support.pipelines import Project
from windows_pipeline.incremental.alerts import standing
from windows_pipeline.report.gather import PipelineReport, read_report
from windows_pipeline.report.page import report_page
from windows_pipeline.storage.instants import timestamp_to_ms


@pytest.fixture(scope="module")
def read(full_run: Project) -> PipelineReport:
    return read_report(full_run.pipeline, full_run.settings.warehouse)


def test_episodes_are_those_of_spark(
    full_run: Project, spark: SparkSession, read: PipelineReport
) -> None:
    """The worst first, each with its worst window."""
    (hourly,) = read.definitions
    assert hourly.episodes is not None
    # No severity depends on how long an episode lasted.
    found = standing(full_run.windows.alerts.read(spark)).groupBy("rule", "key", "episode_start")
    expected = {
        (row.rule, row.key, row.first_ms): (row.alerts, row.severity, row.worst_ms)
        for row in found.agg(
            F.count("*").alias("alerts"),
            F.max("severity").alias("severity"),
            F.max_by("window_end", F.struct("severity", -timestamp_to_ms("window_end"))).alias(
                "at"
            ),
        )
        .select(
            *("rule", "key", "alerts", "severity"),
            timestamp_to_ms("episode_start").alias("first_ms"),
            timestamp_to_ms("at").alias("worst_ms"),
        )
        .collect()
    }
    assert expected
    assert {
        (one.rule, one.key, ms(one.first)): (
            *(one.alerts, one.severity, ms(one.worst["window_end"])),
        )
        for one in hourly.episodes.found
    } == expected
    severities = [one.severity or 0.0 for one in hourly.episodes.found]
    assert severities == sorted(severities, reverse=True)


def test_numbers_are_those_of_the_tables(
    full_run: Project, spark: SparkSession, read: PipelineReport
) -> None:
    """Lateness is stream time less event time, of one source partition (rules A2, A5)."""
    raw = full_run.source.raw_events.read(spark).orderBy("arrival_unit", "offset")
    times = np.array(
        [row.ms for row in raw.select(timestamp_to_ms("event_time").alias("ms")).collect()]
    )
    late = np.sort(np.maximum.accumulate(times) - times)
    assert read.lateness.records == len(late)
    assert read.lateness.most_ms == late[int(np.ceil(0.99 * len(late))) - 1]
    rejected = full_run.source.rejected_records.read(spark).count()
    assert (read.accepted, read.rejected) == (len(times), rejected)
    page = report_page(read, datetime.now(UTC))
    ET.XML(page.partition("\n")[2])


def ms(instant: datetime) -> int:
    return round(instant.timestamp() * 1_000)
