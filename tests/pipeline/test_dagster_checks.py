"""What Dagster shows of each day: the rules of its tables, and the episodes of its alerts."""

from __future__ import annotations

from collections import Counter
from datetime import date

import dagster as dg
import deltalake
import pytest
from pyspark.sql import SparkSession

from tests.support.alert_ids import digest
from tests.support.pipelines import materializations
from tests.support.small_project import HEADER, TUMBLING, SmallProject
from tests.support.spark_cases import texts
from tests.support.stored_rows import stored_rows
from windows_pipeline.dagster import build_definitions, range_tags
from windows_pipeline.jobs import AlertsJob
from windows_pipeline.jobs.job import run_job

FIRST, SECOND = "2026-11-01", "2026-11-02"
RULES = {"many": {"when": "c >= 1", "severity": "c"}, "huge": {"when": "c > 5", "severity": 1}}
DAY_1 = f"{HEADER}a,0,1\na,1,-2\nb,2,7\na,12,9\n"
DAY_2 = f"{HEADER}z,1000,5\n"
Evaluations = dict[tuple[str, str, str | None], dg.AssetCheckEvaluation]
"""By asset, check and day; a check's summary has no day."""


@pytest.fixture
def landed(project: SmallProject, monkeypatch: pytest.MonkeyPatch) -> SmallProject:
    """Two days of files, of a pipeline with rules and a check of its own."""
    checks = {"not_negative": {"that": "v >= 0"}}
    project.declare({**TUMBLING, "alerts": RULES}, top={"checks": checks})
    project.land(1, DAY_1)
    project.land(2, DAY_2)
    monkeypatch.chdir(project.folder)
    return project


