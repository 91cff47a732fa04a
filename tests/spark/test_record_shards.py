"""Records of one key, cut into shards by their number, give the results of all at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from random import Random

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.support.spark_cases import PAIRS, SHORT_SHARDS, aggregate_of
from windows_pipeline.aggregates import FUNCTIONS, parse_aggregate
from windows_pipeline.aggregates.function import Takes
from windows_pipeline.checks.window_rules import recount_windows
from windows_pipeline.engine.preaggregation.partial_result import ShortResult
from windows_pipeline.engine.preaggregation.partial_results import PARTIAL_RESULTS
from windows_pipeline.engine.record_shards import (
    cuts_by,
    in_record_shards,
    in_shards,
    order_of_arrival,
    order_of_time,
)
from windows_pipeline.engine.running_shards import in_running_shards
from windows_pipeline.engine.time_shards import IN_HOME_SHARD, TIME_SHARD
from windows_pipeline.incremental.late import late_records
from windows_pipeline.incremental.windows import arrival_unit_windows
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.kernels.windows.chunk import Closing
from windows_pipeline.tuning import TUNING, Tuning
from windows_pipeline.windows import (
    ROW_KEY,
    CountWindows,
    GracedRows,
    LookAround,
    RowWindow,
    SessionRows,
    SessionWindows,
    SeveralRows,
    SlideRows,
    TumbleRows,
)
from windows_pipeline.windows.frames.bounds import FrameUnit

ONE_KEY = replace(SHORT_SHARDS, one_key=True)
GRACE_MS = 6
KEPT = ["_event_time_ms", *ROW_KEY]
FIRST_DAY = date(2026, 11, 1)
AGGREGATES = [
    parse_aggregate("total", "sum(real)"),
    parse_aggregate("least", "min(whole)"),
    parse_aggregate("latest", "last(whole)"),
    parse_aggregate("listed", "collect_list(whole)"),
]


def rows(back: int | None, ahead: int | None) -> SlideRows:
    return SlideRows(unit=FrameUnit.ROWS, back=back, ahead=ahead)


CUT: dict[str, RowWindow | SeveralRows | CountWindows] = {
    "count": CountWindows(4, 3),
    "count, with gaps": CountWindows(2, 5),
    "count, short first": CountWindows(5, 2, short_first=True),
    "rows back": rows(3, 0),
    "rows ahead": rows(0, 3),
    "rows around": rows(2, 2),
    "rows after": rows(-1, 3),
    "rows before": rows(5, -2),
    "blocks": TumbleRows(unit=FrameUnit.ROWS, size=3),
    "sessions": SessionRows(gap_ms=4),
    "two units": SeveralRows(
        (("near", rows(3, 1)), ("soon", SlideRows(unit=FrameUnit.RANGE, back=9, ahead=4)))
    ),
}
RUNNING: dict[str, RowWindow | SeveralRows] = {
    "up to the row": rows(None, 0),
    "up to later rows": rows(None, 3),
    "up to earlier rows": rows(None, -2),
    "up to an instant": SlideRows(unit=FrameUnit.RANGE, back=None, ahead=0),
    "up to an earlier instant": SlideRows(unit=FrameUnit.RANGE, back=None, ahead=-7),
    "up to a later instant": SlideRows(unit=FrameUnit.RANGE, back=None, ahead=5),
    "of records with a near frame": SeveralRows((("all", rows(None, 0)), ("near", rows(3, 1)))),
    "of time with a near frame": SeveralRows(
        (("all", SlideRows(unit=FrameUnit.RANGE, back=None, ahead=2)), ("near", rows(3, 0)))
    ),
}
OF_RUNNING = [
    parse_aggregate(name.replace("(", "_").strip(")"), name)
    for name in (
        "count(whole)",
        "sum(whole)",
        "sum(real)",
        "avg(real)",
        "variance(real)",
        "stddev_pop(whole)",
        "sum(price)",
        "avg(price)",
        "variance(price)",
        "sum(wide)",
        "stddev(wide)",
        "sum(wild)",
        "avg(wild)",
        "var_pop(wild)",
        "sum(huge)",
        "avg(huge)",
        "variance(huge)",
    )
]
OF_RUNNING += [
    aggregate_of(f"{function.name}_{column}", function, column)
    for column, kind in {"whole": "bigint", "wild": "double", "pair": PAIRS["pair"]}.items()
    for function in FUNCTIONS.values()
    if function.takes in (Takes.ORDERED, Takes.PAIRS)
    and (function.second == "by") == (column == "pair")
    and isinstance(PARTIAL_RESULTS.get(function.name), ShortResult)
]
WHOLE: dict[str, RowWindow | SeveralRows] = {
    "all to come": rows(0, None),
    "all so far, and all to come": SeveralRows(
        (("before", rows(None, 0)), ("after", rows(0, None)))
    ),
}


def arrived() -> Iterable[tuple[object, ...]]:
    """Records of three days, with ties, silences and late records; offsets have gaps."""
    random = Random(450)
    time_ms = latest_ms = -40
    for day in range(3):
        for offset in range(60):
            time_ms += random.choice((0, 0, 1, 2, 4, 9))
            own_ms = time_ms - random.choice((0, 0, 0, 2, 5, 12))
            latest_ms = max(latest_ms, own_ms)
            arrival_unit = FIRST_DAY + timedelta(days=day)
            whole, real = random.randrange(100), random.choice((1e16, 0.1, -1e16, 7.0))
            price = random.choice((None, Decimal(whole) / 4, Decimal("-9999999.99")))
            wide = Decimal(random.choice((-(10**30), 1, 10**30)))
            word = random.choice(("a", "b", None))
            wild = random.choice((5e-324, -2.5e-320, 1e308, -1e308, 3.0, None, 0.0, -0.0))
            if offset in (50, 55) and day:
                wild = random.choice((float("inf"), float("nan"), float("-inf")))
            huge = random.choice((2**62, -(2**62), -(2**63), 2**63 - 1, 5, None))
            arrived_ms = latest_ms - GRACE_MS
            yield (
                arrival_unit,
                3 * offset,
                own_ms,
                arrived_ms,
                whole,
                real,
                price,
                wide,
                word,
                wild,
                huge,
            )


@pytest.fixture(scope="module")
def records(spark: SparkSession) -> DataFrame:
    schema = (
        "arrival_unit date, offset bigint, _event_time_ms bigint, _close_time_ms bigint, "
        "whole bigint, real double, price decimal(9,2), wide decimal(38,3), word string, "
        "wild double, huge bigint"
    )
    frame = spark.createDataFrame(list(arrived()), schema)
    return frame.withColumns(
        {
            "_computed_day": F.lit(1),
            "key": F.lit(None).cast("string"),
            "source_partition": F.lit("0"),
            "event_time": F.timestamp_millis("_event_time_ms"),
            "record_arrival_unit": F.col("arrival_unit"),
            "_is_new": F.col("whole") % 2 == 0,
            "pair": F.when(
                F.col("wild").isNotNull(),
                F.struct(F.col("word").alias("value"), F.col("wild").alias("by")),
            ),
        }
    ).persist()


def found(frame: DataFrame, columns: list[str]) -> list[str]:
    return sorted(map(repr, frame.select(*columns).collect()))


@pytest.mark.parametrize("kind", CUT)
def test_shards_give_the_results_of_all_records_at_once(records: DataFrame, kind: str) -> None:
    """Rules F1, F2, F5, H1: to the bit, each row once."""
    spec = GracedRows(CUT[kind], GRACE_MS)
    closings = {1: Closing(NEVER_MS, 60), 2: Closing(60, 200)}

    def results(tuning: Tuning) -> DataFrame:
        return arrival_unit_windows(records, spec, AGGREGATES, closings, tuning=tuning)

    cut = in_record_shards(records, spec, ONE_KEY)
    assert cut.select(TIME_SHARD).distinct().count() > 2
    assert cut.where(IN_HOME_SHARD).count() == records.count()
    columns = results(TUNING).columns
    whole = found(results(TUNING), columns)
    assert len(whole) > 10
    assert found(results(ONE_KEY), columns) == whole


@pytest.mark.parametrize("kind", RUNNING)
def test_windows_from_the_first_record_on_are_those_of_all_at_once(
    records: DataFrame, kind: str
) -> None:
    """Rules F1, F2, G2, H1: to the bit, of slices of earlier records and the shard's own."""
    spec = GracedRows(RUNNING[kind], GRACE_MS)
    closings = {1: Closing(NEVER_MS, 60), 2: Closing(60, 200)}
    aggregates = list(OF_RUNNING)
    if isinstance(spec.window, SeveralRows):
        aggregates += [
            replace(each, name=f"{each.name}_{over}", over=over)
            for each in OF_RUNNING
            for over in ("all", "near")
        ]

    def results(tuning: Tuning) -> DataFrame:
        return arrival_unit_windows(records, spec, aggregates, closings, tuning=tuning)

    cut = in_running_shards(records, spec, aggregates, KEPT, ONE_KEY)
    assert cut is not None
    assert len(set(cut.earlier[TIME_SHARD].to_pylist())) > 2
    assert cut.rows.where(IN_HOME_SHARD).count() == records.count()
    columns = results(TUNING).columns
    whole = found(results(TUNING), columns)
    assert len(whole) > 10
    assert found(results(ONE_KEY), columns) == whole


