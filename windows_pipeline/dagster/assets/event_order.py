"""Orders events for Dagster: materializations first, then the checks that refer to them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import dagster as dg

from windows_pipeline.compat.check_targets import targeting
from windows_pipeline.dagster.assets.day_summaries import days_and_summaries

Event = dg.AssetMaterialization | dg.AssetCheckEvaluation
_MOST_RECORDS = 500


def in_order(instance: dg.DagsterInstance, events: Iterable[Event]) -> Iterator[Event]:
    """The materializations, and then the evaluations that Dagster is to store."""
    evaluations = []
    for event in events:
        if isinstance(event, dg.AssetCheckEvaluation):
            evaluations.append(event)
        else:
            yield event
    yield from stored(instance, evaluations)


def of_step(
    context: dg.OpExecutionContext, evaluations: Iterable[dg.AssetCheckEvaluation]
) -> Iterator[dg.AssetCheckEvaluation]:
    """The evaluations of a step that Dagster is to store, where the step's checks may be planned.

    Of each check and day that a run plans Dagster shows 'Skipped' until it has an evaluation, so
    these days have one. Of a run without days it plans one evaluation without a partition, which
    is the summary: Dagster takes an evaluation of a day that is stored later for a newer one, so
    the summary is stored once more, outside of the run.
    """
    planned, by_day = context.selected_asset_check_keys, has_days(context)
    of_days = set()
    for one in stored(context.instance, evaluations, planned if by_day else ()):
        yield one
        if one.partition is not None:
            of_days.add(one.asset_check_key)
        elif not by_day and one.asset_check_key in of_days & planned:
            context.instance.report_runless_asset_event(one)


def has_days(context: dg.OpExecutionContext) -> bool:
    """Whether a run is of days; one of checks alone may not be."""
    return context.has_partition_key or context.has_partition_key_range


def stored(
    instance: dg.DagsterInstance,
    evaluations: Iterable[dg.AssetCheckEvaluation],
    planned: Collection[dg.AssetCheckKey] = (),
) -> Iterator[dg.AssetCheckEvaluation]:
    """The evaluations that Dagster is to store: of days, and last a summary of each check.

    Args:
        instance: The instance.
        evaluations: What the checks found on each day.
        planned: The checks for which Dagster waits for an evaluation of each day.
    """
    found: dict[dg.AssetCheckKey, dict[str, dg.AssetCheckEvaluation]] = {}
    for one in evaluations:
        found.setdefault(one.asset_check_key, {})[str(one.partition)] = one
    of_days, summaries = days_and_summaries(instance, found, planned)
    yield from with_targets(instance, [*of_days, *summaries])


def with_targets(
    instance: dg.DagsterInstance, evaluations: Iterable[dg.AssetCheckEvaluation]
) -> Iterator[dg.AssetCheckEvaluation]:
    """Links each evaluation to the newest materialization of its day, if there is one.

    An evaluation without a day is linked to the newest materialization of its asset.

    Args:
        instance: The instance, which has the materializations.
        evaluations: The evaluations.
    """
    every = list(evaluations)
    days: dict[dg.AssetKey, set[str | None]] = {}
    for one in every:
        days.setdefault(one.asset_key, set()).add(one.partition)
    newest = {asset: _newest(instance, asset, of_asset) for asset, of_asset in days.items()}
    for one in every:
        record = newest[one.asset_key].get(one.partition)
        yield one if record is None else targeting(one, record)


def _newest(
    instance: dg.DagsterInstance, asset: dg.AssetKey, days: set[str | None]
) -> dict[str | None, dg.EventLogRecord]:
    """The newest materialization of each day that has a materialization; of None, of any day."""
    found: dict[str | None, dg.EventLogRecord] = {}
    for record in instance.fetch_materializations(asset, limit=1).records if None in days else ():
        found[None] = record
    left = {day for day in days if day is not None}
    while left:
        wanted = dg.AssetRecordsFilter(asset_key=asset, asset_partitions=sorted(left))
        limit = min(len(left), _MOST_RECORDS)
        records = instance.fetch_materializations(wanted, limit=limit).records
        if not records:
            break
        for record in records:  # the newest first
            if record.partition_key is not None:
                found.setdefault(record.partition_key, record)
        left = {day for day in left if day not in found}
    return found
