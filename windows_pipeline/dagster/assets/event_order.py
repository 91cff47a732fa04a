"""Orders events for Dagster: materializations first, then the checks that refer to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import dagster as dg

from windows_pipeline.compat.check_targets import targeting

Event = dg.AssetMaterialization | dg.AssetCheckEvaluation
_MOST_RECORDS = 500


def in_order(instance: dg.DagsterInstance, events: Iterable[Event]) -> Iterator[Event]:
    """The materializations, and then the evaluations with their targets."""
    evaluations = []
    for event in events:
        if isinstance(event, dg.AssetCheckEvaluation):
            evaluations.append(event)
        else:
            yield event
    yield from with_targets(instance, evaluations)


def with_targets(
    instance: dg.DagsterInstance, evaluations: Iterable[dg.AssetCheckEvaluation]
) -> Iterator[dg.AssetCheckEvaluation]:
    """Links each evaluation to the newest materialization of its day, if there is one.

    Args:
        instance: The instance, which has the materializations.
        evaluations: The evaluations.
    """
    every = list(evaluations)
    days: dict[dg.AssetKey, set[str]] = {}
    for one in every:
        if one.partition is not None:
            days.setdefault(one.asset_key, set()).add(one.partition)
    newest = {asset: _newest(instance, asset, of_asset) for asset, of_asset in days.items()}
    for one in every:
        record = newest.get(one.asset_key, {}).get(one.partition or "")
        yield one if record is None else targeting(one, record)


def _newest(
    instance: dg.DagsterInstance, asset: dg.AssetKey, days: set[str]
) -> dict[str, dg.EventLogRecord]:
    """The newest materialization of each day that has a materialization."""
    found: dict[str, dg.EventLogRecord] = {}
    left = set(days)
    while left:
        wanted = dg.AssetRecordsFilter(asset_key=asset, asset_partitions=sorted(left))
        limit = min(len(left), _MOST_RECORDS)
        records = instance.fetch_materializations(wanted, limit=limit).records
        if not records:
            break
        for record in records:  # the newest first
            if record.partition_key is not None:
                found.setdefault(record.partition_key, record)
        left -= found.keys()
    return found
