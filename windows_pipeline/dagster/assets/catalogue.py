"""A table's entry in Dagster's catalogue: its definition in words, its owners and columns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import dagster as dg

from windows_pipeline.alerts.rule_sql import columns_read
from windows_pipeline.config import Pipeline, Source, Windows
from windows_pipeline.config.definition import definition_digest
from windows_pipeline.dagster.assets.metadata import column_schema
from windows_pipeline.dagster.keys import asset_key
from windows_pipeline.report.words import definition_rows
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import PipelineTables
from windows_pipeline.text.markdown import code, plain, table

_DIGITS = 12
"""The number of digits of a definition's digest that are its code version."""
_TIMES = ("window_start", "window_end", "first_event_time", "last_event_time")


def table_spec(
    pipeline: Pipeline,
    stored: Table,
    deps: Sequence[dg.AssetKey],
    partitions: dg.PartitionsDefinition | None = None,
) -> dg.AssetSpec:
    """The asset of a table.

    Its code version is the digest of the definition that its rows follow, so Dagster shows an
    edited definition as a change. The definition's name is one of its kinds, as a node of the
    graph shows these, but only the last part of a key.

    Args:
        pipeline: The pipeline.
        stored: The table.
        deps: The assets of the tables that it is made of.
        partitions: Its partitions, where the function that makes the table does not say them.
    """
    name = _windows_name(stored)
    # Lists show the beginning as it is written, so it has no markup.
    of = pipeline.name if name is None else f"the windows {name} of {pipeline.name}"
    described = [plain(f"{stored.description} It belongs to {of}.")]
    if name is not None and stored.name.endswith("/alerts"):
        described += _rules(pipeline.windows[name])
    if pipeline.description:
        described.append(pipeline.description)  # in Markdown
    if name is not None:
        described.append(_in_words(pipeline, name))
    return dg.AssetSpec(
        asset_key(stored),
        deps=deps,
        group_name=pipeline.name,
        kinds={"pyspark", "delta", *(() if name is None else (name,))},
        description="\n\n".join(described),
        owners=pipeline.owners,
        tags={**pipeline.tags, **({} if name is None else {"windows": name})},
        code_version=definition_digest(stored.definition)[:_DIGITS],
        metadata={
            "location": stored.location,
            "dagster/uri": stored.location,
            "dagster/table_name": stored.name.replace("/", "."),
            "dagster/column_schema": column_schema(stored.schema, _made_of(pipeline, stored)),
            **_declared_in(pipeline, name),
        },
        partitions_def=partitions,
        freshness_policy=_freshness(pipeline, stored),
    )


def source_key(pipeline: Pipeline) -> dg.AssetKey:
    """The key of the asset of what a pipeline reads."""
    return dg.AssetKey([pipeline.name, "source"])


def source_spec(pipeline: Pipeline) -> dg.AssetSpec:
    """The asset of what a pipeline reads, which others write: files, a Delta table or a topic.

    Its location is shown as the pipeline's file has it.
    """
    source = pipeline.source
    if source.kafka is not None:
        what, kind = "The Kafka topic", "kafka"
        location = f"{source.kafka.topic} at {source.kafka.servers}"
    else:
        kind = source.format
        is_table = kind == "delta"
        what = "The Delta table" if is_table else "Landed files, in one folder for each arrival day"
        location = source.path or ""
    described = [f"{what}: {plain(location)}"]
    if pipeline.description:
        described.append(pipeline.description)  # in Markdown
    return dg.AssetSpec(
        source_key(pipeline),
        group_name=pipeline.name,
        kinds={kind},
        description="\n\n".join(described),
        owners=pipeline.owners,
        tags=pipeline.tags,
        metadata={"location": location, **_declared_in(pipeline, None)},
    )


def column_lineage(tables: PipelineTables, stored: Table) -> dict[str, dg.MetadataValue]:
    """The columns of raw_events from which a window table's columns are computed.

    Returns:
        Metadata of a materialization, where Dagster looks for it; none for a table of the source.
    """
    if _windows_name(stored) is None:
        return {}
    raw = asset_key(tables.raw_events)
    lineage = dg.TableColumnLineage(
        {
            column: [dg.TableColumnDep(raw, name) for name in names]
            for column, names in _made_of(tables.pipeline, stored).items()
        }
    )
    return {"dagster/column_lineage": dg.MetadataValue.column_lineage(lineage)}


def _made_of(pipeline: Pipeline, stored: Table) -> dict[str, list[str]]:
    """The columns of raw_events of which a table's columns are made; none of a source's table."""
    name = _windows_name(stored)
    if name is None:
        return {}
    windows, source = pipeline.windows[name], pipeline.source
    read = {"key": windows.keyed(source).key_columns}
    read |= dict.fromkeys((*_TIMES, "record_count"), (source.event_time,))
    for aggregate in windows.aggregate_list:
        texts = [aggregate.column, *aggregate.texts]
        names = sorted(set().union(*map(columns_read, texts)) & source.types.keys())
        read[aggregate.name] = tuple(names) or (source.event_time,)
    return {
        column: list(dict.fromkeys(_stored_as(name, source) for name in of_column))
        for column, of_column in read.items()
        if column in stored.schema.names
    }


def _stored_as(column: str, source: Source) -> str:
    """The column of raw_events that holds a column of the source."""
    if column in source.key_columns:
        return "key"
    roles = {source.event_time: "event_time", source.source_partition: "source_partition"}
    return roles.get(column, column)


def _freshness(pipeline: Pipeline, stored: Table) -> dg.FreshnessPolicy | None:
    """How often a new materialization of raw_events is expected."""
    if pipeline.expect_every is None or not stored.name.endswith("/raw_events"):
        return None
    window = timedelta(milliseconds=pipeline.expect_every)
    # Dagster's shortest window is a minute.
    return dg.FreshnessPolicy.time_window(fail_window=max(window, timedelta(minutes=1)))


def _windows_name(stored: Table) -> str | None:
    """The window definition that a table belongs to; None for a table of the source."""
    _, *of_windows, _ = stored.name.split("/")
    return of_windows[0] if of_windows else None


def _rules(windows: Windows) -> list[str]:
    """The alert rules of a definition as a table in Markdown; none without a rule."""
    columns = ("alert rule", "level", "when", "runbook")
    rows = [
        (
            plain(name),
            plain(rule.level or ""),
            code(rule.when),
            f"[{plain(rule.runbook)}](<{rule.runbook}>)" if rule.runbook else "",
        )
        for name, rule in windows.alerts.items()
    ]
    return [table(columns, rows)] if rows else []


def _in_words(pipeline: Pipeline, name: str) -> str:
    """A window definition as a table in Markdown."""
    rows = definition_rows(pipeline.windows[name])
    shown = ((plain(field), code(value)) for field, value in rows)
    declared = pipeline.declared_in("windows", name)
    file = "the pipeline's file" if declared is None else declared[0].name
    head = f"as {plain(file)} declares it (after an edit, page *Deployment*: *Reload definitions*)"
    return table(("what", head), shown)


def _declared_in(pipeline: Pipeline, name: str | None) -> dict[str, str]:
    """The file and line that declare a table, as metadata.

    It is a text, as a link to a file of the server is dead in a browser on another machine.
    """
    declared = pipeline.declared_in(*(("source",) if name is None else ("windows", name)))
    return {} if declared is None else {"declared_in": f"{declared[0].name}:{declared[1]}"}
