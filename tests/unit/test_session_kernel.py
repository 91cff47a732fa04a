"""Sessions by gap and by arrival (rules D1, D2)."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.spark_cases import PROPERTY
from windows_pipeline.kernels.windows.sessions import (
    NO_SESSION,
    sessions_by_arrival,
    sessions_by_gap,
)


def first_of_each(session: np.ndarray) -> np.ndarray:
    """Identifies each session by its first record, whichever record identified it."""
    _, first, inverse = np.unique(session, return_index=True, return_inverse=True)
    named: np.ndarray = first[inverse]
    return named


@PROPERTY
@given(st.lists(st.integers(0, 40), min_size=1, max_size=30), st.integers(1, 5), st.data())
def test_within_grace_the_order_of_arrival_does_not_matter(
    times: list[int], gap_ms: int, data: st.DataObject
) -> None:
    """Rule D2: such a record is never late and finds each session within the gap open."""
    cut = data.draw(st.integers(0, len(times)), label="cut")
    starts = np.array([0, cut, len(times)])
    time_ms = np.array(sorted(times[:cut]) + sorted(times[cut:]))
    first = data.draw(st.permutations(range(cut)), label="first group")
    second = data.draw(st.permutations(range(cut, len(times))), label="second group")
    close_ms = np.full(len(times), min(times) - gap_ms)
    joined = sessions_by_arrival(starts, time_ms, close_ms, np.array(first + second), gap_ms)
    by_gap = sessions_by_gap(starts, time_ms, gap_ms)
    assert first_of_each(joined).tolist() == by_gap.tolist()


def test_a_key_has_as_many_sessions_open_as_records() -> None:
    """Nearly each of 300,000 records is an open session; shifting all of them would take 10 s."""
    random = np.random.default_rng(450)
    count, gap_ms = 300_000, 1
    starts = np.array([0, count])
    time_ms = np.sort(random.integers(0, 20 * count, count))
    close_ms = np.full(count, -gap_ms)
    came = random.permutation(count)
    joined = sessions_by_arrival(starts, time_ms, close_ms, came, gap_ms)
    assert np.array_equal(first_of_each(joined), sessions_by_gap(starts, time_ms, gap_ms))


def test_a_record_that_finds_all_closed_is_in_no_session() -> None:
    """Rule D2: late iff the session it would make is closed; one at the close time is open."""
    close_ms = np.array([-5, 3, 4, 3])
    joined = sessions_by_arrival(
        np.array([0, 4]), np.array([0, 2, 4, 9]), close_ms, np.array([0, 1, 3, 2]), 1
    )
    assert joined.tolist() == [0, NO_SESSION, 2, 3]
