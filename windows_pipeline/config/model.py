"""The pydantic model of a pipeline's YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    PositiveInt,
    StrictBool,
    ValidationInfo,
    field_validator,
    model_validator,
)

from windows_pipeline.aggregates import Aggregate, parse_aggregate
from windows_pipeline.config.checks import (
    fixed_result_columns,
    partition_problems,
    source_problems,
    windows_problems,
)
from windows_pipeline.config.fields import (
    AggregateText,
    ColumnName,
    ColumnType,
    Day,
    DurationMs,
    Identifier,
    Instant,
    PositiveDurationMs,
    Text,
    epoch_ms,
)
from windows_pipeline.config.problems import FieldProblems, Problem
from windows_pipeline.rules import compile_expression
from windows_pipeline.windows import SlidingWindows

SHARED_TABLES = ("raw_events", "rejected_records", "arrival_log")
"""The tables that all windows of a pipeline share; no windows may take their folders."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _refuse(problems: list[Problem]) -> None:
    if problems:
        raise FieldProblems(problems)


class Topic(_Strict):
    """A topic; its records' values are JSON objects.

    Attributes:
        servers: The brokers to ask first: ``host:port``, with commas between.
        topic: Its name.
        starting: Where the first micro-batch begins.
        options: What else the client needs, by Kafka's own names, as for security.
        holes: Whether offsets may be missing between records, as in a compacted topic or one
            with transactions; else a hole is an error: its records are lost.
    """

    servers: Text
    topic: Text
    starting: Literal["earliest", "latest"] = "earliest"
    options: dict[str, str] = {}
    holes: Literal["refused", "allowed"] = "refused"


class Source(_Strict):
    """Landed files, a Delta table or a Kafka topic.

    Landed files lie in one folder an arrival day, ``<path>/YYYY-MM-DD/``. The others are read as
    a stream only.

    Attributes:
        path: The folder, or the Delta table's, as the file has it; the caller resolves a
            relative one. None for a topic.
        format: How the files are written; `delta` and `kafka` for these.
        kafka: The topic, where the format is `kafka`.
        max_per_batch: At most so many files of a folder or table, or records of a topic, are in
            one micro-batch of a stream; None for all that there are.
        columns: The columns to read, each with its type.
        key: The column that windows are kept apart by.
        event_time: The column of the event time: a timestamp, or a bigint in epoch ms.
        arrival: The column that orders arrival; None for the order of the files.
        source_partition: The column of the source partition; None for a single one (A1).
        max_ahead: How far an event time may lie after its arrival, in ms (rule A7).
        idle_after: How far a source partition may lie behind the furthest one before it
            holds nothing back, in ms; None for any distance (rule A4).
    """

    path: Text | None = None
    format: Literal["csv", "jsonl", "parquet", "delta", "kafka"]
    kafka: Topic | None = None
    max_per_batch: PositiveInt | None = None
    columns: dict[ColumnName, ColumnType]
    key: str
    event_time: str
    arrival: str | None = None
    source_partition: str | None = None
    max_ahead: DurationMs = 86_400_000
    idle_after: PositiveDurationMs | None = None

    @model_validator(mode="after")
    def _roles_fit_columns(self) -> Self:
        _refuse(source_problems(self))
        return self

    @property
    def is_landed(self) -> bool:
        """Whether it lands files by day, which can be ingested in any order."""
        return self.format not in ("delta", "kafka")

    @property
    def place(self) -> str:
        """The path.

        Raises:
            ValueError: It is a topic, which has none.
        """
        if self.path is None:
            raise ValueError("source: a topic has no path; read it with windows-pipeline stream")
        return self.path

    @property
    def roles(self) -> dict[str, str]:
        """The columns with a role, by the role's field."""
        fields = {
            "key": self.key,
            "event_time": self.event_time,
            "arrival": self.arrival,
            "source_partition": self.source_partition,
        }
        return {role: column for role, column in fields.items() if column is not None}

    @property
    def values(self) -> dict[str, ColumnType]:
        """The value columns and their types: all that have no role."""
        taken = set(self.roles.values())
        return {name: kind for name, kind in self.columns.items() if name not in taken}


