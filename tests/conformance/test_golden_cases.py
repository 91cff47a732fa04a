"""Golden cases through the Spark engine, as the conformance command runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from tests.conformance.__main__ import app
from tests.support.cases import GOLDEN, KINDS

CONTRACT = [GOLDEN / "contract" / f"{kind}.jsonl" for kind in KINDS]
KAFKA = [GOLDEN / "kafka" / f"{kind}.jsonl" for kind in KINDS]
FLINK = [
    GOLDEN / "flink" / f"{name}.jsonl"
    for name in ("group_time", "group_count", "over_rows", "following_rows", "grouped_rows")
]
NOT_OURS = "of kafka-streams are not ours"
COMPARISON = Path(__file__).parents[2] / "docs" / "comparison.md"
FIRINGS = GOLDEN / "flink" / "firings.jsonl"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def ids(path: Path) -> set[str]:
    return {json.loads(line)["id"] for line in path.read_text().splitlines()}


@pytest.fixture(scope="module")
def result(spark: SparkSession) -> Result:
    """The contract's cases and Kafka's, compared."""
    del spark
    return run(*CONTRACT, *KAFKA)


def test_the_contract_and_what_kafka_agrees_with_pass(result: Result) -> None:
    """All of the contract's cases, Kafka's own where it gives the same, and what the page says.

    Of the other cases of Kafka some pass, as where windows differ only in when they are final.
    """
    lines = result.output.splitlines()
    contract = [json.loads(line) for path in CONTRACT for line in path.read_text().splitlines()]
    for path in CONTRACT:
        assert f"{path}: {len(ids(path))} of {len(ids(path))} passed" in lines
    agreeing = {case["id"] for case in contract if case["agrees_with"] is not None}
    kafka = set().union(*map(ids, KAFKA))
    differing = {line.split(": ")[0] for line in lines if NOT_OURS not in line} & kafka
    assert differing & agreeing == set(), result.output
    passed = len(kafka) - len(differing)
    assert lines[-1] == f"{len(contract) + passed} passed, {len(differing)} failed"
    assert f"Of all {len(kafka)} Kafka cases {passed} pass." in COMPARISON.read_text()


def test_kafkas_updates_differ_where_its_windows_do(result: Result) -> None:
    """Rules B5, D2, E2: each window after each record that changed it, and what the page says."""
    lines = result.output.splitlines()
    kafka = set().union(*map(ids, KAFKA))
    differing = {line.split(": ")[0] for line in lines if NOT_OURS not in line} & kafka
    updates = {line.split(": ")[0] for line in lines if f"updates {NOT_OURS}" in line}
    # In one more case Kafka's retention drops a window between two updates.
    assert updates == differing | {"sliding-retention-hides-source-window"}
    (score,) = (line for line in lines if line.startswith("kafka-streams, updates: "))
    assert f"`updates`: {score.split(': ')[1]}" in COMPARISON.read_text()


def test_kafkas_windows_are_final_a_step_earlier(result: Result) -> None:
    """Rules A4, D2: windows that end at the close time are final in Kafka, and open for us."""
    lines = result.output.splitlines()
    read = [json.loads(line) for path in CONTRACT for line in path.read_text().splitlines()]
    contract = {case["id"]: case for case in read if case["agrees_with"] is not None}
    final = {line.split(": ")[0] for line in lines if f"final {NOT_OURS}" in line}
    kafka = {
        case["id"]: case
        for path in KAFKA
        for case in map(json.loads, path.read_text().splitlines())
        if case["id"] in final & contract.keys()
    }
    assert {case["window"]["kind"] for case in kafka.values()} == {"sliding", "session"}
    for name, case in kafka.items():
        window = case["window"]
        closed_ms = max(record["timestamp"] for record in case["input"])
        closed_ms -= window["grace_ms"] + window.get("gap_ms", 0)
        theirs = case.get("long_retention", {}).get("final", case["final"])
        ours = [(row["key"], row["end"]) for row in contract[name]["final"]]
        early = [row["end"] for row in theirs if (row["key"], row["end"]) not in ours]
        assert set(early) == {closed_ms}, name
    (score,) = (line for line in lines if line.startswith("kafka-streams, final: "))
    assert f"`final`: {score.split(': ')[1]}" in COMPARISON.read_text()


@pytest.mark.usefixtures("spark")
def test_flinks_answers_pass() -> None:
    """Batch of windows by time; of count windows both the Table API's and DataStream's."""
    result = run(*FLINK)
    assert result.exit_code == 0, result.output
    number = sum(len(ids(path)) for path in FLINK)
    assert result.output.splitlines()[-1] == f"{number} passed, 0 failed"


@pytest.mark.usefixtures("spark")
def test_flinks_firings_pass(tmp_path: Path) -> None:
    """Rule E2; and the command names what differs."""
    lines = FIRINGS.read_text().splitlines()
    wrong = json.loads(lines[0])
    wrong["id"] = "wrong"
    wrong["firings"][0]["reason"] = "LATE"
    wrong["dropped"] = [1]
    changed = tmp_path / "wrong.jsonl"
    changed.write_text(json.dumps(wrong))
    result = run(FIRINGS, changed)
    assert f"{FIRINGS}: {len(lines)} of {len(lines)} passed" in result.output
    assert "wrong: firings: missing CaseFiring(after=2" in result.output
    assert "wrong: firings: not expected CaseFiring(after=2" in result.output
    assert "wrong: dropped: expected [1], got []" in result.output
    assert result.output.splitlines()[-1] == f"{len(lines)} passed, 1 failed"


def case(**changes: object) -> dict[str, object]:
    return {
        "id": "one",
        "engine": "contract",
        "window": {"kind": "tumbling", "size_ms": 10, "grace_ms": 0},
        "input": [{"offset": 0, "partition": 0, "key": "k", "timestamp": 3, "value": 1}],
        "final": [],
        "open": [{"key": "k", "start": 0, "end": 10, "offsets": [0]}],
        "dropped": [],
        **changes,
    }


WRONG = {
    "one: final: missing": case(
        final=[{"key": "k", "start": 0, "end": 10, "offsets": [0]}], open=[]
    ),
    "one: open: not expected": case(open=[]),
    "one: dropped: missing 0": case(dropped=[0]),
    "one: refused: size: '0 seconds' must be above zero": case(
        window={"kind": "tumbling", "size_ms": 0}
    ),
    "one: datastream_updates: not expected Update(after=0": case(
        window={"kind": "slide_count", "size": 2, "advance": 1},
        engine="flink 2.3.0",
        updates=[],
        datastream_updates=[],
    ),
    "one: expected a refusal, got an answer": case(error="0: IllegalArgumentException"),
}


def test_each_difference_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    """But of what an engine that is known to agree elsewhere answered otherwise."""
    del spark
    file, agreed = tmp_path / "wrong.jsonl", tmp_path / "agreed.jsonl"
    other = case(engine="kafka-streams", id="other", final=[], open=[])
    file.write_text("\n".join(json.dumps(one) for one in [*WRONG.values(), other]))
    agreed.write_text(json.dumps(case(agrees_with="kafka-streams")))
    result = run(file, "--agreed-with", agreed)
    assert result.exit_code == 1
    assert "other" not in result.output
    for text in WRONG:
        assert text in result.output
    assert result.output.splitlines()[-1] == f"0 passed, {len(WRONG)} failed"
