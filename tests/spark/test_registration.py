"""`register` names a pipeline's tables in a session's catalog, and what stands now of them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tests.support.pipeline_texts import changed, load_text
from tests.support.written_tables import Row, write_rows
from windows_pipeline.query.registration import quoted, register
from windows_pipeline.storage.catalog import specs_of

FIRING = changed("    emit_empty: true", "    trigger:\n      early_every: 10 minutes\n    #")
DAY = date(2013, 3, 8)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def row(start: int, **values: Any) -> Row:
    """A row of a window of JFK that starts some minutes after 1970."""
    begins = EPOCH + timedelta(minutes=start)
    window = {"key": "JFK", "window_start": begins, "window_end": begins + timedelta(hours=1)}
    return {"arrival_unit": DAY, **window, "record_count": 1, "failed": [], **values}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in a folder whose name needs quotes: alerts, warnings, versions of windows."""
    found = tmp_path / "it's `here`"
    found.mkdir()
    monkeypatch.delenv("WINDOWS_PIPELINE_SETTINGS", raising=False)
    settings = {"warehouse": "warehouse", "pipelines": ".", "landing": ".", "spark": {}}
    text = FIRING.replace("name: flights", "name: registered")
    pipeline = load_text(found, text)
    (found / "settings.yaml").write_text(yaml.safe_dump({**settings, "pipelines": "pipelines"}))
    (found / "pipelines").mkdir()
    (found / "flights.yaml").rename(found / "pipelines" / "registered.yaml")
    tables = specs_of(pipeline, str(found / "warehouse")).of("hourly")
    alerts = [row(0, rule="quiet", retracted_by=1), row(60, rule="quiet")]
    write_rows(tables.alerts, alerts)
    fired = specs_of(pipeline, str(found / "warehouse")).of("hourly")
    assert fired is not None
    assert fired.early_warnings is not None
    states = [(0, "open"), (0, "confirmed"), (60, "open"), (120, "withdrawn"), (120, "open")]
    write_rows(
        fired.early_warnings, [row(start, rule="quiet", state=state) for start, state in states]
    )
    versions = [(0, 0, None), (0, 1, 3), (0, 1, None), (60, 1, 2), (60, 0, 9)]
    write_rows(
        tables.keyed_windows,
        [
            {**row(start, batch=batch, closed=False), "arrival_unit": DAY + timedelta(days=day)}
            for start, day, batch in versions
        ],
    )
    return found


def test_a_pipelines_tables_have_names_in_the_catalog(folder: Path, spark: SparkSession) -> None:
    """Rules E1, E4 and E5: retracted alerts, older rows and ended warnings do not stand."""
    names = register(spark, "registered", project=folder)
    try:
        assert sorted(names) == [
            f"registered.hourly_{name}"
            for name in (
                *("alerts", "current_windows", "early_warnings", "keyed_windows"),
                *("open_warnings", "standing_alerts"),
            )
        ]
        assert register(spark, "registered", project=folder) == names
        counts = {name: spark.table(name).count() for name in names}
        assert counts == {
            "registered.hourly_alerts": 2,
            "registered.hourly_current_windows": 2,
            "registered.hourly_early_warnings": 5,
            "registered.hourly_keyed_windows": 5,
            "registered.hourly_open_warnings": 1,
            "registered.hourly_standing_alerts": 1,
        }
        minute = "unix_seconds(window_start) DIV 60"
        current = spark.sql("SELECT * FROM registered.hourly_current_windows")
        newest = current.selectExpr(minute, "arrival_unit", "batch").collect()
        assert sorted(map(tuple, newest)) == [
            (0, DAY + timedelta(days=1), 3),
            (60, DAY + timedelta(days=1), 2),
        ]
        for view in ("standing_alerts", "open_warnings"):
            (found,) = spark.table(f"registered.hourly_{view}").selectExpr(minute).collect()
            assert found[0] == 60
        with pytest.raises(AnalysisException):
            spark.sql("INSERT INTO registered.hourly_alerts TABLE registered.hourly_alerts")
    finally:
        spark.sql("DROP SCHEMA registered CASCADE")
    assert (folder / "warehouse/registered/hourly/alerts/_delta_log").is_dir()


def test_a_pipeline_that_is_not_declared_is_named(folder: Path, spark: SparkSession) -> None:
    with pytest.raises(ValueError, match=r"pipeline: 'boats' must be declared .*found: registered"):
        register(spark, "boats", project=folder)


def test_a_name_is_quoted_whatever_it_holds() -> None:
    assert quoted("a`; DROP SCHEMA x") == "`a``; DROP SCHEMA x`"
