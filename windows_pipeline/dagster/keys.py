"""The keys of assets."""

from __future__ import annotations

import dagster as dg

from windows_pipeline.storage.catalog import TableSpec


def asset_key(table: TableSpec) -> dg.AssetKey:
    """A table's asset key: the parts of its name."""
    return dg.AssetKey(table.name.split("/"))
