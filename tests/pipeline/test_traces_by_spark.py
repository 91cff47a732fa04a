"""Traces through a filter, which only Spark evaluates (rule E5)."""

from __future__ import annotations

import json

import yaml
from delta import DeltaTable
from pyspark.sql import SparkSession

from tests.support.alert_ids import digest
from tests.support.small_project import HEADER, TUMBLING, SmallProject


def test_an_alert_is_traced_through_a_filter(project: SmallProject, spark: SparkSession) -> None:
    """Rules A5, A9 and E5: by the id of `episodes`; a record that does not pass is left out."""
    rules = {"many": {"when": "c >= 1", "severity": "c"}}
    project.declare({**TUMBLING, "alerts": rules, "where": "abs(v) >= 2"})
    project.land(1, f"{HEADER}a,0,1\na,1,-27\na,2,38\na,100,9\n")
    status, said = project.ingest("run")
    assert status == 0, said
    bounds = "1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00.010Z"
    of_alert = digest(["p", "w", "many", ["a"], *bounds, None])
    status, said = project.call("episodes", "p")
    assert (status, of_alert in said) == (0, True), said
    status, said = project.call("trace", "p", "--alert", of_alert, "--json")
    assert status == 0, said
    assert [record["v"] for record in json.loads(said)["records"]] == [-27.0, 38.0]
    for time, fate in (
        ("1970-01-01 00:00:00.000", "filtered_out"),
        ("1970-01-01 00:00:00.001", "counted"),
    ):
        status, said = project.call("explain", "p", "a", time, "--json")
        assert status == 0, said
        assert [record["fate"] for record in json.loads(said)["records"]] == [fate]
    raw = project.source.raw_events
    raw.set_properties(spark, {"delta.enableDeletionVectors": "true"})
    DeltaTable.forPath(spark, raw.location).delete("v = 1")
    status, said = project.call("trace", "p", "--alert", of_alert, "--json")
    assert status == 0, said
    assert [record["v"] for record in json.loads(said)["records"]] == [-27.0, 38.0]
    # A URI, which has no storage options.
    file = project.folder / "settings.yaml"
    by_uri = {"warehouse": (project.folder / "warehouse").as_uri()}
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | by_uri))
    status, said = project.call("trace", "p", "--alert", of_alert)
    assert (status, "from URIs for which settings.yaml has storage_options" in said) == (2, True)
