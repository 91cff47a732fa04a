"""The run config of a job with one step: that step's fields, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg


def fields_of(op: str, fields: Mapping[str, Any]) -> dg.ConfigMapping:
    """The config of a job as its only step has it, so that the launchpad shows these fields alone.

    Without it the launchpad has them below `ops`, the step's name and `config`, beside the config
    of executors and loggers.

    Args:
        op: The step's name.
        fields: Its fields.
    """
    return dg.ConfigMapping(
        config_schema=dict(fields),
        config_fn=lambda config: {"ops": {op: {"config": config}}},
    )
