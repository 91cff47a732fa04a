"""An expected fault of a step in Dagster is a failure in the words of the command line."""

# No deferred annotations here: Dagster reads the annotations of the functions that it calls.

from collections.abc import Iterator

import dagster as dg
import pytest

from windows_pipeline.dagster.faults import fails_plainly


def write_to_a_full_disk() -> None:
    with open("/dev/full", "wb", 0) as full:  # noqa: PTH123  a device
        full.write(b"x")


def failed_step(node: dg.AssetsDefinition | dg.OpDefinition) -> dg.DagsterEvent:
    """Runs an asset or op; the event of its failure."""
    with dg.DagsterInstance.ephemeral() as instance:
        if isinstance(node, dg.AssetsDefinition):
            result = dg.materialize([node], instance=instance, raise_on_error=False)
        else:
            job = dg.GraphDefinition(name="one", node_defs=[node]).to_job()
            result = job.execute_in_process(instance=instance, raise_on_error=False)
    (event,) = [event for event in result.all_events if event.is_step_failure]
    return event


def asset() -> dg.AssetsDefinition:
    @dg.multi_asset(specs=[dg.AssetSpec("t")])
    @fails_plainly
    def made(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[None]]:
        assert context.has_assets_def
        write_to_a_full_disk()
        yield dg.MaterializeResult("t")

    return made


def op() -> dg.OpDefinition:
    @dg.op
    @fails_plainly
    def done(context: dg.OpExecutionContext) -> None:
        assert context.run_id
        write_to_a_full_disk()

    return done


@pytest.mark.parametrize("node", [asset(), op()], ids=["asset", "op"])
def test_an_expected_fault_is_a_failure_without_a_trace(
    node: dg.AssetsDefinition | dg.OpDefinition,
) -> None:
    data = failed_step(node).step_failure_data
    assert data.user_failure_data is not None
    said = str(data.user_failure_data.description)
    assert "\n  [Errno 28] No space left on device\n  Free space" in said
    assert data.error is not None
    assert data.error.cause is None
    assert "write_to_a_full_disk" not in data.error.to_string()


def test_an_unexpected_error_stays_as_it_is() -> None:
    @dg.op
    @fails_plainly
    def done(context: dg.OpExecutionContext) -> None:
        raise KeyError(context.run_id)

    data = failed_step(done).step_failure_data
    assert data.user_failure_data is None
    assert data.error is not None
    assert "KeyError" in data.error.to_string()
