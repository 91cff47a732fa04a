"""Finds in final windows when the key of a silence has its next record (rules B8, E6).

A key's first window with records after a silence ends at the key's next record.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from windows_pipeline.storage.instants import timestamp_to_ms
from windows_pipeline.storage.joins import join_on

NEXT_RECORD = "_next_record"
"""The column of alerts that `with_next_record` adds."""
SEEN = ("key", "window_end", "record_count")
"""The columns of final windows that show silences and their ends."""
MOST_SILENCES_MS = 32 * 86_400_000
"""Days list a silence that goes on no longer than this, and look back so far for one first."""


def with_next_record(alerts: DataFrame, windows: DataFrame) -> DataFrame:
    """Adds when the key of each alert without records has a record again.

    Args:
        alerts: Alerts.
        windows: `SEEN` of final windows: of each key at least those after its earliest alert
            whose next record matters.

    Returns:
        The alerts with `NEXT_RECORD`: the end of the key's first window with records that ends
        later; null if there is none, and for alerts of windows with records.
    """
    silent = F.col("record_count") == 0
    back = F.when(~silent, F.col("window_end"))
    # In descending order: Spark computes frames that end at a partition's end in quadratic time.
    later = (
        Window.partitionBy("key")
        .orderBy(-timestamp_to_ms("window_end"))
        .rangeBetween(Window.unboundedPreceding, -1)
    )
    ends = windows.where(~silent).select(*SEEN, F.lit(True).alias("_is_window"))
    both = alerts.where(silent).unionByName(ends, allowMissingColumns=True)
    followed = (
        both.withColumn(NEXT_RECORD, F.min(back).over(later))
        .where(F.col("_is_window").isNull())
        .drop("_is_window")
    )
    return followed.unionByName(alerts.where(~silent), allowMissingColumns=True)


def heard_keys(windows: DataFrame) -> DataFrame:
    """The keys that have windows with records, once each."""
    return windows.where(F.col("record_count") > 0).select("key").distinct()


def keys_back(windows: DataFrame, before: DataFrame) -> DataFrame:
    """The keys that have windows with records, but none shortly before; once each.

    A silence that began long before can end only at a record of such a key.

    Args:
        windows: `SEEN` of the windows that some arrival units closed.
        before: `SEEN` of the windows that closed shortly before these arrival units.
    """
    return join_on(heard_keys(windows), heard_keys(before), ["key"], "anti")
