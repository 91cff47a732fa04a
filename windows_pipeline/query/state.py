"""The state of a pipeline: what is closed, what waits, what is unfinished; without Spark."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from windows_pipeline.config import Pipeline, Windows
from windows_pipeline.config.definition import (
    definition_changed,
    definition_digest,
    only_grace_differs,
)
from windows_pipeline.query.tables.arrival_days import LogPart, log_parts, watermark_after_ms
from windows_pipeline.query.tables.local import LocalTable, UnreadableTableError
from windows_pipeline.query.tables.wanted import Wanted
from windows_pipeline.storage import catalog
from windows_pipeline.storage.catalog import PipelineSpecs
from windows_pipeline.storage.files.damage import TableDamagedError
from windows_pipeline.storage.files.rows import is_file
from windows_pipeline.storage.waiting_days import WaitingDays, waiting_days


@dataclass(frozen=True)
class TableState:
    """A table.

    Attributes:
        name: Its name.
        rows: Its number of rows; None if the table does not exist, or its log does not say.
        version: Its newest version; None if the table does not exist.
        through: The last arrival day that has rows; None if that is not known.
    """

    name: str
    rows: int | None
    version: int | None
    through: date | None


@dataclass(frozen=True)
class WindowsState:
    """How far the windows of a definition are.

    Attributes:
        name: The definition's name.
        through: The last day up to which all days are computed; None before the first.
        close_time_ms: The close time after that day: windows that end before it are closed
            (hopping and tumbling windows also those that end at it); None if nothing is closed.
        lacking: The ingested days that can be computed but are not.
    """

    name: str
    through: date | None
    close_time_ms: int | None
    lacking: tuple[date, ...]


@dataclass(frozen=True)
class Unfinished:
    """Something that was begun and is not finished.

    Attributes:
        what: What it is.
        command: The command that resumes it.
    """

    what: str
    command: str


@dataclass(frozen=True)
class PipelineState:
    """How far a pipeline is.

    Attributes:
        through: The last day up to which all days are ingested; None before the first.
        watermark_ms: The watermark after that day; None if there is none.
        missing: The first day that is not ingested, if later days are; it blocks them.
        blocked: The days after the missing one.
        windows: The definitions.
        unfinished: What was begun and is not finished.
        tables: The tables.
    """

    through: date | None
    watermark_ms: int | None
    missing: date | None
    blocked: tuple[date, ...]
    windows: tuple[WindowsState, ...]
    unfinished: tuple[Unfinished, ...]
    tables: tuple[TableState, ...]

    @property
    def waits(self) -> bool:
        """Whether something is left to do."""
        lacks = any(windows.lacking for windows in self.windows)
        return lacks or bool(self.blocked or self.unfinished)


def pipeline_state(tables: PipelineSpecs) -> PipelineState:
    """Looks how far a pipeline's tables are.

    Raises:
        TableDamagedError: A file of a table is damaged.
        UnreadableTableError: Only Spark can read a table.
    """
    pipeline = tables.pipeline
    log = log_parts(tables.arrival_log)
    done = {name: computed_days(tables, name, log) for name in pipeline.windows}
    waiting = waiting_days(pipeline.partitions.start, _ingested(log), done)
    through = _last_before(waiting.missing, log)
    opened = {spec.name: LocalTable.if_there(spec) for spec in tables.written}
    return PipelineState(
        through=through,
        watermark_ms=watermark_after_ms(log, through),
        missing=waiting.missing if waiting.blocked else None,
        blocked=tuple(waiting.blocked),
        windows=tuple(
            _windows_state(name, windows, log, waiting)
            for name, windows in pipeline.windows.items()
        ),
        unfinished=(
            *_unfinished_batch(tables, log),
            *_unfinished_corrections(tables, opened),
            *_stale(pipeline, opened),
            *_lost(tables, log, opened),
        ),
        tables=tuple(_table_state(name, table) for name, table in opened.items()),
    )


def computable_days(tables: PipelineSpecs, windows_name: str) -> list[date]:
    """The ingested days that the windows of a definition lack, and that no missing day blocks.

    Args:
        tables: The pipeline's tables.
        windows_name: The definition.

    Returns:
        The days in order; none of a stream, which computes as it ingests.

    Raises:
        TableDamagedError: A file of a table is damaged.
        UnreadableTableError: Only Spark can read a table.
    """
    log = log_parts(tables.arrival_log)
    done = {windows_name: computed_days(tables, windows_name, log)}
    waiting = waiting_days(tables.pipeline.partitions.start, _ingested(log), done)
    return waiting.lacking.get(windows_name, [])


def computed_days(tables: PipelineSpecs, windows_name: str, log: tuple[LogPart, ...]) -> set[date]:
    """The days for which all tables of a definition are computed; a stream computes as it ingests.

    Raises:
        TableDamagedError: A file of a table is damaged.
        UnreadableTableError: Only Spark can read a table.
    """
    if any(part.batch is not None for part in log):
        return _ingested(log)
    of = tables.of(windows_name)
    days = _days_in(of.computed_days)
    return days & _days_in(of.days_of_firings) if of.firings.is_written else days


def close_time_ms(tables: PipelineSpecs, windows_name: str, last: date | None = None) -> int | None:
    """The close time of a definition's windows, as `WindowsState` has it.

    Args:
        tables: The pipeline's tables.
        windows_name: The definition.
        last: The last arrival day that counts; None for the last one.

    Raises:
        TableDamagedError: A file of a table is damaged.
        UnreadableTableError: Only Spark can read a table.
    """
    pipeline, every = tables.pipeline, log_parts(tables.arrival_log)
    log = tuple(part for part in every if part.arrival_unit <= (last or date.max))
    done = {windows_name: computed_days(tables, windows_name, log)}
    waiting = waiting_days(pipeline.partitions.start, _ingested(log), done)
    return _windows_state(windows_name, pipeline.windows[windows_name], log, waiting).close_time_ms


def _ingested(log: tuple[LogPart, ...]) -> set[date]:
    return {part.arrival_unit for part in log}


def _last_before(day: date, log: tuple[LogPart, ...]) -> date | None:
    return max((one for one in _ingested(log) if one < day), default=None)


def _table_state(name: str, table: LocalTable | None) -> TableState:
    if table is None:
        return TableState(name, None, None, None)
    return TableState(name, table.row_count, table.version, max(table.days, default=None))


def _windows_state(
    name: str, windows: Windows, log: tuple[LogPart, ...], waiting: WaitingDays
) -> WindowsState:
    """The state of a definition, all of whose days are computed but the lacking ones."""
    lacking = waiting.lacking.get(name, [])
    through = _last_before(lacking[0] if lacking else waiting.missing, log)
    watermark_ms = watermark_after_ms(log, through)
    close_time_ms = None if watermark_ms is None else watermark_ms - windows.spec.close_delay_ms
    return WindowsState(name, through, close_time_ms, tuple(lacking))


def _days_in(spec: catalog.TableSpec) -> set[date]:
    table = LocalTable.if_there(spec)
    if table is None:
        return set()
    return set(table.read(Wanted(), columns=["arrival_unit"])["arrival_unit"].to_pylist())


def _unfinished_batch(tables: PipelineSpecs, log: tuple[LogPart, ...]) -> list[Unfinished]:
    """The micro-batch that Spark began and did not commit: in the log, or the one after it."""
    last = max((part.batch for part in log if part.batch is not None), default=None)
    for number in [0] if last is None else [last, last + 1]:
        begun, ended = (
            is_file(tables.stream_checkpoint, f"{kind}/{number}") for kind in ("offsets", "commits")
        )
        if begun and not ended:
            what = f"micro-batch {number} was started and is not in all tables"
            return [Unfinished(what, f"windows-pipeline stream {tables.pipeline.name}")]
    return []


def _unfinished_corrections(
    tables: PipelineSpecs, opened: Mapping[str, LocalTable | None]
) -> list[Unfinished]:
    found, pipeline = [], tables.pipeline
    for name in pipeline.windows:
        table = opened[tables.of(name).corrections.name]
        texts: Mapping[str, str] = {} if table is None else table.properties
        begun = int(texts.get(catalog.CORRECTION_BEGUN, "0"))
        if begun > int(texts.get(catalog.CORRECTION_FINISHED, "0")):
            details = json.loads(texts[catalog.CORRECTION_DETAILS])
            found.append(
                Unfinished(
                    f"correction {begun} of {name} was started and is not finished",
                    f"windows-pipeline correct {pipeline.name} --windows {name} --from "
                    f"{details['first']} --to {details['last']} --cause "
                    f"{shlex.quote(details['cause'])}",
                )
            )
    return found


def require_definition(tables: PipelineSpecs) -> None:
    """Requires that tables follow the pipeline's definition, before a command starts Spark.

    Tables that only Spark can read are left to Spark, as are damaged ones.

    Raises:
        DefinitionChangedError: A table holds rows of another definition.
    """
    for spec in tables.written:
        try:
            table = LocalTable.if_there(spec)
        except (UnreadableTableError, TableDamagedError):
            return
        if table is not None and _is_stale(table):
            stored = json.loads(table.properties.get(catalog.DEFINITION, "{}"))
            by_grace = only_grace_differs(stored, spec.definition)
            first = min(table.days, default=None) if by_grace else None
            raise definition_changed(spec.name, stored, spec.definition, first)


def _is_stale(table: LocalTable) -> bool:
    """Whether a table's rows follow another definition than the pipeline's file."""
    digest = definition_digest(table.spec.definition)
    return table.properties.get(catalog.DIGEST) not in (None, digest)


def _stale(pipeline: Pipeline, opened: Mapping[str, LocalTable | None]) -> list[Unfinished]:
    """The tables whose rows follow another definition than the pipeline's file."""
    names = [name for name, table in opened.items() if table is not None and _is_stale(table)]
    if not names:
        return []
    what = (
        f"the definition changed since these tables were computed: {', '.join(names)}; where only "
        "the grace changed, `correct` keeps what was published"
    )
    return [Unfinished(what, f"windows-pipeline rebuild {pipeline.name}")]


def _lost(
    tables: PipelineSpecs, log: tuple[LogPart, ...], opened: Mapping[str, LocalTable | None]
) -> list[Unfinished]:
    """Whether only one of the tables raw_events and arrival_log exists."""
    raw_events = tables.raw_events.name
    table = opened[raw_events]
    fix = f"windows-pipeline rebuild {tables.pipeline.name} --from raw_events"
    if log and table is None:
        return [Unfinished(f"{raw_events} is gone, and arrival_log names its days", fix)]
    if table is not None and table.row_count and not log:
        what = (
            f"{raw_events} has rows, and arrival_log names none of their days: the first run was "
            "stopped, or arrival_log is gone"
        )
        return [Unfinished(what, fix)]
    return []
