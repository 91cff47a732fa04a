"""The pydantic model of a pipeline's YAML file."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    PositiveInt,
    StrictBool,
    ValidationInfo,
    field_serializer,
    field_validator,
    model_validator,
)

from windows_pipeline.config.checks import (
    partition_problems,
    source_problems,
    windows_problems,
)
from windows_pipeline.config.fields import (
    EPOCH_TYPES,
    ColumnName,
    ColumnReference,
    ColumnType,
    Day,
    DurationMs,
    Identifier,
    Percent,
    PositiveDurationMs,
    Text,
)
from windows_pipeline.config.kinds import AnyWindows
from windows_pipeline.config.strict import Strict, refuse
from windows_pipeline.config.window_kinds import Windows

LINES, EVENT_TIME = "lines", "event_time"
"""The values of `arrival` that are not columns: the order of lines, and of event time."""
SHARED_TABLES = ("raw_events", "rejected_records", "arrival_log")
"""The tables that all windows of a pipeline share; windows cannot have these names."""


class Topic(Strict):
    """A Kafka topic whose records' values are JSON objects.

    Attributes:
        servers: The brokers that the client contacts first: ``host:port``, separated by commas.
        topic: The topic's name.
        starting: Where the first micro-batch begins.
        options: More configuration of the client, by Kafka's own keys, as for security.
        holes: Whether offsets may be missing between records, as in a compacted topic or one
            with transactions; if refused, a missing offset is an error, as its record is lost.
    """

    servers: Text
    topic: Text
    starting: Literal["earliest", "latest"] = "earliest"
    options: dict[str, str] = Field(default_factory=dict)
    holes: Literal["refused", "allowed"] = "refused"


class Source(Strict):
    """Where a pipeline's records come from: landed files, a Delta table or a Kafka topic.

    Landed files are in one folder for each arrival day, ``<path>/YYYY-MM-DD/``. Delta tables and
    topics are read as streams only.

    Attributes:
        path: The folder of landed files, or of the Delta table, as the file writes it; callers
            resolve a relative path. None for a topic.
        format: The format of landed files, or `delta`, or `kafka`.
        kafka: The topic, where the format is `kafka`.
        stream: Whether landed files are read as a stream instead of by arrival days.
        max_per_batch: The most files of a folder or table, or records of a topic, that one
            micro-batch reads; None for no limit.
        columns: The columns to read, each with its type.
        key: The column whose values each have windows of their own.
        event_time: The column of the event time: a timestamp, or a bigint in epoch ms.
        arrival: What orders arrival (rule A1): a column, `lines` or `event_time`. None stands
            for the lines of landed files, the commits of a Delta table, the offsets of a topic.
        source_partition: The column of the source partition; None for a single one (A1).
        max_ahead: How far an event time may be after its arrival, and after the end of its
            arrival day, in ms (rule A7).
        idle_after: How far a source partition may fall behind the furthest one, in ms, before
            it counts as idle and no longer holds the watermark; None for never (rule A4).
        keep_rejected_text: Whether rejected_records has the original text of each record.
    """

    path: Text | None = None
    format: Literal["csv", "jsonl", "parquet", "delta", "kafka"]
    kafka: Topic | None = None
    stream: bool = False
    max_per_batch: PositiveInt | None = None
    columns: dict[ColumnName, ColumnType]
    key: ColumnReference
    event_time: ColumnReference
    arrival: ColumnReference | None = None
    source_partition: ColumnReference | None = None
    max_ahead: DurationMs = 86_400_000
    idle_after: PositiveDurationMs | None = None
    keep_rejected_text: StrictBool = True

    @model_validator(mode="after")
    def _roles_fit_columns(self) -> Self:
        refuse(source_problems(self))
        return self

    @property
    def is_landed(self) -> bool:
        """Whether the source is files, in one folder for each arrival day."""
        return self.format not in ("delta", "kafka")

    @property
    def by_days(self) -> bool:
        """Whether arrival days are ingested whole, in any order, and more than once if need be."""
        return self.is_landed and not self.stream

    @property
    def has_several_partitions(self) -> bool:
        """Whether the source may have several source partitions (rule A1)."""
        return self.format == "kafka" or self.source_partition is not None

    @property
    def required_path(self) -> str:
        """The path of a source that must have one.

        Raises:
            ValueError: The source is a topic, which has no path.
        """
        if self.path is None:
            raise ValueError("source: a topic has no path; read it with windows-pipeline stream")
        return self.path

    @property
    def arrival_column(self) -> str | None:
        """The column that orders arrival; None where event time or the source's own order does."""
        is_column = self.arrival in self.columns or self.arrival not in (None, LINES, EVENT_TIME)
        # The column of the event time means the same as 'event_time'.
        return self.arrival if is_column and self.arrival != self.event_time else None

    @property
    def order_column(self) -> str | None:
        """The column of accepted records that orders them; None where their files' lines do."""
        return "event_time" if self._is_by_event_time else self.arrival_column

    @property
    def is_by_line(self) -> bool:
        """Whether the lines of landed files order arrival."""
        return self.is_landed and self.order_column is None

    @property
    def _is_by_event_time(self) -> bool:
        return self.arrival in (EVENT_TIME, self.event_time) and self.arrival_column is None

    @field_serializer("arrival")
    def _canonical_arrival(self, written: str | None) -> str | None:
        """The same text whether the file writes the default or leaves it out."""
        if self.is_by_line:
            return LINES
        return EVENT_TIME if self._is_by_event_time else written

    @property
    def roles(self) -> dict[str, str]:
        """The columns that have a role, by the name of the role."""
        fields = {
            "key": self.key,
            "event_time": self.event_time,
            "arrival": self.arrival_column,
            "source_partition": self.source_partition,
        }
        return {role: column for role, column in fields.items() if column is not None}

    @property
    def types(self) -> dict[str, str]:
        """The columns with their types in tables, where integers since 1970 are timestamps."""
        return {
            name: "timestamp" if kind in EPOCH_TYPES else kind
            for name, kind in self.columns.items()
        }

    @property
    def values(self) -> dict[str, str]:
        """The value columns, which are those without a role, with their types in tables."""
        with_role = set(self.roles.values())
        return {name: kind for name, kind in self.types.items() if name not in with_role}


