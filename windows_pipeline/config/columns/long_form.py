"""The columns of a source in the long form: read by a path, with a zone, or derived from others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Literal, NamedTuple

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    Tag,
    WithJsonSchema,
    field_serializer,
)

from windows_pipeline.alerts.rule_sql import RuleError, ValueSql, columns_read, compile_column
from windows_pipeline.config.columns.json_path import Path, parse_path, path_text
from windows_pipeline.config.fields import (
    FILE_TIME,
    METADATA_TIMES,
    ColumnType,
    Day,
    Metadata,
    Text,
    TimeFormat,
    Zone,
)
from windows_pipeline.config.strict import Strict
from windows_pipeline.epochs import EPOCHS
from windows_pipeline.text.forms import TextForm, form_of
from windows_pipeline.text.problems import Problem


def _path(value: object) -> object:
    if value is not None and not isinstance(value, (str, tuple)):
        raise ValueError("is not text; write a path in quotes, such as '$.card.country'")
    return parse_path(value) if isinstance(value, str) else value


_PathText = Annotated[
    Path,
    BeforeValidator(_path),
    PlainSerializer(path_text),
    WithJsonSchema(
        {
            "$comment": "path",
            "examples": ["$.card.country"],
            "type": "string",
            "pattern": r"^\$[.\[]",
        }
    ),
]


class SourceColumn(Strict):
    """A column of the source, as `name: {type: ..., ...}`.

    Attributes:
        type: The type of its values.
        expression: SQL over other columns, of which the value is computed. None for a column that
            records hold. With `format`, `decimal`, `thousands` or `zone` it gives the text to read.
        path: Where records hold the value. None for the column's own name.
        metadata: What is known of the record besides its value, and is the column's value: a
            topic's `key`, `timestamp` and `headers.NAME`, or the `file_modification_time` of
            landed files and Delta tables. None for a column that records hold.
        format: The form of texts of times, in Spark's letters, such as `dd.MM.yyyy HH:mm:ss`. None
            for ISO 8601.
        decimal: The sign before the digits after the point in texts of numbers. None for a point.
        thousands: The sign between thousands in texts of numbers. None for none.
        zone: The time zone of texts that name none. None for UTC.
        ambiguous: What a local time of the zone means that occurs twice, as clocks are put back:
            the `first` or the `later` of the two instants, or `reject` to reject the record. None
            for `first`.
        since: The first arrival day on which the column has values; before it is null. None for
            all days.
    """

    model_config = ConfigDict(serialize_by_alias=True)

    type: ColumnType
    expression: Text | None = Field(default=None, alias="as")
    path: _PathText | None = Field(default=None, alias="from")
    metadata: Metadata | None = None
    format: TimeFormat | None = None
    decimal: Literal[","] | None = None
    thousands: Literal[".", ",", " ", "'"] | None = None
    zone: Zone | None = None
    ambiguous: Literal["first", "later", "reject"] | None = None
    since: Day | None = None

    @field_serializer("ambiguous")
    def _canonical_ambiguous(self, written: str | None) -> str | None:
        """The same text whether the file writes the default or leaves it out."""
        return "first" if self.zone is not None and written is None else written

    @property
    def text_form(self) -> TextForm | None:
        """The form of its texts; None for the forms that types have."""
        return form_of(self.format, self.decimal, self.thousands)

    @property
    def reads_text(self) -> bool:
        """Whether it says how texts are read."""
        return self.text_form is not None or self.zone is not None


def _short_if_plain(column: SourceColumn) -> SourceColumn | str:
    """The type alone, if the file says no more: both forms then have one definition."""
    is_plain = column == SourceColumn(type=column.type)
    return column.type if is_plain else column


def _form(value: object) -> str:
    return LONG_FORM if isinstance(value, (dict, SourceColumn)) else SHORT_FORM


SHORT_FORM, LONG_FORM = "type", "column"
"""What pydantic calls the two forms in the path of a mistake."""
AnyColumn = Annotated[
    Annotated[ColumnType, Tag(SHORT_FORM)]
    | Annotated[SourceColumn, AfterValidator(_short_if_plain), Tag(LONG_FORM)],
    Discriminator(_form),
]
"""A column of the source: its type, or the long form."""


class Derived(NamedTuple):
    """A derived column.

    Attributes:
        text: Its expression.
        inputs: The columns from which it is computed, derived ones among them, in declared order.
        type: Its declared type.
        gives_text: Whether the expression gives a text, which is read as a text of records is.
        readable: The columns that its expression may read, with their types in tables.
    """

    text: str
    inputs: tuple[str, ...]
    type: str
    gives_text: bool
    readable: Mapping[str, str]

    def sql(self, table: str) -> ValueSql:
        """Compiles the expression to SQL over a struct that has the columns.

        Raises:
            RuleError: The expression is wrong.
        """
        wanted = None if self.gives_text else self.type
        return compile_column(self.text, self.readable, wanted, table)


def type_of(column: str | SourceColumn) -> str:
    """The declared type of a column."""
    return column if isinstance(column, str) else column.type


def table_type(column: str | SourceColumn) -> str:
    """The type of a column in tables, where numbers since 1970 are timestamps."""
    return "timestamp" if type_of(column) in EPOCHS else type_of(column)


def long_forms(columns: Mapping[str, str | SourceColumn]) -> dict[str, SourceColumn]:
    """The columns that the file declares in the long form."""
    return {name: column for name, column in columns.items() if isinstance(column, SourceColumn)}


def expressions(columns: Mapping[str, str | SourceColumn]) -> dict[str, str]:
    """The expressions of the derived columns."""
    return {
        name: column.expression
        for name, column in long_forms(columns).items()
        if column.expression is not None
    }


def derived_columns(columns: Mapping[str, str | SourceColumn]) -> dict[str, Derived]:
    """The derived columns, in declared order; each may read those before it.

    Raises:
        RuleError: An expression cannot be parsed.
    """
    found: dict[str, Derived] = {}
    derived, forms = expressions(columns), long_forms(columns)
    readable = {name: table_type(column) for name, column in columns.items() if name not in derived}
    for name, text in derived.items():
        read = columns_read(text)
        of_derived = {column for other in read & found.keys() for column in found[other].inputs}
        inputs = tuple(column for column in columns if column in read | of_derived)
        column = forms[name]
        found[name] = Derived(text, inputs, column.type, column.reads_text, dict(readable))
        readable[name] = table_type(columns[name])
    return found


def metadata_columns(columns: Mapping[str, str | SourceColumn]) -> dict[str, str]:
    """What the columns hold whose values are metadata of the record."""
    forms = long_forms(columns).items()
    return {name: column.metadata for name, column in forms if column.metadata is not None}


def column_problems(
    columns: Mapping[str, str | SourceColumn], roles: Iterable[tuple[str, str]], file_format: str
) -> Iterator[Problem]:
    """Checks the fields of each long form, and the expressions of derived columns.

    Args:
        columns: The columns.
        roles: Each role with its column.
        file_format: The source's format.
    """
    role_of = {column: role for role, column in roles}
    for name, column in long_forms(columns).items():
        for field, value, text in _misplaced(column, file_format):
            yield Problem(("columns", name, field), value, text)
        role = role_of.get(name)
        if column.since is not None and role is not None:
            text = f"leaves the {role} null before that day, so that all its records are rejected"
            yield Problem(("columns", name, "since"), str(column.since), f"{text}; remove since")
    yield from _path_problems(columns)
    yield from _expression_problems(columns)


_OF_TYPES = {
    "zone": ("timestamp",),
    "format": ("timestamp", "date"),
    "decimal": ("double", "decimal", "bigint"),
    "thousands": ("double", "decimal", "bigint"),
}
"""The types of the columns that may have a field."""


def _misplaced(column: SourceColumn, file_format: str) -> Iterator[tuple[str, str, str]]:
    """The fields that do not fit the column's other fields, with value, reason and fix."""
    if column.path is not None and column.expression is not None:
        text = (
            "must be left out of a column with 'as': it is computed, not read; remove one of both"
        )
        yield "from", path_text(column.path), text
    elif column.path is not None and file_format == "csv":
        text = "must be left out with format: csv: its records have no fields within fields"
        yield "from", path_text(column.path), f"{text}; name the column as the header does"
    yield from _misplaced_metadata(column, file_format)
    for field, kinds in _OF_TYPES.items():
        value = getattr(column, field)
        if value is not None and column.type.partition("(")[0] not in kinds:
            text = f"fits a column of type {' or '.join(kinds)}, and this one is {column.type}"
            yield field, value, f"{text}; remove {field}, or declare {kinds[0]}"
        elif field == "thousands" and value == (column.decimal or "."):
            fix = "add decimal: ','" if value == "." else "write another one"
            yield field, value, f"is the decimal sign, too; {fix}"
    if column.ambiguous is not None and column.zone is None:
        text = "must be left out without a zone: no time in UTC occurs twice"
        yield "ambiguous", column.ambiguous, f"{text}; remove it, or name the zone of the times"


