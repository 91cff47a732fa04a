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
"""What orders arrival, where no column does."""
SHARED_TABLES = ("raw_events", "rejected_records", "arrival_log")
"""The tables that all windows of a pipeline share; no windows may take their folders."""


class Topic(Strict):
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
    options: dict[str, str] = Field(default_factory=dict)
    holes: Literal["refused", "allowed"] = "refused"


class Source(Strict):
    """Landed files, a Delta table or a Kafka topic.

    Landed files lie in one folder an arrival day, ``<path>/YYYY-MM-DD/``. The others are followed
    as a stream only.

    Attributes:
        path: The folder, or the Delta table's, as the file has it; the caller resolves a
            relative one. None for a topic.
        format: How the files are written; `delta` and `kafka` for these.
        kafka: The topic, where the format is `kafka`.
        stream: Whether landed files are followed as a stream, too, and not ingested by days.
        max_per_batch: At most so many files of a folder or table, or records of a topic, are in
            one micro-batch of a stream; None for all that there are.
        columns: The columns to read, each with its type.
        key: The column that windows are kept apart by.
        event_time: The column of the event time: a timestamp, or a bigint in epoch ms.
        arrival: What orders arrival (rule A1): a column, `lines` or `event_time`; left out, the
            lines of landed files, the commits of a Delta table, the offsets of a topic.
        source_partition: The column of the source partition; None for a single one (A1).
        max_ahead: How far an event time may lie after its arrival, and after the end of its
            arrival day, in ms (rule A7).
        idle_after: How far a source partition may lie behind the furthest one before it
            holds nothing back, in ms; None for any distance (rule A4).
        keep_rejected_text: Whether rejected_records has the text of each record.
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
        """Whether it lands files, in a folder a day."""
        return self.format not in ("delta", "kafka")

    @property
    def by_days(self) -> bool:
        """Whether its days are ingested whole, in any order, and again."""
        return self.is_landed and not self.stream

    @property
    def has_several_partitions(self) -> bool:
        """Whether it may have several source partitions (rule A1)."""
        return self.format == "kafka" or self.source_partition is not None

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
    def arrival_column(self) -> str | None:
        """The column that orders arrival; None for what has another order."""
        named = self.arrival in self.columns or self.arrival not in (None, LINES, EVENT_TIME)
        # The event time's own column says no more than 'event_time' does.
        return self.arrival if named and self.arrival != self.event_time else None

    @property
    def order_column(self) -> str | None:
        """The column of accepted records that orders them; None where lines or files do."""
        return "event_time" if self._is_by_event_time else self.arrival_column

    @property
    def is_by_line(self) -> bool:
        """Whether records come in the order of the lines of landed files."""
        return self.is_landed and self.order_column is None

    @property
    def _is_by_event_time(self) -> bool:
        return self.arrival in (EVENT_TIME, self.event_time) and self.arrival_column is None

    @field_serializer("arrival")
    def _canonical_arrival(self, written: str | None) -> str | None:
        """The same text, whether it was written or left out."""
        if self.is_by_line:
            return LINES
        return EVENT_TIME if self._is_by_event_time else written

    @property
    def roles(self) -> dict[str, str]:
        """The columns with a role, by the role's field."""
        fields = {
            "key": self.key,
            "event_time": self.event_time,
            "arrival": self.arrival_column,
            "source_partition": self.source_partition,
        }
        return {role: column for role, column in fields.items() if column is not None}

    @property
    def types(self) -> dict[str, str]:
        """The columns with the types that tables give them: numbers since 1970 are timestamps."""
        return {
            name: "timestamp" if kind in EPOCH_TYPES else kind
            for name, kind in self.columns.items()
        }

    @property
    def values(self) -> dict[str, str]:
        """The value columns with their types in tables: all that have no role."""
        taken = set(self.roles.values())
        return {name: kind for name, kind in self.types.items() if name not in taken}


class Limits(Strict):
    """Shares of a day's records, in percent, beyond which a check fails.

    Attributes:
        rejected: Of all records, those that are rejected.
        late: Of the accepted ones, those that are late.
    """

    rejected: Percent = 50.0
    late: Percent = 50.0


class Partitions(Strict):
    """The arrival units: days, in UTC, from `start` to `end`, both included.

    Without an `end` the history grows.
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
        raise ValueError("is a table's name; take another")
    return name


def _fits_source(windows: Windows, info: ValidationInfo) -> Windows:
    source = info.data.get("source")
    # A source with problems of its own is not there; they are reported already.
    if isinstance(source, Source):
        refuse(windows_problems(windows, source))
    return windows


class Pipeline(Strict):
    """One source, its partitions and one or more named windows over it."""

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
            raise ValueError("holds no windows; name at least one")
        return windows
