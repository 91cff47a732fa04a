"""The I/O manager for the values that steps return."""

from __future__ import annotations

import dagster as dg


def results_resource() -> dg.IOManagerDefinition:
    """Defines the I/O manager of every step: it writes no files and takes no run config.

    Steps write tables and return nothing. Dagster's default I/O manager would pickle values into
    a folder that run config can choose.
    """
    return dg.IOManagerDefinition(
        lambda _: dg.InMemoryIOManager(),  # type: ignore[no-untyped-call]
        config_schema={},
        description="Keeps what steps return in memory: steps return nothing, they write tables.",
    )
