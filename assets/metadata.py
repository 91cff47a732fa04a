"""What a materialization and a check say of themselves in the UI."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime

import dagster as dg
from pyspark.sql import types as T

from windows_pipeline.jobs import JobResult
from windows_pipeline.quality.validation import CheckResult
from windows_pipeline.tables.delta import Table

Metadata = dict[str, dg.MetadataValue]


def table_metadata(table: Table, result: JobResult) -> Metadata:
    """Rows, schema, version and what the job says of the run."""
    metadata: Metadata = {
        "dagster/row_count": dg.MetadataValue.int(result.rows[table.name]),
        "dagster/column_schema": _column_schema(table.schema),
        "dagster/uri": dg.MetadataValue.text(table.location),
        "delta_version": dg.MetadataValue.int(result.versions[table.name]),
    }
    return metadata | _facts(result.facts)


def check_metadata(result: CheckResult) -> Metadata:
    """How many rows failed, and the first of them."""
    metadata: Metadata = {"failing_rows": dg.MetadataValue.int(result.failing_rows)}
    if result.sample:
        metadata["sample"] = dg.MetadataValue.table(
            [dg.TableRecord(row) for row in result.sample],
            dg.TableSchema([dg.TableColumn(name) for name in result.sample[0]]),
        )
    return metadata


def _facts(facts: Mapping[str, object]) -> Metadata:
    shown: Metadata = {}
    for name, value in facts.items():
        if value is None:
            continue
        if name.endswith("_ms") and isinstance(value, int):
            instant = datetime.fromtimestamp(value / 1000, UTC).timestamp()
            shown[name.removesuffix("_ms")] = dg.MetadataValue.timestamp(instant)
        elif isinstance(value, int):
            shown[name] = dg.MetadataValue.int(value)
        else:
            shown[name] = dg.MetadataValue.text(
                value if isinstance(value, str) else json.dumps(value)
            )
    return shown


def _column_schema(schema: T.StructType) -> dg.MetadataValue:
    columns = [
        dg.TableColumn(
            field.name, field.dataType.simpleString(), description=field.metadata.get("comment")
        )
        for field in schema
    ]
    return dg.MetadataValue.table_schema(dg.TableSchema(columns))
