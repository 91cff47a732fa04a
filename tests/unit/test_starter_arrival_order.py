"""A sample's lateness is that of rules A1 and A2; the grace and the windows follow from it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windows_pipeline.starter.arrival_order import (
    grace_ms,
    histogram,
    ordered_sample,
    rounded_down,
    rounded_up,
)
from windows_pipeline.starter.proposal import sample_windows
from windows_pipeline.starter.sample import Sample
from windows_pipeline.starter.types import guess_type

TIMES = st.lists(st.integers(0, 10**8), min_size=1, max_size=40)
START_MS = 1_772_928_000_000


def sample_of(event: list[int], arrival: list[int], day: list[int]) -> Sample:
    columns = {
        "ts": pa.array([str(START_MS + ms) for ms in event]),
        "received_ts": pa.array([str(START_MS + ms) for ms in arrival]),
    }
    return Sample(columns, {}, np.array(day), is_share=False)


@settings(deadline=None)
@given(st.data(), TIMES, st.booleans(), st.sampled_from(["lines", "event_time", "received_ts"]))
def test_lateness_is_stream_time_minus_event_time(
    data: st.DataObject,
    event: list[int],
    has_days: bool,  # noqa: FBT001
    arrival: str,
) -> None:
    count = len(event)
    came = data.draw(st.lists(st.integers(0, 10**8), min_size=count, max_size=count))
    days = st.integers(0, 3) if has_days else st.just(0)
    day = sorted(data.draw(st.lists(days, min_size=count, max_size=count)))
    sample = sample_of(event, came, day)
    columns = {name: guess_type(name, texts) for name, texts in sample.columns.items()}
    by = {"lines": None, "event_time": columns["ts"], "received_ts": columns["received_ts"]}
    found = ordered_sample(sample, columns["ts"], by[arrival])

    def sort_key(row: int) -> tuple[int, int, int]:
        order = {"lines": row, "event_time": event[row], "received_ts": came[row]}[arrival]
        return day[row], order, row

    rows = sorted(range(count), key=sort_key)
    assert found.rows.tolist() == rows
    highest, expected = 0, []
    for row in rows:
        highest = max(highest, event[row])
        expected.append(highest - event[row])
    assert found.lateness_ms.tolist() == expected


@settings(deadline=None)
@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=300))
def test_the_grace_is_enough_for_99_of_100_records(lateness: list[int]) -> None:
    grace = grace_ms(np.array(lateness))
    assert sum(ms <= grace for ms in lateness) >= 0.99 * len(lateness)


@settings(deadline=None)
@given(st.lists(st.integers(0, 10**10), min_size=1, max_size=100))
def test_the_histogram_counts_each_record_once(lateness: list[int]) -> None:
    bins = histogram(np.array(lateness))
    below = -1
    for bound, count in bins:
        assert count == sum(below < ms <= bound for ms in lateness)
        below = bound
    assert sum(count for _, count in bins) == len(lateness)


@settings(deadline=None)
@given(st.integers(0, 10**11))
def test_durations_are_rounded_to_what_people_write(ms: int) -> None:
    assert rounded_up(ms) >= ms
    assert rounded_down(max(ms, 1_000)) <= max(ms, 1_000)
    assert rounded_up(rounded_up(ms)) == rounded_up(ms)


RECORDS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(-50, 50), st.integers(0, 9)), min_size=1, max_size=30
)


@settings(deadline=None)
@given(RECORDS, st.integers(1, 20))
def test_sliding_windows_of_a_sample_are_left_windows(
    records: list[tuple[int, int, int]], size: int
) -> None:
    """Rule B3."""
    records = sorted(records)
    key, time, value = (np.array(column) for column in zip(*records, strict=True))
    found = sample_windows(key, time, pa.array(value.astype(float)), size, close_ms=0)
    for index, (of, end, _) in enumerate(records):
        within = [v for k, t, v in records if k == of and end - size <= t <= end]
        assert found.counts[index] == len(within)
        assert found.averages[index] == pytest.approx(sum(within) / len(within))
        assert found.is_closed[index] == (end < 0)


def test_keys_far_apart_in_time_do_not_overflow() -> None:
    far = 2**62
    found = sample_windows(np.array([0, 0, 5, 5]), np.array([0, 10, 0, far]), None, 20, 20)
    assert found.counts.tolist() == [1, 2, 1, 1]
