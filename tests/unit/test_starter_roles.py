"""Key, event time, arrival and value are guessed from names and from values."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from tests.support.samples import PAYMENT_COLUMNS, payments
from windows_pipeline.starter.arrival_order import ArrivedRecords
from windows_pipeline.starter.names import words
from windows_pipeline.starter.proposal import Proposal, propose
from windows_pipeline.starter.roles import (
    CannotGuessError,
    guess_arrival,
    guess_event_time,
    guess_key,
    guess_value,
)
from windows_pipeline.starter.types import SampleColumn, guess_type

START_MS = 1_772_928_000_000


def columns_of(**values: list[object]) -> dict[str, SampleColumn]:
    return {
        name: guess_type(name, pa.array([str(value) for value in texts], pa.string()))
        for name, texts in values.items()
    }


def of_payments() -> dict[str, SampleColumn]:
    texts: list[list[object]] = [list(column) for column in zip(*payments(), strict=True)]
    return columns_of(**dict(zip(PAYMENT_COLUMNS, texts, strict=True)))


def test_payments_are_understood() -> None:
    columns = of_payments()
    assert {name: column.type for name, column in columns.items()} == {
        "order_id": "string",
        "card": "string",
        "amount": "decimal(18,2)",
        "paid_at": "timestamp",
        "received_at": "timestamp",
    }
    assert guess_event_time(columns).name == "paid_at"
    assert guess_arrival(columns, "paid_at").name == "received_at"
    assert guess_key(columns).name == "card"
    assert guess_value(columns, {"card", "paid_at", "received_at"}) == "amount"


def seconds(*numbers: int) -> list[object]:
    return [START_MS + 1_000 * number for number in numbers]


@pytest.mark.parametrize(
    ("names", "event"),
    [
        (("received_at", "created_at"), "created_at"),
        (("created_at", "event_time"), "event_time"),
        (("end_ts", "start_ts"), "start_ts"),
        (("created_at", "changed_at"), "created_at"),
        (("birth_date_ts", "time"), "time"),
    ],
)
def test_names_say_which_time_is_the_event_time(names: tuple[str, str], event: str) -> None:
    columns = columns_of(**dict.fromkeys(names, seconds(*range(30))))
    assert guess_event_time(columns).name == event


def test_without_a_time_the_error_names_columns_and_option() -> None:
    with pytest.raises(CannotGuessError, match=r"--event-time.*k \(string, such as 'a'\)"):
        guess_event_time(columns_of(k=["a", "b"], v=[1, 2]))


def test_a_second_time_that_orders_the_file_is_the_arrival() -> None:
    events = [0, 5, 3, 9, 7, 12, 20, 15, 30, 28]
    came = [event + 3 for event in np.maximum.accumulate(events)]
    columns = columns_of(started_ts=seconds(*events), seen_ts=seconds(*came))
    assert guess_arrival(columns, "started_ts").name == "seen_ts"


def test_a_time_to_come_is_no_arrival() -> None:
    columns = columns_of(
        paid_at=seconds(*range(10)), due_at=seconds(90, 50, 70, 20, 80, 30, 60, 40, 99, 98)
    )
    assert guess_arrival(columns, "paid_at").name == "lines"


def test_lines_in_another_order_than_time_are_no_arrival() -> None:
    """An export that is sorted by key: by lines nearly all records would be late."""
    days = [86_400 * day for day in range(30)]
    columns = columns_of(user=[u for u in "abc" for _ in days], ts=seconds(*(days * 3)))
    assert guess_arrival(columns, "ts").name == "event_time"


def test_what_is_unique_is_no_key() -> None:
    row_count = 200
    with pytest.raises(CannotGuessError, match="--key COLUMN"):
        guess_key(
            columns_of(
                order_id=[f"o{n}" for n in range(row_count)],
                value=[n % 7 for n in range(row_count)],
            )
        )
    columns = columns_of(
        status=["ok", "bad"] * 100,
        place=[f"p{n % 25}" for n in range(row_count)],
        uid=range_texts(row_count),
    )
    assert guess_key(columns).name == "place"


def range_texts(count: int) -> list[object]:
    return [f"u-{number}" for number in range(count)]


def test_numbers_may_be_keys_if_their_name_says_so() -> None:
    columns = columns_of(user_id=[n % 9 for n in range(90)], quantity=[n % 4 for n in range(90)])
    assert guess_key(columns).name == "user_id"
    assert guess_value(columns, {"user_id"}) == "quantity"


def test_names_are_split_into_words() -> None:
    assert words("paidAt") == words("paid_at") == words("PaidAt") == {"paid", "at"}
    assert words("deviceID2") == {"device", "id", "2"}


def proposed(
    columns: dict[str, SampleColumn],
    key: str,
    time: str,
    value: str | None = None,
    size_ms: int | None = None,
) -> Proposal:
    """The windows of records that arrive in the order of lines."""
    ms = columns[time].known_times.astype(np.int64) // 1_000
    records = ArrivedRecords(np.arange(len(ms)), ms)
    return propose(records, columns[key], columns[value] if value else None, size_ms)


def test_the_alert_rule_is_broken_by_few_closed_windows_of_the_sample() -> None:
    found = proposed(of_payments(), "card", "paid_at", "amount")
    (rule,) = found.rules
    assert rule.when.startswith("avg_amount > ")
    assert 0 < rule.broken <= found.closed * 0.02 + 2
    assert found.aggregates["avg_amount"] == "avg(amount)"
    assert 0 < found.closed <= found.total


def test_a_threshold_is_not_rounded_below_many_windows() -> None:
    """To three digits nearly each of 1,000 averages around 1,254 would be above it."""
    count = 1_000
    times = seconds(*sorted(random.Random(5).sample(range(count * 600), count)))
    columns = columns_of(
        k=["a"] * count, ts=times, v=[1_253 + n * 7 % count / 600 for n in range(count)]
    )
    (rule,) = proposed(columns, "k", "ts", "v", 1_000).rules
    assert rule.when.startswith("avg_v > 1254.")
    assert 0 < rule.broken <= count * 0.02


def test_heartbeats_are_watched_for_silence() -> None:
    minutes = [minute for minute in range(300) if not 100 <= minute < 120]
    columns = columns_of(device=["a"] * len(minutes), ts=seconds(*(60 * n for n in minutes)))
    found = proposed(columns, "device", "ts")
    (rule,) = found.rules
    assert (found.emit_empty, rule.when, rule.broken) == (True, "record_count = 0", 1)
    assert 60_000 < found.size_ms < 20 * 60_000


@pytest.mark.parametrize("is_regular_record", [True, False])
def test_regular_measurements_are_watched_for_silence_and_for_high_values(
    *, is_regular_record: bool
) -> None:
    """A measurement each minute, with jitter and a silence of 20 minutes; or at random times."""
    draw = random.Random(3)
    minutes = [minute for minute in range(300) if not 100 <= minute < 120]
    even = [60 * minute + draw.randint(0, 9) for minute in minutes]
    times_s = even if is_regular_record else sorted(draw.sample(range(18_000), len(minutes)))
    columns = columns_of(
        device=["a"] * len(minutes), ts=seconds(*times_s), celsius=[n % 7 / 2 for n in minutes]
    )
    found = proposed(columns, "device", "ts", "celsius")
    assert found.emit_empty == is_regular_record
    silent, high = ("silent", "record_count = 0"), ("high_celsius", "avg_celsius > ")
    wanted = [silent, high] if is_regular_record else [high]
    assert [rule.name for rule in found.rules] == [name for name, _ in wanted]
    assert all(
        rule.when.startswith(when) for rule, (_, when) in zip(found.rules, wanted, strict=True)
    )
    if is_regular_record:
        assert found.rules[0].broken == 1


def test_equal_values_give_a_rule_over_counts() -> None:
    count = 100
    times = seconds(*(60 * n for n in range(count)))
    found = proposed(columns_of(k=["a"] * count, ts=times, v=[2] * count), "k", "ts", "v", 120_000)
    assert [rule.when for rule in found.rules] == ["record_count = 0", "record_count >= 3"]


def test_a_sample_without_closed_windows_still_has_a_rule() -> None:
    columns = columns_of(k=["a", "a"], ts=seconds(0, 1), v=[1, 3])
    found = proposed(columns, "k", "ts", "v", 3_600_000)
    assert (found.closed, found.rules[0].broken) == (0, 0)
    assert found.rules[0].when == "avg_v > 1"
