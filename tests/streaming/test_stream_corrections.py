"""A stream and corrections of its results (rule E1)."""

from __future__ import annotations

import json
from datetime import date, datetime
from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from tests.support.oracle.windows import Record, SlidingDefinition, final_windows
from tests.support.spark_cases import instant
from tests.support.stored_rows import named_rows, stored_rows
from tests.support.streams import (
    SLIDING,
    KilledError,
    add_rows,
    declared_pipeline,
)
from windows_pipeline.arrival.log import read_log
from windows_pipeline.config.definition import DefinitionChangedError
from windows_pipeline.dagster import build_definitions
from windows_pipeline.dagster.assets.stream import follow_source
from windows_pipeline.jobs.correction.run import CorrectionPlan, correct, plan_correction
from windows_pipeline.jobs.correction_marker import (
    Correction,
    CorrectionUnfinishedError,
    mark_begun,
    mark_needless,
    unfinished_correction,
)
from windows_pipeline.jobs.unfinished_batch import BatchUnfinishedError
from windows_pipeline.settings import Settings
from windows_pipeline.storage.table import Table, TableRebuiltError
from windows_pipeline.storage.tables import tables_of
from windows_pipeline.storage.writer_lock import writing
from windows_pipeline.streaming import BatchResult, prepared_stream, run_stream


def begun_a_day_later(offsets: Path) -> date:
    """Moves the start of a micro-batch in Spark's checkpoint to the next day; returns the day."""
    version, noted, *of_sources = offsets.read_text().splitlines()
    batch = json.loads(noted)
    batch["batchTimestampMs"] += 86_400_000
    offsets.write_text("\n".join([version, json.dumps(batch), *of_sources]))
    offsets.with_name(f".{offsets.name}.crc").unlink()
    return instant(batch["batchTimestampMs"]).date()


@pytest.mark.long
@pytest.mark.smoke
def test_a_correction_and_a_micro_batch_see_each_other(
    spark: SparkSession, settings: Settings, tmp_path: Path
) -> None:
    """Rule E1: neither reads tables that the other is about to write."""
    source = {"format": "delta", "path": "table", "max_per_batch": 1}
    pipeline, own = declared_pipeline(tmp_path, settings, source, SLIDING)
    tables = tables_of(pipeline, own.warehouse).of("sums")
    table = tmp_path / "table"
    for ms in (3, 30):
        add_rows(table, [("a", ms, 1)])

    def begin(result: BatchResult) -> None:
        (arrival_unit,) = result.arrival_units
        correction = Correction(1, arrival_unit, arrival_unit, "why", 0, 0)
        mark_begun(spark, tables.corrections, correction)

    def planned() -> CorrectionPlan:
        arrival_units = tables.keyed_windows.read(spark).select("arrival_unit").collect()
        first = min(arrival_units).arrival_unit
        return plan_correction(
            spark,
            tables_of(pipeline, own.warehouse, grace_may_differ=True),
            "sums",
            own,
            first,
            None,
            "why",
        )

    # A correction that begins after the stream did.
    with pytest.raises(CorrectionUnfinishedError):
        run_stream(spark, tables_of(pipeline, own.warehouse), own, on_batch=begin)
    mark_needless(spark, tables.corrections)
    next_day = begun_a_day_later(Path(own.warehouse) / "numbers" / "_stream" / "offsets" / "1")
    # A micro-batch that was begun, and is not in the log.
    with pytest.raises(BatchUnfinishedError, match="micro-batch 1 "):
        planned()
    run_stream(spark, tables_of(pipeline, own.warehouse), own)
    # Its records have the day on which it was begun, not the day on which it ends.
    assert [row.arrival_unit for row in tables.final_windows.read(spark).collect()] == [next_day]

    # A micro-batch that comes after the correction looked for micro-batches, and before it begins.
    plan = planned()
    add_rows(table, [("a", 60, 1), (None, 40, 1)])
    run_stream(spark, tables_of(pipeline, own.warehouse), own)
    with pytest.raises(BatchUnfinishedError, match="micro-batch 2 "):
        plan.run(spark)
    assert unfinished_correction(spark, tables.corrections) is None

    # A micro-batch that comes while the correction runs; the correction is killed and run again.
    stream = prepared_stream(spark, tables_of(pipeline, own.warehouse), own)

    def killed_meanwhile(_said: str) -> None:
        add_rows(table, [("a", 60, 1)])
        with pytest.raises(CorrectionUnfinishedError):
            stream.run()
        raise KilledError

    with pytest.raises(KilledError):
        planned().run(spark, killed_meanwhile)
    planned().run(spark)
    assert final_totals(tables.final_windows) == final_totals_of_the_oracle(0, 3, 30, 60)
    run_stream(spark, tables_of(pipeline, own.warehouse), own)
    counts_late_records_once_the_grace_is_raised(spark, settings, tmp_path)