class Limits(Strict):
    """Shares of a day's records, in percent, above which a check fails.

    Attributes:
        rejected: The rejected records' share of all records.
        late: The late records' share of the accepted records.
    """

    rejected: Percent = 50.0
    late: Percent = 50.0


class Partitions(Strict):
    """The arrival units: the days in UTC from `start` to `end`, both included.

    Without an `end` each new day adds a unit.
    """

    unit: Literal["day"] = "day"
    start: Day
    end: Day | None = None

    @model_validator(mode="after")
    def _end_not_before_start(self) -> Self:
        refuse(partition_problems(self))
        return self


def _windows_name(name: str) -> str:
    if name in SHARED_TABLES:
        raise ValueError("is the name of a table; use another name")
    return name


def _fits_source(windows: Windows, info: ValidationInfo) -> Windows:
    source = info.data.get("source")
    # pydantic leaves out a source that has problems: those are reported, and windows can't be.
    if isinstance(source, Source):
        refuse(windows_problems(windows, source))
    return windows


class Pipeline(Strict):
    """One source, its arrival units and one or more named windows over its records."""

    name: Identifier
    source: Source
    partitions: Partitions
    limits: Limits = Limits()
    windows: dict[
        Annotated[Identifier, AfterValidator(_windows_name)],
        Annotated[AnyWindows, Field(discriminator="kind"), AfterValidator(_fits_source)],
    ]

    @field_validator("windows")
    @classmethod
    def _some_windows(cls, windows: dict[str, AnyWindows]) -> dict[str, AnyWindows]:
        if not windows:
            raise ValueError("declares no windows; declare at least one")
        return windows
