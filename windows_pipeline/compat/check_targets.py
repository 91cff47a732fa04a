"""Links a check's evaluation to a materialization, and reads which days of a check stand failed.

Dagster has no public API for either. Without the link, a check's page shows a materialized asset
as not evaluated.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import dagster as dg

_MOST_READ = 100
"""The most failed evaluations of a check that are read for what they say."""


def targeting(
    evaluation: dg.AssetCheckEvaluation, materialized: dg.EventLogRecord
) -> dg.AssetCheckEvaluation:
    """Returns an evaluation with its link to a materialization.

    Args:
        evaluation: The evaluation.
        materialized: The record of the materialization.
    """
    # Imported here, as the library works without Dagster.
    import dagster as dg
    from dagster._core.definitions.asset_checks.asset_check_evaluation import (
        AssetCheckEvaluationTargetMaterializationData,
    )

    return dg.AssetCheckEvaluation(
        asset_key=evaluation.asset_key,
        check_name=evaluation.check_name,
        passed=evaluation.passed,
        description=evaluation.description,
        metadata=evaluation.metadata,
        severity=evaluation.severity,
        blocking=evaluation.blocking,
        partition=evaluation.partition,
        target_materialization_data=AssetCheckEvaluationTargetMaterializationData(
            storage_id=materialized.storage_id,
            run_id=materialized.run_id,
            timestamp=materialized.timestamp,
        ),
    )


def standing_failed(
    instance: dg.DagsterInstance, run: Mapping[dg.AssetCheckKey, Collection[str]]
) -> dict[dg.AssetCheckKey, dict[str, dg.AssetCheckEvaluation | None]]:
    """The days whose newest evaluation failed, by check.

    It takes one query a check, and another one where there is such a day. A day that many others
    followed has the check's newest failed evaluation without a day, or None. A day that an earlier
    run planned, and did not evaluate, is as it was before.

    Args:
        instance: The instance.
        run: The checks, and the days that the run evaluates.
    """
    from dagster._core.event_api import PartitionKeyFilter
    from dagster._core.storage.asset_check_execution_record import (
        COMPLETED_ASSET_CHECK_EXECUTION_RECORD_STATUSES as COMPLETED,
    )
    from dagster._core.storage.asset_check_execution_record import (
        AssetCheckExecutionRecordStatus as Status,
    )

    store = instance.event_log_storage
    found: dict[dg.AssetCheckKey, dict[str, dg.AssetCheckEvaluation | None]] = {}
    for check, evaluated in run.items():
        days = found[check] = {}
        for info in store.get_asset_check_partition_info([check]):
            day, status = info.partition_key, info.latest_execution_status
            if day is not None and status == Status.FAILED:
                days[day] = None
            elif day is not None and status == Status.PLANNED and day not in evaluated:
                before = store.get_asset_check_execution_history(
                    check, limit=1, status=COMPLETED, partition_filter=PartitionKeyFilter(key=day)
                )
                if before and before[0].status == Status.FAILED:
                    days[day] = before[0].evaluation
        if days.keys() - set(evaluated):
            records = store.get_asset_check_execution_history(
                check, limit=_MOST_READ, status={Status.FAILED}
            )
            of_check = (record.evaluation for record in records if record.partition is None)
            days |= dict.fromkeys((day for day in days if days[day] is None), next(of_check, None))
            days |= {
                record.partition: record.evaluation
                for record in reversed(records)  # the newest last
                if record.partition in days
            }
    return found
