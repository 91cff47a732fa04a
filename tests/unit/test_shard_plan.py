"""Where records of one key are cut, and what shards copy, against the records themselves."""

from __future__ import annotations

from itertools import chain, pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.support.spark_cases import PROPERTY
from windows_pipeline.engine.shard_plan import Bucket, Placement, placements
from windows_pipeline.windows import LookAround

POSITIONS = st.lists(st.integers(-200, 200), min_size=1, max_size=80).map(sorted)
WIDTHS = st.integers(1, 60)
LEAST = st.integers(1, 20)
DISTANCES = st.integers(0, 6)


def buckets_of(positions: list[int], width: int) -> list[Bucket]:
    held: dict[int, list[int]] = {}
    for position in positions:
        held.setdefault(position // width, []).append(position)
    return [Bucket(number, len(own), own[0], own[-1]) for number, own in sorted(held.items())]


def rows_of(placed: list[Placement], positions: list[int], width: int) -> dict[int, list[int]]:
    """The numbers of the records in each shard, copies included."""
    shards: dict[int, list[int]] = {}
    for each in placed:
        own = [row for row, at in enumerate(positions) if at // width == each.bucket]
        shards.setdefault(each.shard, []).extend(own)
    return shards


def home_rows(placed: list[Placement], positions: list[int], width: int) -> dict[int, list[int]]:
    return rows_of([each for each in placed if each.is_home], positions, width)


@PROPERTY
@given(POSITIONS, WIDTHS, LEAST, st.builds(LookAround, *[DISTANCES] * 5))
def test_each_record_has_one_home(
    positions: list[int], width: int, least: int, look_around: LookAround
) -> None:
    """In order, and no shard has fewer records than asked for unless it is the only one."""
    home = home_rows(placements(buckets_of(positions, width), least, look_around), positions, width)
    assert [*chain.from_iterable(home.values())] == list(range(len(positions)))
    assert list(home) == list(range(len(home)))
    assert len(home) == 1 or min(map(len, home.values())) >= least


@PROPERTY
@given(POSITIONS, WIDTHS, LEAST, DISTANCES, DISTANCES)
def test_a_shard_has_the_rows_around_its_own(
    positions: list[int], width: int, least: int, back: int, ahead: int
) -> None:
    """So many before and after, or all that there are; and it knows how many came before."""
    placed = placements(buckets_of(positions, width), least, LookAround(back, ahead))
    rows = rows_of(placed, positions, width)
    for shard, home in home_rows(placed, positions, width).items():
        first, last = max(home[0] - back, 0), min(home[-1] + ahead, len(positions) - 1)
        assert set(range(first, last + 1)) <= set(rows[shard])
        assert rows[shard] == list(range(rows[shard][0], rows[shard][-1] + 1))
        assert {each.rows_before for each in placed if each.shard == shard} == {rows[shard][0]}


@PROPERTY
@given(POSITIONS, WIDTHS, LEAST, DISTANCES, DISTANCES)
def test_a_shard_has_the_time_around_its_own(
    positions: list[int], width: int, least: int, back_ms: int, ahead_ms: int
) -> None:
    """Bounds of frames by time are inclusive."""
    look_around = LookAround(back_ms=back_ms, ahead_ms=ahead_ms)
    placed = placements(buckets_of(positions, width), least, look_around)
    rows = rows_of(placed, positions, width)
    for shard, home in home_rows(placed, positions, width).items():
        low, high = positions[home[0]] - back_ms, positions[home[-1]] + ahead_ms
        assert {row for row, at in enumerate(positions) if low <= at <= high} <= set(rows[shard])


@PROPERTY
@given(POSITIONS, WIDTHS, LEAST, st.integers(0, 30))
def test_no_session_lies_in_two_shards(
    positions: list[int], width: int, least: int, gap_ms: int
) -> None:
    """Rule D1: a difference of exactly the gap joins; nothing is copied."""
    placed = placements(buckets_of(positions, width), least, LookAround(gap_ms=gap_ms))
    assert all(each.is_home for each in placed)
    home = home_rows(placed, positions, width)
    for one, other in pairwise(home.values()):
        assert positions[other[0]] - positions[one[-1]] > gap_ms


def test_records_are_cut_evenly() -> None:
    """A shard ends as soon as it has enough; a rest that is too small stays with the last."""
    buckets = [Bucket(number, 10, number, number) for number in range(11)]
    shards = [each.shard for each in placements(buckets, 30, LookAround())]
    assert shards == [0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2]


def test_a_shard_is_larger_than_what_it_copies() -> None:
    """Windows of many records, or of a long time, make shards longer."""
    buckets = [Bucket(number, 10, number, number) for number in range(20)]
    placed = placements(buckets, 10, LookAround(back=20))
    assert [each.bucket for each in placed if each.shard == 1] == list(range(6, 20))
    assert next(each.bucket for each in placed if each.is_home and each.shard == 1) == 8
    placed = placements(buckets, 10, LookAround(back_ms=2))
    assert [each.bucket for each in placed if each.shard == 1] == list(range(6, 16))