def counts_late_records_once_the_grace_is_raised(
    spark: SparkSession, settings: Settings, folder: Path
) -> None:
    """Rules A5, A6, E1: a rejected record is sent again; the stream goes on with the new grace."""
    source = {"format": "delta", "path": "table", "max_per_batch": 1}
    pipeline, own = declared_pipeline(folder, settings, source, SLIDING)
    tables = tables_of(pipeline, own.warehouse).of("sums")
    refused = tables_of(pipeline, own.warehouse).rejected_records
    (original,) = (row["original"] for row in named_rows(refused))
    assert json.loads(str(original)) == {"k": None, "ms": 40, "whole": 1}
    add_rows(folder / "table", [("a", 40, 1)])
    run_stream(spark, tables_of(pipeline, own.warehouse), own)
    assert [row["event_time"] for row in named_rows(tables.late_records)] == [instant(40)]
    raised, _ = declared_pipeline(folder, settings, source, {**SLIDING, "grace": "30 ms"})
    with pytest.raises(DefinitionChangedError, match=r"sums\.grace: was .* correct numbers"):
        run_stream(spark, tables_of(raised, own.warehouse), own)
    first = min(row["arrival_unit"] for row in named_rows(tables.keyed_windows))
    running = prepared_stream(spark, tables_of(pipeline, own.warehouse), own)  # with the old grace
    result = correct(
        spark,
        tables_of(raised, own.warehouse, grace_may_differ=True),
        "sums",
        own,
        first,
        None,
        "what came late counts",
    )
    assert result.published
    assert stored_rows(tables.late_records) == []
    assert final_totals(tables.final_windows) == final_totals_of_the_oracle(30, 3, 30, 60, 60, 40)
    add_rows(folder / "table", [("a", 100, 1)])
    changed = r"a correction or rebuild has given .* since: windows\.sums\.grace: .*, is '30 milli"
    with pytest.raises(TableRebuiltError, match=changed) as stopped:
        running.run()
    again = (
        "start the stream again: run the job numbers_stream, or: windows-pipeline stream numbers"
    )
    assert again in str(stopped.value)
    run_stream(spark, tables_of(raised, own.warehouse), own)
    came = (3, 30, 60, 60, 40, 100)
    assert final_totals(tables.final_windows) == final_totals_of_the_oracle(30, *came)
    changes = {(row["window_end"], row["change"]) for row in named_rows(tables.corrections)}
    assert changes == {(instant(30), "retracted")}
    assert len(named_rows(refused)) == 1


def final_totals(final_windows: Table) -> list[tuple[datetime, datetime, int]]:
    """The start, the end and the sum of each final window."""
    rows = named_rows(final_windows)
    return sorted((row["window_start"], row["window_end"], row["total"]) for row in rows)


def final_totals_of_the_oracle(
    grace_ms: int, *times_ms: int
) -> list[tuple[datetime, datetime, int]]:
    """The oracle's start, end and sum of each final window; each record adds a 1."""
    records = [Record(0, 0, at, "a", ms, {"whole": 1}) for at, ms in enumerate(times_ms)]
    definition = SlidingDefinition(10, grace_ms)
    rows = final_windows(records, 1, definition, {"total": ("sum", "whole")})
    return sorted((instant(row.start), instant(row.end), row.values["total"]) for row in rows)


def test_a_run_in_dagster_ends_for_a_correction_and_fails_for_a_killed_one(
    spark: SparkSession, settings: Settings, tmp_path: Path
) -> None:
    """A correction that somebody started is no fault of the stream; a killed one must resume."""
    source = {"format": "delta", "path": "table"}
    pipeline, own = declared_pipeline(tmp_path, settings, source, SLIDING)
    add_rows(tmp_path / "table", [("a", 3, 1)])
    run_stream(spark, tables_of(pipeline, own.warehouse), own)
    corrections = tables_of(pipeline, own.warehouse).of("sums").corrections
    arrival_log = tables_of(pipeline, own.warehouse).arrival_log
    day = max(row.arrival_unit for row in read_log(spark, arrival_log))
    mark_begun(spark, corrections, Correction(1, day, day, "why", 0, 0))
    job = build_definitions([pipeline], own).resolve_job_def("numbers_stream")
    with dg.DagsterInstance.ephemeral() as instance:
        with writing(pipeline, own.warehouse):
            ended = job.execute_in_process(instance=instance)
        assert ended.get_asset_check_evaluations() == []
        killed = job.execute_in_process(instance=instance, raise_on_error=False)
    assert not killed.success
    (failure,) = [event for event in killed.all_events if event.is_step_failure]
    assert "windows-pipeline correct numbers --windows sums" in str(failure.step_failure_data)
    # Also where the correction is for another definition, which some tables follow already.
    changed, _ = declared_pipeline(tmp_path, settings, source, {**SLIDING, "grace": "900 ms"})
    with pytest.raises(CorrectionUnfinishedError):
        run_stream(spark, tables_of(changed, own.warehouse), own)


def test_a_run_in_dagster_ends_where_its_tables_were_redefined(
    spark: SparkSession, settings: Settings, tmp_path: Path
) -> None:
    """A correction by another grace ended while the stream waited for records."""
    source = {"format": "delta", "path": "table", "max_per_batch": 1}
    pipeline, own = declared_pipeline(tmp_path, settings, source, SLIDING)
    for ms in (3, 30):
        add_rows(tmp_path / "table", [("a", ms, 1)])
    final_windows = tables_of(pipeline, own.warehouse).of("sums").final_windows

    def redefine(_: BatchResult) -> None:
        final_windows.set_properties(spark, {"windows_pipeline.digest": "another"})

    said: list[str] = []
    assert not follow_source(
        spark, tables_of(pipeline, own.warehouse), own, None, redefine, said.append
    )
    (reason,) = said
    assert "has given the table another definition since" in reason
