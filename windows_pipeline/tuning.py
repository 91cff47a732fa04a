"""How much work the engine takes at once. These sizes change its cost, never a result."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """Sizes of the pieces that the engine works in. Tests replace the defaults by small sizes.

    Attributes:
        chunk_rows: How many rows of whole groups a kernel takes at once; a larger group is a
            chunk of its own.
        part_windows: How many windows of a chunk are aggregated at once.
        part_values: How many values the lists of these windows may hold in all; a single longer
            list is a part of its own.
        part_records: About how many records, counted once per window, the windows that are fired
            together may hold.
        shard_look_backs: How many look-backs long a time shard is. A record is copied where a
            window that ends in the next shard looks back at it: about one in this many records.
        least_shard_look_backs: How many look-backs a pipeline's time shards are at least.
        max_shard_ms: Windows that ask for longer time shards are computed without shards. A longer
            one could overflow together with an event time.
        shard_records: How many records a shard of count windows, sessions, and frames by rows or
            from the first record on has at least.
        one_key: Whether all records have one key. Only then are they cut into such shards.
        few_records: Up to how many records, look-back included, a run or a micro-batch is small:
            compiling its plans takes longer than running them uncompiled, and the driver collects
            its rows together with their verdicts.
    """

    chunk_rows: int = 200_000
    part_windows: int = 1 << 20
    part_values: int = 1 << 22
    part_records: int = 1 << 22
    shard_look_backs: int = 64
    least_shard_look_backs: int = 16
    max_shard_ms: int = 2**53
    shard_records: int = 500_000
    one_key: bool = False
    few_records: int = 10_000


TUNING = Tuning()
"""The defaults."""
