"""Reads local times, texts without a zone, in the zone that their column declares (rule A6)."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.sources.typed_texts import typed

TEXT = "_text_"
"""What the name of the column of texts begins with."""
_WITHOUT_ZONE = (
    r"^\s*[+-]?\d{4,6}-\d{1,2}-\d{1,2}([ T](\d{1,2}(:\d{1,2}(:\d{1,2}(\.\d*)?)?)?)?)?\s*$"
)
_UTC, _FIRST, _INSTANTS = "_utc_", "_first_", "_instants_"
"""What the names of added columns begin with; the columns of a source begin with a letter."""
_LONGEST_SHIFT = "INTERVAL 24 HOURS"
"""No zone has put its clocks back by more, or changed them again within this time."""


def with_local_instants(records: DataFrame, zones: Mapping[str, str]) -> DataFrame:
    """Adds what the texts of columns with a zone may mean; `instants_of` names the added column.

    A text that names an offset or a zone keeps it. Where clocks are put back, a local time occurs
    twice. Where they are put forward, some local times do not occur: such a text means no instant.

    Args:
        records: The texts, in columns of `TEXT` and the name; the session must be in time zone UTC.
        zones: The zone of texts that name none, by column.
    """
    if not zones:
        return records
    # In steps, as Spark would read a text again for each mention in one expression.
    read = records.withColumns(
        {_UTC + name: typed(F.col(TEXT + name), "timestamp") for name in zones}
    )
    first = read.withColumns({_FIRST + name: _first(name, zone) for name, zone in zones.items()})
    return first.withColumns(
        {_INSTANTS + name: _instants(name, zone) for name, zone in zones.items()}
    )


def instants_of(name: str) -> Column:
    """What a text may mean: a struct with the fields `first` and `later`.

    `first` is null if the text is no time, or no local time of the zone. `later` is null unless
    the text is a local time that occurs twice.
    """
    return F.col(_INSTANTS + name)


def occurs_twice(name: str) -> Column:
    """Whether a text is a local time that occurs twice."""
    return instants_of(name)["later"].isNotNull()


def _first(name: str, zone: str) -> Column:
    """The first instant of a local time; of a time that does not occur, another one."""
    utc = F.col(_UTC + name)
    is_local = utc.isNotNull() & F.col(TEXT + name).rlike(_WITHOUT_ZONE)
    return F.when(is_local, F.to_utc_timestamp(utc, zone))


def _instants(name: str, zone: str) -> Column:
    utc, first = F.col(_UTC + name), F.col(_FIRST + name)
    after = first + F.expr(_LONGEST_SHIFT)
    later = utc + (after - F.from_utc_timestamp(after, zone))
    is_twice = (later > first) & (F.from_utc_timestamp(later, zone) == utc)
    occurs = F.from_utc_timestamp(first, zone) == utc
    return F.struct(
        F.when(first.isNull(), utc).when(occurs, first).alias("first"),
        F.when(is_twice, later).alias("later"),
    )
