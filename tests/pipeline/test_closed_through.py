"""A day on which the watermark stood still is a warning; metadata says what holds it back (A4)."""

from __future__ import annotations

from datetime import date

import dagster as dg
from pyspark.sql import SparkSession

from tests.support.small_project import HEADER, TUMBLING, SmallProject
from windows_pipeline.checks.run import Check, CheckResult
from windows_pipeline.dagster.assets.checks import rules_evaluations
from windows_pipeline.jobs import RawEventsJob, check_published, run_job
from windows_pipeline.jobs.days.chain import window_jobs

GRACE = {**TUMBLING, "grace": "5 ms"}
DAYS = [date(2026, 11, day) for day in (1, 2, 3, 4)]


def numbers(records: int, before: int | None, after: int) -> dict[str, int]:
    """The numbers of a day; windows are closed 5 ms before the watermark."""
    known = {} if before is None else {"_watermark_before_ms": before}
    return {
        "records": records, **known, "_watermark_after_ms": after, "_closed_through_ms": after - 5,
    }  # fmt: skip


def test_a_day_of_older_records_is_a_warning(project: SmallProject, spark: SparkSession) -> None:
    """Rule A4: neither a later record nor a day without records is one."""
    project.declare(GRACE)
    project.land(1, f"{HEADER}a,3,1\na,40,1\n")
    project.land(2, f"{HEADER}a,38,1\na,40,1\nb,39,1\n")
    project.land(3, HEADER)
    project.land(4, f"{HEADER}a,41,1\n")
    status, said = project.ingest("run")
    assert (status, "p/w/final_windows closed_through: warning" in said) == (0, True), said
    final = window_jobs(project.source, "w", project.settings)[1]
    (found,) = (
        one for one in check_published(final, spark, DAYS) if one.check.name == "closed_through"
    )
    assert found.failing_by_arrival_unit == {DAYS[1]: 1}
    assert found.numbers == {
        DAYS[0]: numbers(2, None, 40),
        DAYS[1]: numbers(3, 40, 40),
        DAYS[2]: numbers(0, 40, 40),
        DAYS[3]: numbers(1, 40, 41),
    }


def test_the_partitions_that_hold_the_watermark_back_are_named(
    project: SmallProject, spark: SparkSession
) -> None:
    """Rule A4: on the first day `y` is the slowest; on the second it has no record and is idle."""
    columns = {"k": "string", "t": "bigint", "v": "double", "n": "bigint", "part": "string"}
    project.declare(GRACE, columns, arrival="n", source_partition="part", idle_after="50 ms")
    header = "k,t,v,n,part\n"
    project.land(1, f"{header}a,40,1,1,x\na,20,1,2,y\n")
    project.land(2, f"{header}a,90,1,1,x\n")
    result = run_job(RawEventsJob(project.source, project.settings), spark, DAYS[:2])
    reported = [
        {name: value for name, value in result.facts[day].items() if "partitions" in name}
        for day in DAYS[:2]
    ]
    assert reported == [
        {"slowest_partitions": "y"},
        {
            "slowest_partitions": "x",
            "partitions_without_records": "y",
            "idle_partitions": "y",
        },
    ]


def test_dagster_shows_instants_of_a_check_as_such() -> None:
    check = Check("closed_through", "it moves", "FALSE")
    found = CheckResult(check, 0, [], numbers={DAYS[0]: numbers(3, 1_000, 2_005)})
    (evaluation,) = rules_evaluations(dg.AssetKey("final_windows"), [found], DAYS[:1], str)
    shown = {name: value.value for name, value in evaluation.metadata.items() if name != "rules"}
    assert shown == {
        "records": 3, "watermark_before": 1.0, "watermark_after": 2.005, "closed_through": 2.0,
    }  # fmt: skip
