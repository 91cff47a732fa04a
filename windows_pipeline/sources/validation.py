"""Accepts landed records, or rejects them with a reason (rules A6, A7)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.config.source import Source
from windows_pipeline.epochs import EPOCHS, WHOLE_DIGITS, advice
from windows_pipeline.sources.column_values import value_of, with_texts
from windows_pipeline.sources.derived import TYPED, failed, with_derived
from windows_pipeline.sources.landed_columns import AMBIGUOUS
from windows_pipeline.sources.local_times import instants_of, occurs_twice
from windows_pipeline.sources.typed_texts import typed
from windows_pipeline.sources.years import EVENT_YEARS, years_ms

AMBIGUOUS_TIME = "ambiguous_time: "
"""What the reason begins with where a record is rejected for a local time that occurs twice."""
_DAY_MS = 86_400_000
_UTC = {"UTC", "Etc/UTC", "Z", "GMT", "+00:00"}


def judged_records(landed: DataFrame, source: Source, carried: Sequence[str] = ()) -> DataFrame:
    """Converts the declared columns to their types, and adds the reason of a rejection.

    The reason is the first that applies of: ``malformed``, ``null_key`` (also
    empty text), ``null_event_time``, ``unreadable_event_time``, ``null_arrival`` and
    ``unreadable_arrival`` (where the source declares an arrival column),
    ``null_source_partition`` (likewise), ``wrong_type: <column>`` or, of a derived column,
    ``failed_expression: <column>`` (the first in declared order) and ``too_far_ahead``: the event
    time lies more than `max_ahead` after the end of the arrival unit's day (UTC) or, where the
    source has an arrival column of type timestamp, after the arrival time. Where a derived column
    has a role, the faults of its inputs, and its own, come before those of the role. Where a
    column rejects local times that occur twice, ``ambiguous_time: <column>`` takes the place of
    these reasons.

    A text is a timestamp if it holds at least a full date, ISO 8601, with a zone (``Z``,
    ``+02:00``) or in UTC, of the years 1 to 9999; an event time has the years 1000 to 9999. If it
    looks like a number of seconds, milliseconds, microseconds or nanoseconds since 1970 instead,
    the reason says so. A text is a bigint if it is a
    whole number (``5``, also ``5.0``), a decimal if the type holds the number exactly, and a
    double if it is a number within a double's range, ``NaN`` or ``Infinity``: a number is infinite
    or zero only if the text says so. A column that declares a form of times, or signs of numbers,
    has values of texts of this form alone. A text of more than `MAX_VALUE_BYTES` bytes fits the
    type string only.

    Args:
        landed: The rows of `read_landed`; the session must be in time zone UTC.
        source: The columns' roles and types, and `max_ahead`.
        carried: Columns of `landed` to return unchanged.

    Returns:
        A row per record, unordered: `arrival_unit` (date), `file`, and `reason`, null if the
        record is accepted. Accepted records have `source_partition` (text, ``'0'`` if none is
        declared), `key`, `_event_time_ms` (bigint, rounded down; a bigint column is milliseconds
        since 1970), the arrival column if declared, and the value columns, by their own names and
        types. Rejected records have `original`, their text, unless the source keeps none. Where
        a column has a zone, `_ambiguous` says whether the record has a local time that occurs
        twice, and is not rejected for another reason. All other columns are null.

    Raises:
        ValueError: The session's time zone isn't UTC.
    """
    zone = landed.sparkSession.conf.get("spark.sql.session.timeZone")
    if zone not in _UTC:
        raise ValueError(
            f"spark.sql.session.timeZone must be 'UTC', for texts without zone, but is {zone!r}; "
            "set it so in the session, or leave it out of spark in settings.yaml"
        )
    texts = {name: F.col(name) for name in source.read_types}
    read = with_texts(landed.withColumns(_null_before(source)), texts, source).select(
        "arrival_unit",
        "file",
        "original",
        "malformed",
        *carried,
        F.struct(*texts.values()).alias("raw"),
        F.struct(*[value_of(name, source).alias(name) for name in texts]).alias(TYPED),
        *[instants_of(name) for name in source.zones if name in texts],
    )
    judged = (
        with_derived(read, source)
        .withColumn("_event_time_ms", _event_ms(source))
        .withColumn("reason", _reason(source))
    )
    is_accepted = F.col("reason").isNull()
    kept_text = F.col("original") if source.keep_rejected_text else F.lit(None).cast("string")
    return judged.select(
        "arrival_unit",
        "file",
        "reason",
        *carried,
        F.when(~is_accepted, kept_text).alias("original"),
        *_ambiguous(source),
        *[F.when(is_accepted, value).alias(name) for name, value in _accepted(source).items()],
    )


def key_of(parts: Sequence[Column]) -> Column:
    """The column `key` of a key's columns: the only one, or a struct; null where there are none."""
    match parts:
        case []:
            return F.lit(None).cast("string")
        case [column]:
            return column
        case _:
            return F.struct(*parts)