class Partitions(_Strict):
    """The arrival units: days, in UTC, from `start` to `end`, both included.

    Without an `end` the history grows.
    """

    unit: Literal["day"] = "day"
    start: Day
    end: Day | None = None

    @model_validator(mode="after")
    def _end_not_before_start(self) -> Self:
        _refuse(partition_problems(self))
        return self


class Rule(_Strict):
    """An alert rule over final results (rule E5).

    Attributes:
        when: SQL that is true for a window that breaks the rule.
        severity: SQL of a number, largest for the worst window of an episode.
    """

    when: Text
    severity: Text

    def when_sql(self, columns: Mapping[str, str]) -> str:
        """The condition as SQL for Spark, over `Windows.result_columns`.

        Raises:
            RuleError: See `windows_pipeline.rules.compile_expression`.
        """
        return compile_expression(self.when, columns, "boolean")

    def severity_sql(self, columns: Mapping[str, str]) -> str:
        """The severity as SQL for Spark, over `Windows.result_columns`.

        Raises:
            RuleError: See `windows_pipeline.rules.compile_expression`.
        """
        return compile_expression(self.severity, columns, "number")


class Windows(_Strict):
    """A named window definition with what is computed in it.

    Attributes:
        kind: What kind of window.
        time_difference: The most that two records of one window are apart, ms (rule B2).
        grace: How long after its end a window still takes records, ms (rule A3).
        first_window_start: No window starts before it (rule B6); None for no bound.
        emit_empty: Whether a silence gives a window of count 0 (rule B8).
        partial_results: Whether keyed_windows holds open windows too, or closed ones only.
        aggregates: Calls such as ``avg(dep_delay)``, by the name of their result.
        alerts: The alert rules, by name.
    """

    kind: Literal["sliding"]
    time_difference: PositiveDurationMs
    grace: DurationMs
    first_window_start: Instant | None = None
    emit_empty: StrictBool = False
    partial_results: StrictBool = True
    aggregates: dict[Identifier, AggregateText]
    alerts: dict[Identifier, Rule] = {}

    @property
    def spec(self) -> SlidingWindows:
        """The window specification."""
        first = self.first_window_start
        return SlidingWindows(
            self.time_difference,
            self.grace,
            None if first is None else epoch_ms(first),
            self.emit_empty,
        )

    @property
    def aggregate_list(self) -> list[Aggregate]:
        """The aggregates, in the order of the file."""
        return [parse_aggregate(name, text) for name, text in self.aggregates.items()]

    def result_columns(self, source: Source) -> dict[str, str]:
        """The columns of final results that a rule may use, each with its Spark type."""
        columns = fixed_result_columns(source)
        for aggregate in self.aggregate_list:
            columns[aggregate.name] = aggregate.result_type(source.columns[aggregate.column])
        return columns


def _windows_name(name: str) -> str:
    if name in SHARED_TABLES:
        raise ValueError("is a table's name; take another")
    return name


def _fits_source(windows: Windows, info: ValidationInfo) -> Windows:
    source = info.data.get("source")
    # A source with problems of its own is not there; they are reported already.
    if isinstance(source, Source):
        _refuse(windows_problems(windows, source))
    return windows


class Pipeline(_Strict):
    """One source, its partitions and one or more named windows over it."""

    name: Identifier
    source: Source
    partitions: Partitions
    windows: dict[
        Annotated[Identifier, AfterValidator(_windows_name)],
        Annotated[Windows, AfterValidator(_fits_source)],
    ]

    @field_validator("windows")
    @classmethod
    def _some_windows(cls, windows: dict[str, Windows]) -> dict[str, Windows]:
        if not windows:
            raise ValueError("holds no windows; name at least one")
        return windows
