"""What Dagster does with the values that steps return."""

from __future__ import annotations

import dagster as dg


def results_resource() -> dg.IOManagerDefinition:
    """Defines the I/O manager of every step: it writes no file, and run config has no say in it.

    Steps write tables and return nothing. Dagster's default would pickle a value into a folder
    that run config may name.
    """
    return dg.IOManagerDefinition(
        lambda _: dg.InMemoryIOManager(),  # type: ignore[no-untyped-call]
        config_schema={},
        description="Keeps what steps return in memory: steps return nothing, they write tables.",
    )