def _misplaced_metadata(column: SourceColumn, file_format: str) -> Iterator[tuple[str, str, str]]:
    what = column.metadata
    if what is None:
        return
    of_topic = what != FILE_TIME
    if column.path is not None or column.expression is not None:
        other = "from" if column.path is not None else "as"
        yield "metadata", what, f"must be left out of a column with '{other}'; remove one of both"
    if of_topic != (file_format == "kafka"):
        fix = "write key, timestamp or headers.NAME" if not of_topic else f"write {FILE_TIME}"
        yield "metadata", what, f"is not known of records of format {file_format}; {fix}"
    if what in METADATA_TIMES and column.type != "timestamp":
        yield "metadata", what, f"is a time, and the column is {column.type}; declare timestamp"


def paths_of(columns: Mapping[str, str | SourceColumn]) -> dict[str, Path]:
    """Where records hold the columns that are neither derived nor metadata."""
    elsewhere = {**expressions(columns), **metadata_columns(columns)}
    declared = {name: column.path for name, column in long_forms(columns).items()}
    return {name: declared.get(name) or (name,) for name in columns if name not in elsewhere}


def _path_problems(columns: Mapping[str, str | SourceColumn]) -> Iterator[Problem]:
    """Refuses a path that lies within another one, or differs from it in case only."""
    seen: dict[str, Path] = {}
    for name, path in paths_of(columns).items():
        field = ("columns", name) if path == (name,) else ("columns", name, "from")
        for other, earlier in seen.items():
            if len(path) == len(earlier) == 1:
                continue  # checked as names of columns
            text = _clash(path, earlier)
            if text is not None:
                yield Problem(field, path_text(path), f"{text} {path_text(earlier)} of {other!r}")
                break
        seen[name] = path


