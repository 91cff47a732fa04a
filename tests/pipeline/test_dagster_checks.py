"""What Dagster shows of each day: the rules of its tables, and the episodes of its alerts."""

from __future__ import annotations

import dagster as dg
import pytest

from tests.support.alert_ids import digest
from tests.support.small_project import HEADER, TUMBLING, SmallProject
from windows_pipeline.dagster import build_definitions

FIRST, SECOND = "2026-11-01", "2026-11-02"
RULES = {"many": {"when": "c >= 1", "severity": "c"}, "huge": {"when": "c > 5", "severity": 1}}
DAY_1 = f"{HEADER}a,0,1\na,1,-2\nb,2,7\na,12,9\n"
DAY_2 = f"{HEADER}z,1000,5\n"
Evaluations = dict[tuple[str, str, str | None], dg.AssetCheckEvaluation]


@pytest.fixture
def landed(project: SmallProject, monkeypatch: pytest.MonkeyPatch) -> SmallProject:
    """Two days of files, of a pipeline with rules and a check of its own."""
    checks = {"not_negative": {"that": "v >= 0"}}
    project.declare({**TUMBLING, "alerts": RULES}, top={"checks": checks})
    project.land(1, DAY_1)
    project.land(2, DAY_2)
    monkeypatch.chdir(project.folder)
    return project


def evaluations(project: SmallProject, instance: dg.DagsterInstance) -> Evaluations:
    """Those of a run of both days."""
    defs = build_definitions([project.pipeline], project.settings)
    tags = {
        "dagster/asset_partition_range_start": FIRST,
        "dagster/asset_partition_range_end": SECOND,
    }
    result = defs.resolve_job_def("p_all").execute_in_process(instance=instance, tags=tags)
    return {
        (found.asset_key.to_user_string(), found.check_name, found.partition): found
        for found in result.get_asset_check_evaluations()
    }


def rows_of(evaluation: dg.AssetCheckEvaluation, name: str) -> list[dict[str, object]]:
    shown = evaluation.metadata[name]
    assert isinstance(shown, dg.TableMetadataValue)
    return [dict(record.data) for record in shown.records]


def test_each_day_has_its_rules_and_episodes(landed: SmallProject) -> None:
    """Rules A5, E5: a warning of the first day is none of the second's; both days by hand.

    On the first day the windows from 0 to 10 close; the second day closes that from 10 to 20,
    which continues the episode of key 'a', and a later window cannot touch it any more.
    """
    project = landed
    with dg.DagsterInstance.ephemeral() as instance:
        found = evaluations(project, instance)
        keys = build_definitions([project.pipeline], project.settings)
        wanted = keys.resolve_asset_graph().asset_check_keys
        assert {found[:2] for found in found} == {
            (key.asset_key.to_user_string(), key.name) for key in wanted
        }
        assert {day for _, _, day in found} == {FIRST, SECOND}
        executed = instance.event_log_storage.get_asset_check_execution_history(
            dg.AssetCheckKey(dg.AssetKey(["p", "w", "alerts"]), "alert_many"), limit=9
        )
        assert {(one.partition, one.status.value) for one in executed} == {
            (FIRST, "FAILED"),
            (SECOND, "FAILED"),
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
    assert "next" not in found["p/raw_events", "rules", SECOND].metadata
    accounted = {
        name: found["p/w/keyed_windows", "rules", FIRST].metadata[name].value
        for name in ("ingested", "counted", "pending", "late", "rejected")
    }
    assert accounted == {"ingested": 4, "counted": 4, "pending": 0, "late": 0, "rejected": 0}
    assert {at for at, one in found.items() if not one.passed} == {
        ("p/raw_events", "rules", FIRST),
        ("p/w/alerts", "alert_many", FIRST),
        ("p/w/alerts", "alert_many", SECOND),
    }

    many = found["p/w/alerts", "alert_many", FIRST]
    assert many.severity == dg.AssetCheckSeverity.WARN
    assert many.description == (
        "2 episodes, the worst: a, from 1970-01-01 00:00:00 to 1970-01-01 00:00:00.010, "
        "severity 2, still open"
    )
    columns = ("key", "from", "to", "length", "state", "alerts", "severity")
    start, ten = "1970-01-01 00:00:00", "1970-01-01 00:00:00.010"
    assert [tuple(row[name] for name in columns) for row in rows_of(many, "worst_episodes")] == [
        ("a", start, ten, "0:00:00.010000", "still open", "1", "2"),
        ("b", start, ten, "0:00:00.010000", "still open", "1", "1"),
    ]
    (row,) = rows_of(found["p/w/alerts", "alert_many", SECOND], "worst_episodes")
    assert tuple(row[name] for name in columns) == (
        *("a", start, "1970-01-01 00:00:00.020", "0:00:00.020000", "over", "1", "1"),
    )
    command = str(row["trace"]).split()
    bounds = "1970-01-01T00:00:00.010Z", "1970-01-01T00:00:00.020Z"
    worst = digest(["p", "w", "many", ["a"], *bounds, None])
    assert command[1:] == ["trace", "p", "--alert", worst]
    status, said = project.call(*command[1:])
    assert status == 0, said
    assert "9.0" in said


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
        found = evaluations(project, instance)
    columns = ("key", "from", "to", "length", "state", "severity")
    shown = {
        day: [
            tuple(str(row[name]).removeprefix("1970-01-01 00:00:") for name in columns)
            for row in rows_of(found["p/w/alerts", "alert_silent", day], "worst_episodes")
        ]
        for day in (FIRST, SECOND)
    }
    assert shown == {
        FIRST: [("a", "00.006", "00.050", "0:00:00.044000", "over", "44")],
        SECOND: [
            ("b", "00.031", "01", "0:00:00.969000", "still silent", "969"),
            ("a", "00.051", "01", "0:00:00.949000", "still silent", "949"),
        ],
    }
    status, said = project.call("report", "p", "--output", "out.html")
    assert status == 0, said
    text = (project.folder / "out.html").read_text()
    lengths = ("44 milliseconds", "949 milliseconds", "969 milliseconds")
    assert all(length in text for length in lengths)
    assert text.count("still silent") == 2
    severities = [text.find(f"severity {severity} ·") for severity in (969, 949, 44)]
    assert -1 not in severities
    assert severities == sorted(severities)  # the worst first
    status, said = project.call("episodes", "p")
    assert status == 0, said
    records = [("a", 0), ("a", 5), ("b", 30), ("a", 50), ("z", 1000)]
    expected = [
        f"silent {key} {_instant(since)} {_instant(until)} 1 {until - since} {state} "
        for key, since, until, state in _silences(records, 1000, 10)
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
    return f"1970-01-01 00:00:{ms // 1000:02}.{ms % 1000:03}"