@pytest.mark.parametrize("aggregate", ["collect_list(whole)", "count_distinct(whole)"])
def test_aggregates_that_hold_each_value_are_of_one_shard(
    records: DataFrame, aggregate: str
) -> None:
    """What a shard would copy of all earlier ones grows with their records."""
    spec = GracedRows(RUNNING["up to the row"], GRACE_MS)
    wanted = [parse_aggregate("held", aggregate)]
    assert in_running_shards(records, spec, wanted, KEPT, ONE_KEY) is None


@pytest.mark.parametrize("kind", WHOLE)
def test_frames_without_an_end_are_one_shard(records: DataFrame, kind: str) -> None:
    """Each needs all rows after its own, of which a final result knows none."""
    spec = GracedRows(WHOLE[kind], GRACE_MS)
    assert in_record_shards(records, spec, ONE_KEY) is records
    assert in_running_shards(records, spec, OF_RUNNING, KEPT, ONE_KEY) is None


@pytest.mark.parametrize("kind", ["count", "rows back"])
@pytest.mark.parametrize("number", [0, 2])
def test_few_records_are_one_shard(records: DataFrame, kind: str, number: int) -> None:
    """Two shards are of at least as many records as one shard has, each."""
    few = records.limit(number)
    assert in_record_shards(few, GracedRows(CUT[kind], GRACE_MS), ONE_KEY) is few


