"""Run config for jobs with one step: only that step's fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg


def fields_of(op: str, fields: Mapping[str, Any]) -> dg.ConfigMapping:
    """A job's config that has the fields of its only step, and nothing else.

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
