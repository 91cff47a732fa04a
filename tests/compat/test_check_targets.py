"""What Dagster stores of a check's days, and which evaluation it takes for the check's state."""

# No deferred annotations here: Dagster reads the annotations of the functions that it calls.

from collections.abc import Iterator

import dagster as dg
import pytest

from windows_pipeline.dagster.assets.event_order import in_order, of_step, with_targets

DAYS = dg.DailyPartitionsDefinition("2026-11-20", end_date="2026-11-24")
KEY = dg.AssetKey("table")
CHECK = dg.AssetCheckKey(KEY, "rules")
D20, D21, D22 = "2026-11-20", "2026-11-21", "2026-11-22"
RANGE = {"dagster/asset_partition_range_start": D20, "dagster/asset_partition_range_end": D22}
WARN = dg.AssetCheckSeverity.WARN
Found = dict[str, str]
"""What a check finds, by day: `fails`, `warns` or `passes`."""


def evaluation(day: str, found: str) -> dg.AssetCheckEvaluation:
    return dg.AssetCheckEvaluation(
        asset_key=KEY,
        check_name="rules",
        passed=found == "passes",
        partition=day,
        description=f"{day}: {found}",
        metadata={"rule": found, "records": 7},
        severity=WARN if found == "warns" else dg.AssetCheckSeverity.ERROR,
    )


class Tables:
    """A table whose step finds what the test says, and a job that reports like a command."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self.instance = instance
        self.found: Found = {}
        self.crashes = False

        @dg.multi_asset(
            specs=[dg.AssetSpec(KEY)],
            check_specs=[dg.AssetCheckSpec("rules", asset=KEY)],
            partitions_def=DAYS,
            backfill_policy=dg.BackfillPolicy.single_run(),
            can_subset=True,
        )
        def table(context: dg.AssetExecutionContext) -> Iterator[object]:
            of_op = context.op_execution_context
            if self.crashes:
                raise RuntimeError
            if of_op.selected_asset_keys:
                yield dg.MaterializeResult(KEY)
            yield from of_step(of_op, self._evaluations())

        @dg.op(out={})
        def reports(context: dg.OpExecutionContext) -> Iterator[object]:
            made = [dg.AssetMaterialization(KEY, partition=day) for day in self.found]
            yield from in_order(context.instance, [*self._evaluations(), *made])

        @dg.job
        def command() -> None:
            reports()

        unplanned = dg.define_asset_job("days", dg.AssetSelection.all().without_checks())
        self._command = command
        self._defs = dg.Definitions([table], jobs=[unplanned], executor=dg.in_process_executor)

    def _evaluations(self) -> list[dg.AssetCheckEvaluation]:
        return [evaluation(day, found) for day, found in self.found.items()]

    def run(self, way: str, **found: str) -> list[str | None]:
        """Runs the job of days, a run of the UI, checks alone, or a command; the stored days.

        Args:
            way: Which of these.
            **found: What the check finds, by the number of a day of November: `d20="fails"`.
        """
        self.found = {f"2026-11-{day[1:]}": one for day, one in found.items()}
        days = {
            "dagster/asset_partition_range_start": min(self.found),
            "dagster/asset_partition_range_end": max(self.found),
        }
        if way == "command":
            ran = self._command.execute_in_process(instance=self.instance)
        elif way == "checks":
            job = self._defs.get_implicit_global_asset_job_def().get_subset(
                asset_selection=set(), asset_check_selection={CHECK}
            )
            ran = job.execute_in_process(instance=self.instance)
        else:
            job = (
                self._defs.resolve_job_def("days")
                if way == "days"
                else self._defs.get_implicit_global_asset_job_def()
            )
            ran = job.execute_in_process(
                instance=self.instance, tags=days, raise_on_error=not self.crashes
            )
        return [one.partition for one in ran.get_asset_check_evaluations()]

    @property
    def shown(self) -> tuple[str | None, str, str | None]:
        """What Dagster's pages show: the day, the state, and what it says."""
        record = self.instance.get_latest_asset_check_evaluation_record(CHECK)
        assert record is not None
        if record.status.value == "PLANNED":
            return record.partition, "PLANNED", None
        one = record.evaluation
        assert one is not None
        warns = one.severity == WARN and not one.passed
        return record.partition, "WARNS" if warns else record.status.value, one.description


