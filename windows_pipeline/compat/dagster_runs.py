"""Opens an instance for runs that record a command, and ends a run whose command was killed.

Dagster has no public API for either. It writes what the process prints during a run to files of the
run, by the file descriptors of the whole process: a command's output would be lost to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import dagster as dg

_NO_OUTPUT = {
    "module": "dagster._core.storage.noop_compute_log_manager",
    "class": "NoOpComputeLogManager",
}


def instance_of(home: str) -> dg.DagsterInstance:
    """Opens the instance of a folder with a dagster.yaml, whose runs leave all output alone."""
    # Imported here, as the library works without Dagster.
    import dagster as dg
    from dagster._core.instance.ref import InstanceRef

    ref = InstanceRef.from_dir(home, overrides={"compute_logs": _NO_OUTPUT})
    return dg.DagsterInstance.from_ref(ref)


def fail_run(instance: dg.DagsterInstance, run: dg.DagsterRun, why: str) -> None:
    """Marks a run as failed whose process is gone.

    Args:
        instance: The instance.
        run: The run, which has not ended.
        why: What happened, for people.
    """
    instance.report_run_failed(run, message=why)
