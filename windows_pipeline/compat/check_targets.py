"""Links a check's evaluation to a materialization; Dagster has no public API for that.

Without the link, a check's page shows a materialized day as not evaluated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import dagster as dg


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
