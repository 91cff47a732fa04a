"""The oracle against the golden cases of the contract, of Kafka Streams and of Flink."""

from __future__ import annotations

import pytest

from tests.support.cases import KINDS, Case, batch_of, definition_of, read_cases
from tests.support.oracle.batch import BatchWindow, answer_batch
from tests.support.oracle.windows import Key, SessionDefinition

CONTRACT = {name: case for kind in KINDS for name, case in read_cases("contract", kind).items()}
KAFKA = {name: case for kind in KINDS for name, case in read_cases("kafka", kind).items()}
FLINK = read_cases("flink", "group_time")
AGREEING = [name for name, case in CONTRACT.items() if case["agrees_with"]]
ALL_ON_TIME_MS = 10**12


def windows_of(rows: list[Case]) -> list[BatchWindow]:
    return [BatchWindow(w["key"], w["start"], w["end"], tuple(w["offsets"])) for w in rows]


def in_order(windows: list[BatchWindow]) -> list[BatchWindow]:
    def sort_key(window: BatchWindow) -> tuple[Key, int, int]:
        return (window.key or "", window.start, window.end)

    return sorted(windows, key=sort_key)


def test_the_golden_cases_are_all_there() -> None:
    by_kind = [sum(c["window"]["kind"] == kind for c in CONTRACT.values()) for kind in KINDS]
    assert by_kind == [120, 37, 35, 33]
    assert len(AGREEING) == 84 + 30 + 35 + 27
    assert len(FLINK) == 34


@pytest.mark.parametrize("case", CONTRACT.values(), ids=CONTRACT.keys())
def test_contract_case(case: Case) -> None:
    """Rules A, B, C and D; a record below the first window is neither dropped nor in a window."""
    window = case["window"]
    answer = answer_batch(batch_of(case), definition_of(window, window["grace_ms"]))
    assert answer.final == windows_of(case["final"])
    assert answer.open == windows_of(case["open"])
    assert answer.dropped == case["dropped"]
    assert answer.partially_late == case.get("partially_late", [])
    counted = {offset for each in answer.final + answer.open for offset in each.offsets}
    assert counted.isdisjoint(answer.outside_windows)


@pytest.mark.parametrize("name", AGREEING)
def test_kafka_gave_the_same_windows_where_the_contract_agrees(name: str) -> None:
    """Final and open together, for Kafka's suppress emits one step early."""
    window = CONTRACT[name]["window"]
    answer = answer_batch(batch_of(CONTRACT[name]), definition_of(window, window["grace_ms"]))
    # A case without the clamp has its Kafka answer under the clamped case's name.
    theirs = KAFKA[name.removesuffix("-unclamped")]
    final = theirs["final"]
    if window["kind"] == "sliding":
        # At its default retention Kafka's store forgets a record of one case before its time.
        # (Sessions: a longer one lets records join closed sessions, against rule D2.)
        final = theirs.get("long_retention", {}).get("final", final)
    assert in_order(answer.final + answer.open) == in_order(windows_of(final + theirs["open"]))


@pytest.mark.parametrize("case", FLINK.values(), ids=FLINK.keys())
def test_flink_batch_case(case: Case) -> None:
    """Rule F4's batch side: every row is on time; a session ends a gap after its last record."""
    definition = definition_of(case["window"], ALL_ON_TIME_MS)
    batch = batch_of(case)
    if not case["keyed"]:
        batch = [record._replace(key=None) for record in batch]
    answer = answer_batch(batch, definition)
    after_last = definition.gap if isinstance(definition, SessionDefinition) else 0
    found = [window._replace(end=window.end + after_last) for window in answer.open]
    assert in_order(found) == in_order(windows_of(case["batch_final"]))
    assert not answer.final
    assert not answer.dropped