def test_slices_of_too_many_records_are_one_shard(
    records: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule G2: a slice's sums are exact up to a number of records."""
    monkeypatch.setattr("windows_pipeline.engine.running_shards.MAX_SLICE_RECORDS", 3)
    spec = GracedRows(RUNNING["up to the row"], GRACE_MS)
    assert in_running_shards(records, spec, OF_RUNNING, KEPT, ONE_KEY) is None


def test_other_keys_are_not_cut(records: DataFrame) -> None:
    """Numbers of records say nothing of a key's own."""
    for spec in (GracedRows(CUT["count"], GRACE_MS), SessionWindows(4, GRACE_MS)):
        assert in_record_shards(records, spec, SHORT_SHARDS) is records


def test_sessions_are_cut_where_none_goes_on(records: DataFrame) -> None:
    """Rules A5, D1, D2: late records are part of what is cut; none is copied."""
    spec, days = SessionWindows(3, GRACE_MS - 3), {1: Closing(NEVER_MS, 120)}
    cut = in_record_shards(records, spec, ONE_KEY)
    assert cut.select(TIME_SHARD).distinct().count() > 2
    assert cut.count() == records.count()
    windows = [arrival_unit_windows(of, spec, AGGREGATES, days) for of in (records, cut)]
    whole, sharded = (found(one, windows[0].columns) for one in windows)
    assert len(whole) > 10
    assert sharded == whole
    late = [late_records(of, None, spec, ["whole"], [1]) for of in (records, cut)]
    whole, sharded = (found(one, late[0].columns) for one in late)
    assert len(whole) > 3
    assert sharded == whole


def test_the_recount_of_sessions_in_shards_is_that_of_all_records(records: DataFrame) -> None:
    """Rules A5, D2: of right, missing, moved and doubled sessions, and of new records."""
    spec, days = SessionWindows(3, GRACE_MS - 3), {1: Closing(NEVER_MS, 120)}
    windows = arrival_unit_windows(records, spec, [], days).where("record_count % 5 != 1")
    end_ms = F.col("_window_end_ms") + F.when(F.col("record_count") % 2 == 0, 1).otherwise(0)
    moved = windows.withColumn("_window_end_ms", end_ms)
    judged = windows.unionByName(moved).persist()

    def recount(tuning: Tuning) -> tuple[list[str], int]:
        rows = recount_windows(records, judged, spec, {}, tuning).drop("previous_end_ms").collect()
        counted = sum(row.counted for row in rows if row.counted is not None)
        return sorted(str(row) for row in rows if row.counted is None), counted

    whole, counted = recount(TUNING)
    assert counted > 20
    for finding in ("same_end=2", "recount=0", "is_window=False"):
        assert any(finding in row for row in whole), finding
    assert recount(ONE_KEY) == (whole, counted)
    judged.unpersist()


def test_without_a_silence_sessions_are_one_shard(records: DataFrame) -> None:
    """Rule D1: any record may join two sessions."""
    assert in_record_shards(records, SessionWindows(30, GRACE_MS), ONE_KEY) is records


def test_a_shard_knows_how_many_records_come_before_it(records: DataFrame) -> None:
    """Whatever the order: by it blocks and count windows are numbered."""
    for order in (order_of_time(records, F.col("_event_time_ms")), order_of_arrival(records)):
        cuts = cuts_by(records, order, ONE_KEY, LookAround(back=4))
        assert cuts is not None
        cut = in_shards(records, cuts)
        numbered = cut.select(TIME_SHARD, "_rows_before", order.position.alias("at")).collect()
        before = sorted(row[0] for row in records.select(order.position).collect())
        for shard in {row[TIME_SHARD] for row in numbered}:
            own = sorted((row["at"], row["_rows_before"]) for row in numbered if row[0] == shard)
            first, rows_before = own[0]
            assert sum(at < first for at in before) == rows_before
            assert {row[1] for row in own} == {rows_before}