def require_fit_to_order(judged: DataFrame, source: Source) -> None:
    """Refuses an arrival column whose texts are numbers or times, which sort otherwise as text.

    Args:
        judged: The rows of `judged_records`.
        source: The source.

    Raises:
        ValueError: In all accepted records the text is a number, or a time.
    """
    column = source.arrival_column
    if column is None or source.types[column] != "string":
        return
    text = F.col(f"`{column}`")
    found = (
        judged.where(F.col("reason").isNull())
        .agg(
            F.count("*"),
            F.min(text),
            *[
                F.count_if(typed(text, kind).isNotNull())
                for kind in ("bigint", "double", "timestamp")
            ],
        )
        .collect()[0]
    )
    records, example, *readable = found
    for kind, count in zip(("bigint", "double", "timestamp"), readable, strict=True):
        if records and count == records:
            raise ValueError(
                f"source.arrival: column {column!r} is declared string, and each of its "
                f"{records:,} texts is a {kind}, such as {example!r}; text sorts in another order "
                f"('10' comes before '9'). Declare '{column}: {kind}'"
            )


def _accepted(source: Source) -> dict[str, Column]:
    typed = F.col(TYPED)
    partition = F.lit("0")
    if source.source_partition is not None:
        partition = typed[source.source_partition].cast("string")
    named = [*([] if source.arrival_column is None else [source.arrival_column]), *source.values]
    return {
        "source_partition": partition,
        "key": key_of([typed[name].alias(name) for name in source.key_columns]),
        "_event_time_ms": F.col("_event_time_ms"),
        **{name: typed[name] for name in named},
    }


def _ambiguous(source: Source) -> list[Column]:
    """Whether a record has a local time that occurs twice; nothing if no column has a zone."""
    if not source.zones:
        return []
    is_twice = reduce(or_, map(occurs_twice, source.zones))
    reason = F.coalesce("reason", F.lit(AMBIGUOUS_TIME))
    return [(is_twice & reason.startswith(AMBIGUOUS_TIME)).alias(AMBIGUOUS)]


def _null_before(source: Source) -> dict[str, Column]:
    """The columns that come later than the first day, null in the records of earlier days."""
    return {
        name: F.when(F.col("arrival_unit") >= F.lit(column.since), F.col(name))
        for name, column in source.long_forms.items()
        if column.since is not None and name in source.read_types
    }


def _event_ms(source: Source) -> Column:
    time = F.col(TYPED)[source.event_time]
    if source.types[source.event_time] != "bigint":
        time = F.unix_millis(time.cast("timestamp"))
    return F.when(time.between(*years_ms(*EVENT_YEARS)), time)


def _reason(source: Source) -> Column:
    time = _found(source.event_time, source)
    keys = [_found(name, source) for name in source.key_columns]
    is_null = (key.isNull() | (key.cast("string") == "") for key in keys)
    unreadable = _reason_of_text("unreadable_event_time", source.event_time, source)
    reason = F.when(F.col("malformed"), "malformed")
    for column in dict.fromkeys(name for _, name in source.role_columns):
        if column in source.derived:
            for name in (*source.derived[column].inputs, column):
                reason = reason.when(*_fault(name, source))
    reason = (
        reason.when(reduce(or_, is_null, F.lit(False)), "null_key")
        .when(time.isNull(), "null_event_time")
        .when(F.col("_event_time_ms").isNull(), unreadable)
    )
    if source.arrival_column is not None:
        reason = reason.when(_found(source.arrival_column, source).isNull(), "null_arrival")
        unreadable = _reason_of_text("unreadable_arrival", source.arrival_column, source)
        reason = reason.when(F.col(TYPED)[source.arrival_column].isNull(), unreadable)
    if source.source_partition is not None:
        partition = _found(source.source_partition, source)
        reason = reason.when(partition.isNull(), "null_source_partition")
    for name in source.columns:
        reason = reason.when(*_fault(name, source))
    return reason.when(
        F.col("_event_time_ms") > _arrival_ms(source) + source.max_ahead, "too_far_ahead"
    )


def _found(name: str, source: Source) -> Column:
    """A record's value of a column: the text, or the computed value of a derived column."""
    return F.col(TYPED)[name] if name in source.derived else F.col("raw")[name]


def _fault(name: str, source: Source) -> tuple[Column, Column]:
    """Whether a record has no value of a column's type, and the reason to give."""
    if name in source.derived:
        return F.col(failed(name)), _reason_of_text(f"failed_expression: {name}", name, source)
    is_wrong = F.col("raw")[name].isNotNull() & F.col(TYPED)[name].isNull()
    return is_wrong, _reason_of_text(f"wrong_type: {name}", name, source)


def _reason_of_text(reason: str, name: str, source: Source) -> Column:
    """A reason; if a timestamp column holds a number, with the type that fits the number.

    Where the column rejects a local time that occurs twice, that is the reason.
    """
    text = F.lit(reason)
    declared = source.read_types.get(name)
    if declared == "timestamp" or declared in EPOCHS:
        digits = F.length(F.regexp_extract(F.col("raw")[name], WHOLE_DIGITS, 1))
        for kind, epoch in EPOCHS.items():
            looks = F.lit(f"{reason}: {advice(kind)}")
            text = F.when(digits == epoch.digits, looks).otherwise(text)
    if name in source.zones and source.long_forms[name].ambiguous == "reject":
        text = F.when(occurs_twice(name), f"{AMBIGUOUS_TIME}{name}").otherwise(text)
    return text


def _arrival_ms(source: Source) -> Column:
    arrival_unit_end_ms = (F.unix_date("arrival_unit").cast("bigint") + 1) * _DAY_MS
    if source.arrival_column is not None and source.types[source.arrival_column] == "timestamp":
        return F.least(F.unix_millis(F.col(TYPED)[source.arrival_column]), arrival_unit_end_ms)
    return arrival_unit_end_ms
