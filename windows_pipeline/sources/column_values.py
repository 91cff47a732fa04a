"""Reads texts as values of their columns: in the column's form, type and zone (rule A6)."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.config.source import Source
from windows_pipeline.sources.local_times import TEXT, instants_of, with_local_instants
from windows_pipeline.sources.typed_texts import in_form, typed
from windows_pipeline.sources.years import in_years


def with_texts(records: DataFrame, texts: Mapping[str, Column], source: Source) -> DataFrame:
    """Adds what `value_of` reads, of columns that say how their texts are read; of others nothing.

    Args:
        records: The records; the session must be in time zone UTC.
        texts: The texts, by column.
        source: The source that declares the columns.
    """
    forms, zones = source.text_forms, source.zones
    # In a step of its own, as Spark would write a text again for each mention in one expression.
    written = records.withColumns(
        {
            TEXT + name: in_form(text, forms[name]) if name in forms else text
            for name, text in texts.items()
            if name in forms or name in zones
        }
    )
    return with_local_instants(written, {name: zones[name] for name in texts if name in zones})


def value_of(name: str, source: Source) -> Column:
    """A column's value of its text; null if the text is not a value of the type, in its form."""
    column = source.long_forms.get(name)
    if column is None or not column.reads_text:
        return typed(F.col(name), source.read_types[name])
    if column.zone is None:
        return typed(F.col(TEXT + name), column.type)
    instant, later = instants_of(name)["first"], instants_of(name)["later"]
    match column.ambiguous:
        case "later":
            instant = F.coalesce(later, instant)
        case "reject":
            instant = F.when(later.isNull(), instant)
    return in_years(instant)