@pytest.fixture
def tables() -> Iterator[Tables]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Tables(instance)


@pytest.mark.parametrize("way", ["days", "ui", "checks", "command"])
def test_the_summary_fails_while_any_day_stands_failed(tables: Tables, way: str) -> None:
    """It is what Dagster takes for the state, though no run but the first has the failed day.

    A day that passes is stored where Dagster would show it as skipped, or where it stood failed.
    """
    every = way == "ui"
    stored = tables.run(way, d20="passes", d21="fails", d22="warns")
    assert stored == [*([D20] if every else []), D21, D22, None]
    failed = f"2 days stand failed; {D22}: warns"
    assert tables.shown == (None, "FAILED", failed)
    assert tables.run(way, d20="passes") == [*([D20] if every else []), None]
    assert tables.shown == (None, "FAILED", failed)
    assert tables.run(way, d20="passes", d21="passes") == [*([D20] if every else []), D21, None]
    assert tables.shown == (None, "WARNS", f"1 day stands with a warning; {D22}: warns")
    assert tables.run(way, d22="passes") == [D22, None]
    assert tables.shown == (None, "SUCCEEDED", f"no day stands failed; {D22}: passes")
    stored = tables.run(way, d20="passes", d21="passes", d22="passes")
    assert stored == [*([D20, D21, D22] if every else []), None]
    assert tables.shown == (None, "SUCCEEDED", f"no day stands failed; {D22}: passes")


def test_a_run_that_ends_before_its_checks_clears_no_day(tables: Tables) -> None:
    """What it planned and did not evaluate is as it was before."""
    tables.run("days", d20="fails", d21="fails")
    tables.run("days", d20="passes")
    tables.crashes = True
    tables.run("ui", d20="passes", d21="passes", d22="passes")
    tables.crashes = False
    assert tables.shown[1] == "PLANNED"  # shown as failed, as the run failed
    tables.run("days", d22="passes")
    assert tables.shown == (None, "FAILED", f"1 day stands failed; {D21}: fails")


def test_many_failed_days_are_counted_and_the_newest_listed(tables: Tables) -> None:
    """Days that are too long ago to be read have the severity of the summary before."""
    with dg.DagsterInstance.ephemeral() as instance:
        tables = Tables(instance)
        tables.run("command", d01="fails")
        for _ in range(4):
            tables.run("command", **{f"d{day}": "warns" for day in range(10, 40)})
        tables.run("command", d09="passes")
        record = instance.get_latest_asset_check_evaluation_record(CHECK)
    assert record is not None
    one = record.evaluation
    assert one is not None
    assert str(one.description).startswith("31 days stand failed; 2026-11-39: warns")
    assert one.metadata["days_failed"].value == 31
    listed = one.metadata["failed_days"]
    assert isinstance(listed, dg.TableMetadataValue)
    assert [row.data["day"] for row in listed.records] == [
        f"2026-11-{day}" for day in range(39, 19, -1)
    ]
    assert (one.metadata["rule"].value, "records" in one.metadata) == ("warns", False)


def test_each_evaluation_is_of_the_newest_materialization(tables: Tables) -> None:
    """Otherwise Dagster shows the check as not evaluated."""
    tables.run("command", d20="fails", d21="fails")
    found = tables.instance.event_log_storage.get_asset_check_partition_info([CHECK])
    assert {one.partition_key: one.is_current for one in found} == {
        D20: True, D21: True, None: True
    }  # fmt: skip
    with dg.DagsterInstance.ephemeral() as instance:
        (one,) = with_targets(instance, [evaluation(D20, "passes")])
    assert one.target_materialization_data is None
