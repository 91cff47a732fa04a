"""The source of a pipeline's YAML file, and what must fit together in it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    PositiveInt,
    StrictBool,
    field_serializer,
    model_validator,
)

from windows_pipeline.config.columns.key import Key, key_columns
from windows_pipeline.config.columns.long_form import (
    AnyColumn,
    Derived,
    SourceColumn,
    column_problems,
    derived_columns,
    long_forms,
    metadata_columns,
    paths_of,
    table_type,
    type_of,
)
from windows_pipeline.config.fields import (
    ColumnName,
    ColumnReference,
    Delimiter,
    DurationMs,
    Encoding,
    PositiveDurationMs,
    RecordBytes,
    Text,
)
from windows_pipeline.config.strict import Strict, refuse
from windows_pipeline.text.forms import TextForm
from windows_pipeline.text.locations import whole_location
from windows_pipeline.text.problems import Problem, listed, nearest
from windows_pipeline.text.references import KEEPS_REFERENCES, ReferringText, resolved

LINES, EVENT_TIME = "lines", "event_time"
"""The values of `arrival` that are not columns: the order of lines, and of event time."""
_RAW_COLUMNS = frozenset(
    {
        "key",
        "event_time",
        "source_partition",
        "offset",
        "running_max",
        "arrival_unit",
        "record_arrival_unit",
        "batch",
        "stream_time",
        "close_time",
        "late_by_ms",
        "behind_ms",
        "file",
        "malformed",
        "original",
        "reason",
    }
)
_OF_FORMATS = {
    "delimiter": (("csv",), "its fields are not separated by a character"),
    "encoding": (("csv",), "its text is UTF-8"),
    "max_record_bytes": (("csv", "jsonl"), "its records have no limit of size"),
    "on_bad_file": (("csv", "jsonl", "parquet"), "it has no landed files"),
}
"""Fields that only some formats have: these formats, and why other formats do not."""
ROLE_TYPES = {
    "key": ("string", "bigint", "date", "timestamp"),
    "event_time": ("timestamp", "bigint"),
    "arrival": ("timestamp", "bigint", "date", "double", "string"),
    "source_partition": ("string", "bigint", "date", "timestamp"),
}
"""The types that a column may have, by the role that the source gives it."""


class Topic(Strict):
    """A Kafka topic whose records' values are JSON objects.

    Attributes:
        servers: The brokers that the client contacts first: ``host:port``, separated by commas.
        topic: The topic's name.
        starting: Where the first micro-batch begins.
        options: More configuration of the client, by Kafka's own keys, as for security.
        holes: Whether offsets may be missing between records, as in a compacted topic or one
            with transactions; if refused, a missing offset is an error, as its record is lost.
        partitions: Whether the topic may have `several` partitions, or has `one`, so that sessions
            and windows of rows have one order of arrival; a stream of one stops if there are more.
    """

    servers: Annotated[Text, KEEPS_REFERENCES]
    topic: Annotated[Text, KEEPS_REFERENCES]
    starting: Literal["earliest", "latest"] = "earliest"
    options: dict[str, ReferringText] = Field(default_factory=dict)
    holes: Literal["refused", "allowed"] = "refused"
    partitions: Literal["several", "one"] = "several"


class Source(Strict):
    """Where a pipeline's records come from: landed files, a Delta table or a Kafka topic.

    Landed files are in one folder for each arrival day, ``<path>/YYYY-MM-DD/``. Delta tables and
    topics are read as streams only.

    Attributes:
        path: The folder of landed files, or of the Delta table, as the file writes it: a relative
            path begins at `landing` of the settings; None for a topic.
        format: The format of landed files, or `delta`, or `kafka`.
        kafka: The topic, where the format is `kafka`.
        stream: Whether landed files are read as a stream instead of by arrival days.
        max_per_batch: The most files of a folder or table, or records of a topic, that one
            micro-batch reads; None for no limit.
        delimiter: The character between the fields of CSV files; None for a comma.
        encoding: The encoding of CSV files, as Python's codecs name it; None for UTF-8.
        max_record_bytes: The most bytes that a record of a CSV file, or a line of JSON, may have,
            as UTF-8; a longer one makes the file bad. None for a MiB.
        on_bad_file: Whether a bad landed file makes its day, or the stream, `stop`, or whether
            the day is published without the file, which quarantined_files then lists (`skip`;
            rule A8). None for `stop`.
        columns: The columns, each with its type, or in the long form: read by a path, in a time
            zone, or derived from other columns.
        key: The column, or columns, whose values each have windows of their own; the empty list
            where all records have one key.
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

    path: Annotated[Text, AfterValidator(whole_location), KEEPS_REFERENCES] | None = None
    format: Literal["csv", "jsonl", "parquet", "delta", "kafka"]
    kafka: Topic | None = None
    stream: bool = False
    max_per_batch: PositiveInt | None = None
    delimiter: Delimiter | None = None
    encoding: Encoding | None = None
    max_record_bytes: RecordBytes | None = None
    on_bad_file: Literal["stop", "skip"] | None = None
    columns: dict[ColumnName, AnyColumn]
    key: Key
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
        if self.kafka is not None:
            return self.kafka.partitions == "several"
        return self.format == "kafka" or self.source_partition is not None

    @property
    def one_order(self) -> str:
        """What gives a source of several partitions one order of arrival, for errors."""
        if self.format == "kafka":
            return "write 'partitions: one' under kafka if the topic has one partition"
        return "leave source_partition out"

    @property
    def skips_bad_files(self) -> bool:
        """Whether bad landed files are left out and listed, instead of stopping a run (A8)."""
        return self.on_bad_file == "skip"

    @property
    def required_path(self) -> str:
        """The path of a source that must have one, with the values of environment variables.

        Raises:
            ConfigError: The path refers to a variable that is not set.
            ValueError: The source is a topic, which has no path.
        """
        if self.path is None:
            raise ValueError("source: a topic has no path; read it with windows-pipeline stream")
        return resolved(self.path, may_be_secret=False)

    def require_variables(self) -> None:
        """Requires the environment variables that the location and the options refer to.

        A command asks before it starts Spark.

        Raises:
            ConfigError: A variable is not set.
        """
        locations = [self.path, self.kafka.topic if self.kafka else None]
        for text in locations:
            resolved(text or "", may_be_secret=False)
        for text in [self.kafka.servers, *self.kafka.options.values()] if self.kafka else ():
            resolved(text)

    @property
    def arrival_column(self) -> str | None:
        """The column that orders arrival; None where event time or the source's own order does."""
        is_column = self.arrival in self.columns or self.arrival not in (None, LINES, EVENT_TIME)
        # The column of the event time means the same as 'event_time'.
        return self.arrival if is_column and self.arrival != self.event_time else None

    @property
    def order_column(self) -> str | None:
        """The column of accepted records that orders them; None where their files' lines do."""
        return "_event_time_ms" if self._is_by_event_time else self.arrival_column

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

    @field_serializer("delimiter")
    def _canonical_delimiter(self, written: str | None) -> str | None:
        return None if written == "," else written

    @field_serializer("encoding")
    def _canonical_encoding(self, written: str | None) -> str | None:
        return None if written == "utf-8" else written

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns of the key."""
        return key_columns(self.key)

    @property
    def role_columns(self) -> list[tuple[str, str]]:
        """The columns that have a role, each with the name of its role before it."""
        of_key = [("key", column) for column in self.key_columns]
        return of_key + [pair for pair in self.roles.items() if pair[0] != "key"]

    @property
    def roles(self) -> dict[str, str]:
        """The columns that have a role, by the role; without a key of several columns."""
        fields = {
            "key": self.key if isinstance(self.key, str) else None,
            "event_time": self.event_time,
            "arrival": self.arrival_column,
            "source_partition": self.source_partition,
        }
        return {role: column for role, column in fields.items() if column is not None}

    @property
    def types(self) -> dict[str, str]:
        """The columns with their types in tables, where numbers since 1970 are timestamps."""
        return {name: table_type(column) for name, column in self.columns.items()}

    @property
    def read_types(self) -> dict[str, str]:
        """The columns that are read, not derived, with their declared types."""
        read = self.paths.keys() | self.metadata.keys()
        return {name: type_of(self.columns[name]) for name in self.columns if name in read}

    @property
    def paths(self) -> dict[str, tuple[str, ...]]:
        """Where records hold these columns: the names on the path to the field, from the top."""
        return paths_of(self.columns)

    @property
    def metadata(self) -> dict[str, str]:
        """What is known of a record besides its value, by the column that holds it."""
        return metadata_columns(self.columns)

    def columns_on(self, day: date) -> list[str]:
        """The columns that the files of an arrival day must hold."""
        later = self.columns_after(day)
        return [name for name in self.paths if name not in later]

    def columns_after(self, day: date) -> set[str]:
        """The columns that are null on an arrival day, as they begin on a later one."""
        return {name for name, column in self.long_forms.items() if (column.since or day) > day}

    @property
    def derived(self) -> dict[str, Derived]:
        """The columns that are computed from others, in the order in which to compute them."""
        return derived_columns(self.columns)

    @property
    def long_forms(self) -> dict[str, SourceColumn]:
        """The columns that the file declares in the long form."""
        return long_forms(self.columns)

    @property
    def text_forms(self) -> dict[str, TextForm]:
        """The forms of texts, by column, where a column has another than its type."""
        forms = ((name, column.text_form) for name, column in self.long_forms.items())
        return {name: form for name, form in forms if form is not None}

    @property
    def zones(self) -> dict[str, str]:
        """The zones of local times, by column."""
        forms = self.long_forms.items()
        return {name: column.zone for name, column in forms if column.zone is not None}

    @property
    def values(self) -> dict[str, str]:
        """The value columns, which are those without a role, with their types in tables."""
        with_role = {column for _, column in self.role_columns}
        # A definition with a key of its own has another column `key`.
        return {
            name: kind
            for name, kind in self.types.items()
            if name not in with_role and name.lower() != "key"
        }


def source_problems(source: Source) -> list[Problem]:
    """Checks where a source's records are, which columns have roles, and the columns' names."""
    if not source.columns:
        text = "declares no column; write one 'name: type' line for each column"
        return [Problem(("columns",), {}, text)]
    return [
        *_location_problems(source),
        *_format_problems(source),
        *_role_problems(source),
        *_column_problems(source),
        *column_problems(source.columns, source.role_columns, source.format),
    ]


def _location_problems(source: Source) -> Iterator[Problem]:
    """Checks that files and Delta tables have a path, and Kafka a topic and no other order."""
    if source.format != "kafka":
        if source.path is None:
            folder = "that holds one folder per day" if source.is_landed else "of the Delta table"
            text = f"has no value; write 'path: ...' in source, the folder {folder}"
            yield Problem(("path",), None, text)
        if source.kafka is not None:
            text = f"names a topic, but the format is {source.format}; write format: kafka"
            yield Problem(("kafka",), source.kafka.topic, text)
        return
    if source.kafka is None:
        text = "has no value; write 'kafka: {servers: ..., topic: ...}' in source"
        yield Problem(("kafka",), None, text)
    in_order = "the topic's partitions and offsets order its records"
    reasons = {
        "path": "a topic has no folder",
        "arrival": in_order,
        "source_partition": in_order,
    }
    for field, reason in reasons.items():
        value = getattr(source, field)
        if value is not None:
            text = f"must be left out with format: kafka: {reason}; remove {field}"
            yield Problem((field,), value, text)


def _format_problems(source: Source) -> Iterator[Problem]:
    """Checks that a source has no field of other formats."""
    for field, (formats, reason) in _OF_FORMATS.items():
        value = getattr(source, field)
        if value is not None and source.format not in formats:
            text = f"must be left out with format: {source.format}: {reason}; remove {field}"
            yield Problem((field,), value, text)


def _role_problems(source: Source) -> Iterator[Problem]:
    if source.arrival == "lines" and not source.is_landed and source.arrival_column is None:
        text = (
            f"orders the lines of landed files, but a source of format {source.format} has no "
            "lines; name a column, write event_time, or leave arrival out"
        )
        yield Problem(("arrival",), source.arrival, text)
    if source.idle_after is not None and not source.has_several_partitions:
        text = (
            "has no effect on a single source partition; name the column of the partitions under "
            "source_partition, or leave it out"
        )
        yield Problem(("idle_after",), source.idle_after, text)
    role_of: dict[str, str] = {}
    for role, column in source.role_columns:
        if column not in source.columns:
            fix = nearest(column, source.columns, f"use one of {listed(source.columns)}")
            text = f"is not a column of the source; declare it under columns, or {fix}"
            if not column:
                text = f"is not the name of a column; {fix}"
            yield Problem((role,), column, text)
            continue
        if column in role_of:
            text = f"is already the {role_of[column]}; name another column"
            yield Problem((role,), column, text)
        role_of.setdefault(column, role)
        if source.types[column] not in ROLE_TYPES[role]:
            text = (
                f"is of type {type_of(source.columns[column])}; the {role} must be "
                f"{' or '.join(ROLE_TYPES[role])}: name another column"
            )
            yield Problem((role,), column, text)


def _column_problems(source: Source) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for column in source.columns:
        # Spark ignores the case of column names.
        folded = column.lower()
        if folded in seen:
            text = f"differs from {seen[folded]!r} in case only; rename one of them"
            yield Problem(("columns", column), column, text)
        seen.setdefault(folded, column)
        if folded in _RAW_COLUMNS and source.roles.get(folded) != column:
            names = ", ".join(sorted(_RAW_COLUMNS))
            text = f"is the name of a column that the tables add ({names}); rename it"
            yield Problem(("columns", column), column, text)