def _clash(path: Path, earlier: Path) -> str | None:
    """Why a record's values at two paths can't both be read; None if they can."""
    for one, other in zip(path, earlier, strict=False):
        if one != other:
            if one.lower() == other.lower():
                return "has a name that differs in case only, which Spark ignores: read this, or"
            return None
    if len(path) > len(earlier):
        return "is a field within a field that is read whole: read either this or"
    if len(path) < len(earlier):
        return "is read whole, and a field within it is read, too: read either this or"
    return None


def _expression_problems(columns: Mapping[str, str | SourceColumn]) -> Iterator[Problem]:
    derived = expressions(columns)
    if derived and len(derived) == len(columns):
        text = "are all derived; declare a column that records hold"
        yield Problem(("columns",), None, text)
        return
    reads: dict[str, list[str]] = {}
    for name, text in derived.items():
        field = ("columns", name, "as")
        try:
            reads[name] = [other for other in derived if other in columns_read(text)]
        except RuleError as error:
            yield Problem(field, text, error.reason)
    # Columns whose expressions can't be parsed are left out, and so are those that read them.
    parsed = {
        name: column for name, column in columns.items() if name not in derived or name in reads
    }
    compiled = derived_columns(parsed)
    earlier: set[str] = set()
    for name, others in reads.items():
        field = ("columns", name, "as")
        later = next((other for other in others if other not in earlier), None)
        earlier.add(name)
        if later is not None:
            text = (
                f"reads {later!r}, a derived column that is not above it; declare {later!r} above "
                f"{name!r}, or, where it depends on {name!r}, compute one from other columns"
            )
            if later == name:
                text = "depends on itself; compute it from other columns"
            yield Problem(field, derived[name], text)
            continue
        if not reads.keys() >= set(others):
            continue
        try:
            compiled[name].sql("record")
        except RuleError as error:
            yield Problem(field, derived[name], error.reason)