def of_both_days(project: SmallProject, instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    """A run of the job of days."""
    defs = build_definitions([project.pipeline], project.settings)
    job = defs.resolve_job_def("p_all")
    return job.execute_in_process(instance=instance, tags=range_tags(FIRST, SECOND))


def evaluations(result: dg.ExecuteInProcessResult) -> Evaluations:
    return {
        (found.asset_key.to_user_string(), found.check_name, found.partition): found
        for found in result.get_asset_check_evaluations()
    }


def rows_of(evaluation: dg.AssetCheckEvaluation, name: str) -> list[dict[str, object]]:
    shown = evaluation.metadata[name]
    assert isinstance(shown, dg.TableMetadataValue)
    return [dict(record.data) for record in shown.records]


def test_days_that_fail_have_their_rules_and_episodes(landed: SmallProject) -> None:
    """Rules A5, E5: a warning of the first day is none of the second's; both days by hand.

    On the first day the windows from 0 to 10 close; the second day closes that from 10 to 20,
    which continues the episode of key 'a', and a later window cannot touch it any more.
    """
    project = landed
    with dg.DagsterInstance.ephemeral() as instance:
        result = of_both_days(project, instance)
        found = evaluations(result)
        keys = build_definitions([project.pipeline], project.settings)
        wanted = keys.resolve_asset_graph().asset_check_keys
        assert {found[:2] for found in found} == {
            (key.asset_key.to_user_string(), key.name) for key in wanted
        }
        executed = instance.event_log_storage.get_asset_check_execution_history(
            dg.AssetCheckKey(dg.AssetKey(["p", "w", "alerts"]), "alert_many"), limit=9
        )
        assert {(one.partition, one.status.value) for one in executed} == {
            (FIRST, "FAILED"),
            (SECOND, "FAILED"),
            (None, "FAILED"),
        }

    raw = found["p/raw_events", "rules", FIRST]
    assert (raw.passed, raw.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert raw.metadata["failed_rules"].value == "not_negative"
    assert [row["v"] for row in rows_of(raw, "not_negative_sample")] == ["-2.0"]
    step = str(raw.metadata["next"].value)
    assert step.startswith("The rows are published.")
    for named in (
        f"windows-pipeline run p --from {FIRST} --to {FIRST}",
        f"windows-pipeline correct p --from {FIRST} --cause TEXT",
        "windows-pipeline check p",
    ):
        assert named in step
    numbers = {"ingested": 4, "counted": 4, "pending": 0, "late": 0, "rejected": 0}
    of_others = {"late_records": 0, "failed_windows": 0}
    made = {
        (one.asset_key.to_user_string(), one.partition): one.metadata
        for one in materializations(result)
    }
    shown = made["p/w/keyed_windows", FIRST]
    assert {name: shown[name].value for name in numbers | of_others} == numbers | of_others
    # No table beside the first one of a step has rows, but for the arrival log and episodes.
    assert {key for key, _ in made} == {
        *("p/raw_events", "p/arrival_log"),
        *(f"p/w/{table}" for table in ("keyed_windows", "final_windows", "alerts", "episodes")),
    }
    assert {at for at in found if at[2] is not None} == {
        ("p/raw_events", "rules", FIRST),
        ("p/w/alerts", "alert_many", FIRST),
        ("p/w/alerts", "alert_many", SECOND),
    }
    summed = {at[:2]: one.description for at, one in found.items() if at[2] is None}
    assert summed["p/raw_events", "rules"] == (
        f"1 day stands with a warning; {FIRST}: not_negative failed"
    )
    assert str(summed["p/w/alerts", "alert_many"]).startswith(
        f"2 days stand with a warning; {SECOND}: 1 episode, the worst: "
    )
    assert summed["p/w/alerts", "alert_huge"] == f"no day stands failed; {SECOND}: no episode"
    assert str(summed["p/w/final_windows", "rules"]).startswith(
        f"no day stands failed; {SECOND}: all "
    )

    many = found["p/w/alerts", "alert_many", FIRST]
    assert many.severity == dg.AssetCheckSeverity.WARN
    assert many.description == (
        f"{FIRST}: 2 episodes, the worst: a, from 1970-01-01 00:00:00 to 1970-01-01 00:00:00.010, "
        f"severity 2, still open at the close of {FIRST}"
    )
    columns = ("key", "from", "to", "length", "state", "alerts", "severity")
    start, ten = "1970-01-01 00:00:00", "1970-01-01 00:00:00.010"
    assert [tuple(row[name] for name in columns) for row in rows_of(many, "worst_episodes")] == [
        ("a", start, ten, "10 ms", "still open", "1", "2"),
        ("b", start, ten, "10 ms", "still open", "1", "1"),
    ]
    (row,) = rows_of(found["p/w/alerts", "alert_many", SECOND], "worst_episodes")
    assert tuple(row[name] for name in columns) == (
        *("a", start, "1970-01-01 00:00:00.020", "20 ms", "over", "2", "2"),
    )
    command = str(row["trace"]).split()
    # The worst window so far is that of the first day.
    bounds = "1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00.010Z"
    worst = digest(["p", "w", "many", ["a"], *bounds, None])
    assert command[1:] == ["trace", "p", "--alert", worst]
    status, said = project.call(*command[1:])
    assert status == 0, said
    assert " -2 " in said, said


def test_a_run_of_ten_days_stores_so_many_events(
    project: SmallProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change that stores more changes the numbers here.

    One day has a rejected and a late record; two days close a window with an episode.
    """
    project.declare(
        {**TUMBLING, "alerts": {"pair": {"when": "c = 2", "severity": 1}, "huge": RULES["huge"]}}
    )
    for day in range(1, 11):
        more = f"a,{day * 10},1\n" * (day in {3, 5}) + "a,1,1\n,,\n" * (day == 4)
        project.land(day, f"{HEADER}a,{day * 10},1\n{more}")
    monkeypatch.chdir(project.folder)
    with dg.DagsterInstance.ephemeral() as instance:
        defs = build_definitions([project.pipeline], project.settings)
        job = defs.resolve_job_def("p_all")
        run = job.execute_in_process(instance=instance, tags=range_tags(FIRST, "2026-11-10"))
        logged = instance.all_logs(run.run_id)
    kinds = (one.dagster_event_type.value for one in logged if one.dagster_event_type)
    events = Counter(kind for kind in kinds if kind.startswith("ASSET"))
    of_tables = Counter(str(one.asset_key.path[-1]) for one in materializations(run))
    assert of_tables == {
        **dict.fromkeys(("raw_events", "keyed_windows", "final_windows", "alerts"), 10),
        "arrival_log": 10,
        "rejected_records": 1,
        "late_records": 1,
        "episodes": 2,
    }
    # A planned one for each day of these four; two days with an episode, and six summaries.
    planned, of_checks = "ASSET_MATERIALIZATION_PLANNED", "ASSET_CHECK_EVALUATION"
    assert events == {planned: 40, "ASSET_MATERIALIZATION": 54, of_checks: 2 + 6}


def test_a_day_that_a_missing_day_blocks_is_not_without_episodes(landed: SmallProject) -> None:
    """Rule A2: nobody knows them yet; once the missing day is there, they are listed."""
    (landed.folder / "data" / FIRST).rename(landed.folder / "later")
    pipeline = landed.pipeline
    with dg.DagsterInstance.ephemeral() as instance:
        every = build_definitions([pipeline], landed.settings).resolve_job_def("p_all")
        run = every.execute_in_process(instance=instance, partition_key=SECOND)
        many, huge = [
            one
            for one in run.get_asset_check_evaluations()
            if one.check_name.startswith("alert_") and one.partition is not None
        ]
        for blocked in (many, huge):
            assert (blocked.passed, blocked.severity) == (False, dg.AssetCheckSeverity.WARN)
            assert blocked.description == (
                f"{SECOND}: not known yet: nothing closes before the raw day {FIRST} is ingested"
            )
        (landed.folder / "later").rename(landed.folder / "data" / FIRST)
        found = evaluations(of_both_days(landed, instance))
    many = found["p/w/alerts", "alert_many", SECOND]
    assert str(many.description).startswith(f"{SECOND}: 1 episode, ")
    assert found["p/w/alerts", "alert_huge", SECOND].description == f"{SECOND}: no episode"
    assert found["p/w/alerts", "alert_huge", None].passed


def test_a_silence_lasts_until_the_next_record(
    project: SmallProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules B8, E6, by hand: a@5 is the last until a@50; nothing follows b@30, nor a@50.

    The empty windows are [6, 16], [31, 41] and [51, 61]. That of z@1000 is open.
    """
    slides = {"kind": "sliding", "time_difference": "10 ms", "grace": "0 ms", "emit_empty": True}
    rules = {"silent": {"when": "record_count < 1", "severity": "episode_ms"}}
    project.declare({**slides, "alerts": rules})
    project.land(1, f"{HEADER}a,0,1\na,5,1\nb,30,1\n")
    project.land(2, f"{HEADER}a,50,1\nz,1000,1\n")
    monkeypatch.chdir(project.folder)
    with dg.DagsterInstance.ephemeral() as instance:
        found = evaluations(of_both_days(project, instance))
    columns = ("key", "from", "to", "length", "state", "severity")
    shown = {
        day: [
            tuple(str(row[name]).removeprefix("1970-01-01 00:00:") for name in columns)
            for row in rows_of(found["p/w/alerts", "alert_silent", day], "worst_episodes")
        ]
        for day in (FIRST, SECOND)
    }
    assert shown == {
        FIRST: [("a", "00.006", "00.030", "24 ms", "still silent", "24")],
        SECOND: [
            ("b", "00.031", "01", "969 ms", "still silent", "969"),
            ("a", "00.051", "01", "949 ms", "still silent", "949"),
            ("a", "00.006", "00.050", "44 ms", "over", "44"),
        ],
    }
    status, said = project.call("report", "p", "--output", "out.html")
    assert status == 0, said
    text = (project.folder / "out.html").read_text()
    lengths = ("44 ms", "949 ms", "969 ms")
    assert all(length in text for length in lengths)
    assert text.count("still silent") == 2
    severities = [text.find(f"severity {severity} ·") for severity in (969, 949, 44)]
    assert -1 not in severities
    assert severities == sorted(severities)  # the worst first
    status, said = project.call("episodes", "p")
    assert status == 0, said
    records = [("a", 0), ("a", 5), ("b", 30), ("a", 50), ("z", 1000)]
    expected = [
        f" {state} {key} silent {ms} ms {ms} {_instant(since)} {_instant(until)} "
        for key, since, until, state in _silences(records, 1000, 10)
        for ms in (until - since,)
    ]
    positions = [said.find(text) for text in expected]
    assert -1 not in positions, said
    assert positions == sorted(positions), said
    assert said.count(" silent ") == len(expected) + 2, said  # the rule, and two states


def _silences(
    records: list[tuple[str, int]], closed: int, length: int
) -> list[tuple[str, int, int, str]]:
    """Silences by rule B8 in plain Python, the longest first: key, since, until, state."""
    found = []
    for key, time in records:
        later = [at for of, at in records if of == key and at > time]
        until = min(later, default=closed)
        if time + 1 + length < until:  # a window without records fits in between, and closed
            found.append((key, time + 1, until, "over" if later else "still silent"))
    return sorted(found, key=lambda one: one[1] - one[2])


def _instant(ms: int) -> str:
    """As `episodes` prints it."""
    return f"1970-01-01 00:00:{ms // 1000:02}.{ms % 1000:03}".removesuffix(".000")


SLIDES = {"kind": "sliding", "time_difference": "10 ms", "grace": "0 ms", "emit_empty": True}
QUIET = {"quiet": {"when": "record_count = 0", "severity": "episode_ms / 10"}}
ARRIVED = {
    1: [("a", 0), ("b", 5), ("z", 30)],
    2: [("z", 60)],
    3: [("a", 80), ("z", 100)],
    4: [("z", 130)],
}
"""By day of November; 'b' never returns, and 'a' returns on the third day, until 80."""
CLOSES = {1: 30, 2: 60, 3: 100, 4: 130}
Listed = dict[int, list[tuple[str, int, int, str, float]]]


def lists(arrived: dict[int, list[tuple[str, int]]]) -> Listed:
    """Rules B8, E5 in plain Python: key, since, until, state and severity, by day.

    A day lists the silences whose window it closed, those of earlier days that are open at its
    close time, and those that it ends; all as of its close time.
    """
    records = [record for of_day in arrived.values() for record in of_day]
    found: Listed = {day: [] for day in CLOSES}
    for key, time in records:
        since, end = time + 1, time + 11
        back = min((at for of, at in records if of == key and at > time), default=9_999)
        if back <= end:
            continue
        is_known = False
        for day, close in CLOSES.items():
            if is_known or end < close:
                until, state = (back, "over") if back < close else (close, "still silent")
                found[day].append((key, since, until, state, (until - since) / 10))
                is_known = True
            if back < close:
                break
    return {day: sorted(rows, key=lambda row: (-row[4], row[1])) for day, rows in found.items()}


def listed(evaluations: dict[str, dg.AssetCheckEvaluation]) -> Listed:
    """What the evaluations of `alert_quiet` list, by day."""
    found: Listed = {}
    for day, one in evaluations.items():
        rows = rows_of(one, "worst_episodes") if "worst_episodes" in one.metadata else []
        found[_day(day)] = [
            (
                str(row["key"]),
                _ms(str(row["from"])),
                _ms(str(row["to"])),
                str(row["state"]),
                float(str(row["severity"])),
            )
            for row in rows
        ]
        assert one.passed == (not rows)
        assert one.metadata["episodes"].value == len(rows)
    return found


def _day(partition: str) -> int:
    return int(partition[-2:])


def _ms(text: str) -> int:
    seconds = text.removeprefix("1970-01-01 00:00:")
    return round(float(seconds) * 1000)


def quiet(result: dg.ExecuteInProcessResult) -> dict[str, dg.AssetCheckEvaluation]:
    """The evaluations of `alert_quiet` in a run, by day; each day has at most one."""
    of_check = [
        one
        for one in result.get_asset_check_evaluations()
        if one.check_name == "alert_quiet" and one.partition is not None
    ]
    found = {str(one.partition): one for one in of_check}
    assert len(found) == len(of_check)
    return found


def stored(instance: dg.DagsterInstance) -> dict[str, dg.AssetCheckEvaluation]:
    """The newest evaluation of `alert_quiet` of each day in an instance."""
    key = dg.AssetCheckKey(dg.AssetKey(["p", "w", "alerts"]), "alert_quiet")
    records = instance.event_log_storage.get_asset_check_execution_history(key, limit=99)
    found: dict[str, dg.AssetCheckEvaluation] = {}
    for record in records:  # the newest first
        assert record.event is not None
        assert record.event.dagster_event is not None
        evaluation = record.event.dagster_event.asset_check_evaluation_data
        if evaluation.partition is None:
            continue
        found.setdefault(str(evaluation.partition), evaluation)
    return found


def test_each_day_lists_the_silences_that_go_on_or_end(
    spark: SparkSession, project: SmallProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules B8, E5: single days, a range, and the check of days that others ran are alike.

    A correction in which 'b' was there at 50 changes what all days say, by the same oracle.
    """
    wanted = lists(ARRIVED)
    assert wanted[1] == [("a", 1, 30, "still silent", 2.9), ("b", 6, 30, "still silent", 2.4)]
    assert wanted[4] == [
        ("b", 6, 130, "still silent", 12.4),
        ("a", 81, 130, "still silent", 4.9),
        ("z", 61, 100, "over", 3.9),
        ("z", 101, 130, "still silent", 2.9),
    ]
    project.declare({**SLIDES, "alerts": QUIET})
    for day, records in ARRIVED.items():
        project.land(day, _csv(records))
    monkeypatch.chdir(project.folder)
    defs = build_definitions([project.pipeline], project.settings)
    every = defs.resolve_job_def("p_all")
    with dg.DagsterInstance.ephemeral() as instance:
        for first, last in ((1, 1), (2, 4)):
            tags = range_tags(f"2026-11-0{first}", f"2026-11-0{last}")
            run = every.execute_in_process(instance=instance, tags=tags)
            # No run changes what an earlier day says.
            assert listed(quiet(run)) == {day: wanted[day] for day in range(first, last + 1)}
        assert listed(stored(instance)) == wanted
        said = str(stored(instance)["2026-11-04"].description)
        assert said == (
            "2026-11-04: 4 episodes (3 of earlier days), the worst: b, "
            "from 1970-01-01 00:00:00.006 to 1970-01-01 00:00:00.130, severity 12.4, "
            "still silent at the close of 2026-11-04"
        )
        # An instance that knows nothing of the days, as where the shell ran them.
        with dg.DagsterInstance.ephemeral() as other:
            checked = defs.resolve_job_def("p_check").execute_in_process(instance=other)
        assert listed(quiet(checked)) == wanted
        _alerts_again_backwards(spark, project)

        project.land(2, _csv([("b", 50), ("z", 60)]))
        days = ("--from", "2026-11-02", "--to", "2026-11-02")
        project.call("run", "p", *days)  # ingests the day; final windows need a correction
        config = {"from": "2026-11-02", "cause": "a late file"}
        corrected = defs.resolve_job_def("p_correction")
        assert corrected.execute_in_process(config, instance=instance).success
        assert listed(stored(instance)) == lists({**ARRIVED, 2: [("b", 50), ("z", 60)]})


def _alerts_again_backwards(spark: SparkSession, project: SmallProject) -> None:
    """Rule H1: the silence of 'a' is open on the first two days, and ends on the third."""
    job = AlertsJob(project.source, project.name, project.settings)
    rows = {table.short_name: sorted(texts(stored_rows(table))) for table in job.tables}
    assert rows["episodes"]
    for table in job.tables:
        if rows[table.short_name]:
            deltalake.DeltaTable(table.location).delete()
    for number in reversed(ARRIVED):
        assert run_job(job, spark, [date(2026, 11, number)]).published
    assert {table.short_name: sorted(texts(stored_rows(table))) for table in job.tables} == rows


def _csv(records: list[tuple[str, int]]) -> str:
    return HEADER + "".join(f"{key},{time},1\n" for key, time in records)


def test_a_limit_of_late_records_fails_its_check_and_not_the_run(landed: SmallProject) -> None:
    """Rule A1: as in the shell, the windows become final and raise alerts; targets are notified."""
    project = landed
    top = {
        "limits": {"late": "10 %", "least_records": 1},
        "notify": {"log": {"file": "sent.ndjson", "events": ["failed"]}},
    }
    project.declare({**TUMBLING, "alerts": RULES}, top=top)
    project.land(2, f"{HEADER}z,1000,5\nz,1,5\n")
    with dg.DagsterInstance.ephemeral() as instance:
        result = of_both_days(project, instance)
        found = evaluations(result)
        late = found["p/w/keyed_windows", "rules", SECOND]
        assert (late.passed, late.severity) == (False, dg.AssetCheckSeverity.ERROR)
        assert late.metadata["failed_rules"].value == "late_within_limit"
        alerts = instance.get_materialized_partitions(dg.AssetKey(["p", "w", "alerts"]))
        assert alerts == {FIRST, SECOND}
        for _ in range(2):
            assert project.call("notify", "p", "--all")[0] == 0
        (sent,) = (project.folder / "warehouse" / "p" / "sent.ndjson").read_text().splitlines()
        assert f"p/w/keyed_windows: late_within_limit failed on 1 day, {SECOND} (1 row)" in sent
        (of_z,) = (row for row in result.get_asset_materialization_events() if is_of_alerts(row))
        shown = of_z.materialization.metadata
        assert str(shown["alert_many"].value).startswith("1 episode, the worst: a, from ")
        assert shown["alert_huge"].value == "no episode"


def is_of_alerts(event: dg.DagsterEvent) -> bool:
    return event.asset_key == dg.AssetKey(["p", "w", "alerts"]) and event.partition == SECOND
