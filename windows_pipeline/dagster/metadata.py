"""The metadata of materializations and checks that Dagster's UI shows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime

import dagster as dg
from pyspark.sql import types as T

from windows_pipeline.checks.run import Check, CheckResult
from windows_pipeline.jobs import JobResult
from windows_pipeline.storage.table import Table

Metadata = dict[str, dg.MetadataValue]


def table_metadata(table: Table, result: JobResult) -> Metadata:
    """The metadata common to all days of a run: schema, location, version, rows of the run."""
    return {
        "dagster/column_schema": column_schema(table.schema),
        "dagster/uri": dg.MetadataValue.text(table.location),
        "delta_version": dg.MetadataValue.int(result.versions[table.name]),
        "rows_of_run": dg.MetadataValue.int(sum(result.rows[table.name].values())),
    }


def day_metadata(table: Table, result: JobResult, day: date) -> Metadata:
    """The metadata of one day: rows, late and rejected records, and the close time."""
    rows = result.rows[table.name].get(day, 0)
    metadata: Metadata = {"dagster/partition_row_count": dg.MetadataValue.int(rows)}
    for name, value in result.facts[day].items():
        if name.endswith("_ms") and isinstance(value, int):
            instant = datetime.fromtimestamp(value / 1000, UTC).timestamp()
            metadata[name.removesuffix("_ms")] = dg.MetadataValue.timestamp(instant)
        elif isinstance(value, int):
            metadata[name] = dg.MetadataValue.int(value)
        else:
            metadata[name] = dg.MetadataValue.text(value)
    return metadata


def check_metadata(result: CheckResult) -> Metadata:
    """The number of failing rows, and a sample of them."""
    metadata: Metadata = {"failing_rows": dg.MetadataValue.int(result.failing_rows)}
    if result.sample:
        metadata["sample"] = dg.MetadataValue.table(
            [dg.TableRecord(row) for row in result.sample],
            dg.TableSchema([dg.TableColumn(name) for name in result.sample[0]]),
        )
    return metadata


def check_event(
    asset: dg.AssetKey, check: Check, metadata: Mapping[str, dg.MetadataValue], *, passed: bool
) -> dg.AssetCheckResult:
    """Dagster's event for the result of an asset's check."""
    return dg.AssetCheckResult(
        asset_key=asset,
        check_name=check.name,
        passed=passed,
        severity=severity_of(check),
        metadata=metadata,
    )


def severity_of(check: Check) -> dg.AssetCheckSeverity:
    """How severe a failure of a check is."""
    return dg.AssetCheckSeverity.WARN if check.is_warning else dg.AssetCheckSeverity.ERROR


def column_schema(schema: T.StructType) -> dg.MetadataValue:
    """The columns of a table, with their comments."""
    columns = [
        dg.TableColumn(
            field.name, field.dataType.simpleString(), description=field.metadata.get("comment")
        )
        for field in schema
    ]
    return dg.MetadataValue.table_schema(dg.TableSchema(columns))
