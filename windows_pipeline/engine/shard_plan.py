"""Plans where to cut one key's records into shards, and what each shard copies of others.

Decided on the driver, from numbers of records in buckets: never from the records themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from windows_pipeline.windows import LookAround

_LEAST_TO_COPIES = 4
"""The least ratio of a shard's size to what its windows need of its neighbours."""


class Bucket(NamedTuple):
    """A stretch of the records' order.

    Attributes:
        number: The bucket's number; buckets are in the order of their numbers.
        records: How many records it holds; at least one.
        first: The position of its first record.
        last: The position of its last record, which lies before the next bucket's first.
    """

    number: int
    records: int
    first: int
    last: int


class Placement(NamedTuple):
    """A bucket in a shard.

    Attributes:
        bucket: The bucket's number.
        shard: The shard's number.
        is_home: Whether the bucket's records have their results in this shard; each bucket has
            one such shard, in all others its records are copies.
        rows_before: How many records come before the shard's first one.
    """

    bucket: int
    shard: int
    is_home: bool
    rows_before: int


def placements(buckets: Sequence[Bucket], least: int, look_around: LookAround) -> list[Placement]:
    """Puts each bucket into its home shard, and into the shards whose windows extend into it.

    Args:
        buckets: In order.
        least: How many records a shard has at least.
        look_around: What windows need of the records around theirs.
    """
    before = [0, *accumulate(bucket.records for bucket in buckets)]
    found = []
    for shard, (start, end) in enumerate(pairwise(_cuts(buckets, least, look_around))):
        first, beyond = (
            _first_needed(buckets, start, look_around),
            _beyond_needed(buckets, end, look_around),
        )
        found += [
            Placement(buckets[index].number, shard, start <= index < end, before[first])
            for index in range(first, beyond)
        ]
    return found


def _cuts(buckets: Sequence[Bucket], least: int, look_around: LookAround) -> list[int]:
    """The index of each shard's first bucket, and the number of buckets."""
    least = max(least, _LEAST_TO_COPIES * (look_around.back + look_around.ahead))
    least_ms = _LEAST_TO_COPIES * (look_around.back_ms + look_around.ahead_ms)
    cuts, held = [0], 0
    for index, bucket in enumerate(buckets):
        is_long = held >= least and bucket.first - buckets[cuts[-1]].first >= least_ms
        if is_long and bucket.first - buckets[index - 1].last > look_around.gap_ms:
            cuts.append(index)
            held = 0
        held += bucket.records
    if held < least and len(cuts) > 1:
        cuts.pop()
    return [*cuts, len(buckets)]


def _first_needed(buckets: Sequence[Bucket], start: int, look_around: LookAround) -> int:
    """The first bucket into which windows of records from bucket `start` on extend."""
    first, records, from_ms = start, 0, buckets[start].first - look_around.back_ms
    while first > 0 and (records < look_around.back or buckets[first - 1].last >= from_ms):
        first -= 1
        records += buckets[first].records
    return first


def _beyond_needed(buckets: Sequence[Bucket], end: int, look_around: LookAround) -> int:
    """The bucket after the last into which windows of records before bucket `end` extend."""
    beyond, records, until_ms = end, 0, buckets[end - 1].last + look_around.ahead_ms
    while beyond < len(buckets) and (
        records < look_around.ahead or buckets[beyond].first <= until_ms
    ):
        records += buckets[beyond].records
        beyond += 1
    return beyond
