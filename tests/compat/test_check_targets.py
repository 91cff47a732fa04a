"""An evaluation of a day is of the day's newest materialization, so Dagster shows it as current."""

# No deferred annotations here: Dagster reads the annotations of the functions that it calls.

import warnings
from collections.abc import Iterator

import dagster as dg

from windows_pipeline.dagster.assets.checks import check_of_days
from windows_pipeline.dagster.assets.event_order import in_order, with_targets

DAYS = dg.DailyPartitionsDefinition("2026-11-20", end_date="2026-11-24")
KEY = dg.AssetKey("table")
CHECK = dg.AssetCheckKey(KEY, "rules")
RANGE = {
    "dagster/asset_partition_range_start": "2026-11-20",
    "dagster/asset_partition_range_end": "2026-11-22",
}
RANGE_DAYS = ["2026-11-20", "2026-11-21", "2026-11-22"]


def evaluation(day: str, *, passed: bool = True) -> dg.AssetCheckEvaluation:
    return dg.AssetCheckEvaluation(
        asset_key=KEY, check_name="rules", passed=passed, partition=day, blocking=True
    )


@dg.multi_asset(
    specs=[dg.AssetSpec(KEY)],
    check_specs=[check_of_days("rules", KEY, DAYS)],
    partitions_def=DAYS,
    backfill_policy=dg.BackfillPolicy.single_run(),
    can_subset=True,
)
def table(context: dg.AssetExecutionContext) -> Iterator[object]:
    yield dg.MaterializeResult(KEY)
    yield from with_targets(context.instance, map(evaluation, context.partition_keys))


@dg.op(out={})
def again(context: dg.OpExecutionContext) -> Iterator[object]:
    day = RANGE_DAYS[1]
    made = dg.AssetMaterialization(KEY, partition=day)
    yield from in_order(context.instance, [evaluation(day, passed=False), made])


@dg.job
def by_a_job() -> None:
    again()


def states(instance: dg.DagsterInstance) -> dict[str | None, tuple[str, bool]]:
    """What the last evaluation of each day found, and whether its page shows that."""
    found = instance.event_log_storage.get_asset_check_partition_info([CHECK])
    return {one.partition_key: (one.latest_execution_status.name, one.is_current) for one in found}


def test_each_day_of_a_range_is_current() -> None:
    passed = ("SUCCEEDED", True)
    with dg.DagsterInstance.ephemeral() as instance:
        assert dg.materialize([table], instance=instance, tags=RANGE).success
        assert states(instance) == dict.fromkeys(RANGE_DAYS, passed)
        # A blocking check fails a job's run, too, once all is stored.
        assert not by_a_job.execute_in_process(instance=instance, raise_on_error=False).success
        assert states(instance) == {
            RANGE_DAYS[0]: passed, RANGE_DAYS[1]: ("FAILED", True), RANGE_DAYS[2]: passed
        }  # fmt: skip


def test_a_day_without_a_materialization_has_no_target() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        (one,) = with_targets(instance, [evaluation(RANGE_DAYS[0])])
    assert one.target_materialization_data is None


def test_dagster_does_not_warn_of_the_days_of_a_check() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check_of_days("rules", KEY, DAYS).partitions_def == DAYS
