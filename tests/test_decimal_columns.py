"""A pipeline's decimal columns are exact from the landed text to the alert (rule G2)."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

from pyspark.sql import SparkSession

from pipeline_runs import Project
from windows_pipeline.jobs.chain import rebuild
from windows_pipeline.settings import Settings

PIPELINE = """
name: payments
source:
  path: data/payments
  format: jsonl
  columns: {account: string, at: timestamp, amount: "decimal(20, 2)"}
  key: account
  event_time: at
partitions:
  start: 2013-01-01
windows:
  hourly:
    kind: sliding
    time_difference: 1 minute
    grace: 0 minutes
    aggregates:
      n: count(amount)
      total: sum(amount)
      least: min(amount)
      most: max(amount)
      mean: avg(amount)
    alerts:
      large: {when: total >= 12345678901234567.99, severity: total}
"""
# As numbers, not texts: a double could hold neither the second one nor a tenth.
LANDED = """
{"account": "a", "at": "2013-01-01T10:00:00Z", "amount": 0.10}
{"account": "a", "at": "2013-01-01T10:00:30Z", "amount": 12345678901234567.89}
{"account": "a", "at": "2013-01-01T10:00:30Z", "amount": 0.005}
{"account": "b", "at": "2013-01-01T12:00:00Z", "amount": null}
"""
SMALL, LARGE = Decimal("0.10"), Decimal("12345678901234567.89")


def test_decimals_stay_exact_from_landed_text_to_alerts(
    spark: SparkSession, settings: Settings, tmp_path: Path
) -> None:
    """Rules A6 and G2: nothing is rounded; what does not fit the type is rejected."""
    project = Project(tmp_path, settings)
    for file, text in (
        ("pipelines/flights.yaml", PIPELINE),
        ("data/payments/2013-01-01/payments.jsonl", LANDED),
    ):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text(text)
    built = list(rebuild(spark, project.pipeline, project.settings, "raw_events"))
    assert [result.published for _, result in built] == [True] * 4

    raw = project.source.raw_events.read(spark)
    assert raw.schema["amount"].dataType.simpleString() == "decimal(20,2)"
    assert {row.amount for row in raw.collect()} == {SMALL, LARGE, None}
    (rejected,) = project.source.rejected_records.read(spark).collect()
    assert rejected.reason == "wrong_type: amount"
    assert json.loads(rejected.original)["amount"] == 0.005

    final = project.windows.final_windows.read(spark)
    names = ("n", "total", "least", "most", "mean")
    assert [final.schema[name].dataType.simpleString() for name in names] == [
        "bigint",
        "decimal(30,2)",
        "decimal(20,2)",
        "decimal(20,2)",
        "decimal(24,6)",
    ]
    both = SMALL + LARGE
    found = [tuple(row) for row in final.orderBy("window_end").select(*names).collect()]
    assert found == [
        (1, SMALL, SMALL, SMALL, SMALL),
        (2, both, SMALL, LARGE, both / 2),
        (1, LARGE, LARGE, LARGE, LARGE),
    ]
    (alert,) = project.windows.alerts.read(spark).collect()
    assert (alert.rule, alert.total) == ("large", both)
