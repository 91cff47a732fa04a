"""Windows in SQL: calls are read from the text, and give what the DataFrame form gives."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import windows_pipeline as wp
from windows_pipeline import SessionWindows, SlidingWindows, TimeWindows, Trigger, count, sum_
from windows_pipeline.aggregates import UserModules
from windows_pipeline.dataframe.sql_calls import WindowCall, window_calls
from windows_pipeline.dataframe.sql_functions import FUNCTIONS
from windows_pipeline.dataframe.windowed import Windowed
from windows_pipeline.flip11 import (
    CURRENT_ROW,
    UNBOUNDED_ROW,
    GroupWindow,
    RowWindow,
    SessionRows,
    Slide,
    SlideRows,
    Tumble,
    TumbleRows,
    rows,
)
from windows_pipeline.windows import WindowSpec

NAMES = ("sliding_windows", "count_windows")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOON_MS = round(NOON.timestamp() * 1000)
SLIDING = (
    "sliding_windows(TABLE(events) PARTITION BY user, time_col => 'ts', "
    "time_difference => '10 minutes', grace => '0 seconds', aggregates => 'count(*), sum(amount)')"
)


def test_calls_are_read_from_the_text() -> None:
    """Quotes, comments, letters beyond ASCII and brackets within do not mislead it."""
    text = (
        "/* é sliding_windows( */ SELECT '😀 sliding_windows(', `a b` FROM "
        "Sliding_Windows ( TABLE (SELECT f(x) AS y FROM t WHERE n = ')') PARTITION BY (`a b`, date)"
        " , time_difference => INTERVAL 10 MINUTES, n => 3, flag => TRUE, text => 'it\\'s' ) AS w"
        " JOIN count_windows(TABLE(u), size => 2) USING (key)"
    )
    first, second = window_calls(text, NAMES)
    assert text[first.start : first.end].startswith("Sliding_Windows ( TABLE")
    assert text[first.end :].startswith(" AS w JOIN")
    assert first == WindowCall(
        "sliding_windows",
        first.start,
        first.end,
        "SELECT f(x) AS y FROM t WHERE n = ')'",
        ("a b", "date"),
        {"time_difference": "10 MINUTES", "n": 3, "flag": True, "text": "it's"},
    )
    assert (second.table, second.partition_by, second.arguments) == ("u", (), {"size": 2})
    assert text[second.end :] == " USING (key)"


@pytest.mark.parametrize(
    ("call", "refusal"),
    [
        ("sliding_windows(events)", "TABLE(...), the records, as its first argument is missing"),
        ("sliding_windows(TABLE events)", "TABLE(...), with parentheses is missing"),
        ("sliding_windows(TABLE(events", "its '(' is not closed"),
        ("sliding_windows(TABLE())", "TABLE() must contain a table or a query"),
        ("sliding_windows(TABLE(e) ORDER BY ts, size => 1)", "only PARTITION BY may"),
        ("sliding_windows(TABLE(e) PARTITION BY 3, size => 1)", "a column's name in PARTITION BY"),
        ("sliding_windows(TABLE(e), 'ts')", "the name of an argument is missing"),
        ("sliding_windows(TABLE(e), size 1)", "'=>' after size is missing"),
        ("sliding_windows(TABLE(e), size => other)", "size takes a literal"),
        ("sliding_windows(TABLE(e), size => -'x')", "size takes a literal"),
        ("sliding_windows(TABLE(e), size => INTERVAL -1 DAY)", "size takes a literal"),
        ("sliding_windows(TABLE(e), size => 1.5)", "size: must be a whole number, not 1.5"),
        ("sliding_windows(TABLE(e), size => 1, SIZE => 2)", "size comes twice"),
        ("sliding_windows(TABLE(e), size => 1", "',' or ')' is missing"),
    ],
)
def test_what_cannot_be_read_is_refused(call: str, refusal: str) -> None:
    """Rule F3: a message that names the function, the argument and the fix."""
    with pytest.raises(ValueError, match=r"^sliding_windows: near ") as refused:
        list(window_calls(f"SELECT * FROM {call}", NAMES))  # noqa: S608
    assert refusal in str(refused.value)


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    records = [(i, "ab"[i % 2], NOON.replace(minute=7 * i % 60), i * i) for i in range(12)]
    frame = spark.createDataFrame(records, "at bigint, user string, ts timestamp, amount bigint")
    frame.createOrReplaceTempView("events")
    return frame


def test_sql_gives_what_the_dataframe_gives(spark: SparkSession, events: DataFrame) -> None:
    """The same windows, filtered and joined as any table of Spark's."""
    windows = SlidingWindows.of_time_difference_and_grace("10 minutes", "0 seconds")
    by_user = wp.windowed(events, windows).by("user").event_time("ts")
    expected = by_user.agg(count(), sum_("amount"))
    found = wp.sql(
        spark,
        f"WITH w AS (SELECT *, '{{x}}' AS braces FROM {SLIDING}) "  # noqa: S608
        "SELECT w.*, total, collect_list_amount FROM w JOIN "
        "count_windows(TABLE(SELECT * FROM events WHERE amount < 100), order_col => 'at', "
        "size => 10, aggregates => 'sum(amount) AS total, percentile(amount, 0.5), count(*), "
        "collect_list(amount)') "
        "WHERE w.count > 0",
    )
    assert found.columns == [*expected.columns, "braces", "total", "collect_list_amount"]
    others = {"braces": F.lit("{x}"), "total": F.lit(285).cast("bigint")}
    others["collect_list_amount"] = F.array(*(F.lit(i * i).cast("bigint") for i in range(10)))
    wanted = expected.withColumns(others)
    assert sorted(map(repr, found.collect())) == sorted(map(repr, wanted.collect()))
    assert spark.sql("SHOW TABLES LIKE '_pyspark_*'").isEmpty()


def test_an_aggregate_may_have_two_columns(spark: SparkSession, events: DataFrame) -> None:
    """Rule G1: of equal users the last record to arrive decides."""
    del events
    found = wp.sql(
        spark,
        "SELECT * FROM count_windows(TABLE(events), order_col => 'at', size => 4, aggregates => "
        "'min_by(at, amount % 5) AS least, max_by(at, user), "
        "min_by(user, amount) where at % 4 > 0 AS second')",
    )
    rows = sorted(tuple(row[name] for name in found.columns[-3:]) for row in found.collect())
    assert found.columns[-3:] == ["least", "max_by_at_user", "second"]
    assert rows == [(0, 3, "b"), (5, 7, "b"), (10, 11, "b")]


TUMBLING = TimeWindows.of_size_and_grace("10 minutes", "5 minutes")
SLIDING_WINDOWS = SlidingWindows.of_time_difference_and_grace("10 minutes", "5 minutes")
EARLY = Trigger.at_window_end().early_every("5 minutes")
AGGREGATES = [count(), sum_("amount").where("amount > 3").alias("total"), wp.last("at")]
TEXT = "aggregates => 'count(*), sum(amount) where amount > 3 AS total, last(at)'"
TIMED = "time_col => 'ts', offset_col => 'at'"
Form = Callable[[DataFrame], DataFrame]


def timed(events: DataFrame, windows: WindowSpec) -> Windowed[DataFrame]:
    return wp.windowed(events, windows).by("user").event_time("ts").arrival("at")


def in_windows(windows: WindowSpec) -> Form:
    return lambda events: timed(events, windows).agg(*AGGREGATES)


def counted(window: GroupWindow) -> Form:
    """The rows of `count_windows`, which has the bounds as two columns."""

    def form(events: DataFrame) -> DataFrame:
        found = wp.windowed(events, window.on("at").alias("w")).by("user").agg(*AGGREGATES)
        return found.selectExpr(
            "user", "w.start AS window_start", "w.end AS window_end", "count", "total", "last_at"
        )

    return form


def of_rows(window: RowWindow) -> Form:
    def form(events: DataFrame) -> DataFrame:
        return wp.windowed(events, window).by("user").arrival("at").agg(*AGGREGATES)

    return form


FORMS: dict[str, Form] = {
    f"tumbling_windows({{}}, {TIMED}, size => '10 minutes', grace => '5 minutes', {TEXT})": (
        in_windows(TUMBLING)
    ),
    f"tumbling_windows({{}}, {TIMED}, size => INTERVAL '1' HOURS, {TEXT})": in_windows(
        TimeWindows.of_size_with_no_grace("1 hour")
    ),
    f"tumbling_windows({{}}, {TIMED}, size => '1 minute', emit_empty => TRUE, {TEXT})": in_windows(
        TimeWindows.of_size_with_no_grace("1 minute", emit_empty=True)
    ),
    (
        f"hopping_windows({{}}, {TIMED}, size => '10 minutes', advance => '4 minutes', "
        f"first_window_start_ms => {NOON_MS}, pre_aggregate => FALSE, {TEXT})"
    ): in_windows(
        TimeWindows.of_size_with_no_grace("10 minutes", first_window_start_ms=NOON_MS).advance_by(
            "4 minutes"
        )
    ),
    (
        f"sliding_windows({{}}, {TIMED}, time_difference => '3 minutes', grace => '5 minutes', "
        f"emit_empty => TRUE, first_window_start_ms => -5, {TEXT})"
    ): in_windows(
        SlidingWindows.of_time_difference_and_grace(
            "3 minutes", "5 minutes", emit_empty=True, first_window_start_ms=-5
        )
    ),
    f"forward_windows({{}}, {TIMED}, size => '10 minutes', grace => '5 minutes', {TEXT})": (
        in_windows(SlidingWindows.of("10 minutes").grace("5 minutes"))
    ),
    f"session_windows({{}}, {TIMED}, gap => '8 minutes', grace => '5 minutes', {TEXT})": (
        in_windows(SessionWindows.of_inactivity_gap_and_grace("8 minutes", "5 minutes"))
    ),
    f"count_windows({{}}, order_col => 'at', size => 3, {TEXT})": counted(Tumble.over(rows(3))),
    (
        "count_windows({}, order_col => 'at', size => 3, advance => 2, short_first => TRUE, "
        f"{TEXT})"
    ): counted(Slide.over(rows(3)).every(rows(2)).with_short_first()),
    f"slide_rows({{}}, time_col => 'ts', preceding => '10 minutes', {TEXT})": of_rows(
        SlideRows.preceding("10 minutes").on("ts")
    ),
    f"slide_rows({{}}, order_col => 'at', following => '2 rows', {TEXT})": of_rows(
        SlideRows.preceding(CURRENT_ROW).following(rows(2))
    ),
    (
        "slide_rows({}, order_col => 'at', preceding => 'unbounded rows', following => '-1 row', "
        f"{TEXT})"
    ): of_rows(SlideRows.preceding(UNBOUNDED_ROW).following(rows(-1))),
    (
        f"tumble_rows({{}}, time_col => 'ts', order_col => 'at', size => '20 minutes', "
        f"alias => 'w', {TEXT})"
    ): of_rows(TumbleRows.over("20 minutes").on("ts").alias("w")),
    f"tumble_rows({{}}, order_col => 'at', size => 4, {TEXT})": of_rows(TumbleRows.over(rows(4))),
    (
        f"session_rows({{}}, time_col => 'ts', order_col => 'at', gap => '8 minutes', {TEXT})"
    ): of_rows(SessionRows.with_gap("8 minutes").on("ts")),
    f"tumbling_windows({{}}, {TIMED}, size => '10 minutes', late_records => TRUE)": (
        lambda events: timed(events, replace(TUMBLING, grace_ms=0)).late()
    ),
    (
        f"sliding_windows({{}}, {TIMED}, time_difference => '10 minutes', grace => '5 minutes', "
        f"idle_after => '1 hour', source_partition_col => 'user', late_records => TRUE)"
    ): (
        lambda events: (
            timed(events, SLIDING_WINDOWS)
            .arrival("at", partition="user", idle_after="1 hour")
            .late()
        )
    ),
    (
        f"tumbling_windows({{}}, {TIMED}, size => '10 minutes', grace => '5 minutes', "
        f"early_every => '5 minutes', late_records => FALSE, {TEXT})"
    ): lambda events: timed(events, TUMBLING).firings(EARLY, *AGGREGATES),
    (
        f"sliding_windows({{}}, {TIMED}, time_difference => '10 minutes', grace => '5 minutes', "
        "early_every => '2 records', late => FALSE, panes => 'discarding', "
        f"out_of_orderness => '1 minute', input_ends => TRUE, on_error => 'null', {TEXT})"
    ): (
        lambda events: timed(events, SLIDING_WINDOWS).firings(
            Trigger.at_window_end()
            .early_every_n(2)
            .without_late()
            .discarding()
            .with_out_of_orderness("1 minute"),
            *AGGREGATES,
            input_ends=True,
            on_error="null",
        )
    ),
    (
        f"session_windows({{}}, {TIMED}, gap => '8 minutes', grace => '5 minutes', "
        f"early_every => 'update', {TEXT})"
    ): (
        lambda events: timed(
            events, SessionWindows.of_inactivity_gap_and_grace("8 minutes", "5 minutes")
        ).firings(Trigger.at_window_end().early_every_update(), *AGGREGATES)
    ),
    (
        f"forward_windows({{}}, {TIMED}, size => '5 minutes', grace => '5 minutes', "
        f"final => TRUE, {TEXT})"
    ): (
        lambda events: timed(events, SlidingWindows.of("5 minutes").grace("5 minutes")).firings(
            Trigger.until_window_closes(), *AGGREGATES
        )
    ),
    (
        f"tumbling_windows({{}}, {TIMED}, size => '10 minutes', grace => '5 minutes', "
        f"final => TRUE, late => TRUE, {TEXT})"
    ): (
        lambda events: timed(events, TUMBLING).firings(
            Trigger.at_window_end().with_final(), *AGGREGATES
        )
    ),
}
"""Calls, and the DataFrame form of each."""


def rows_of(frame: DataFrame) -> list[str]:
    return sorted(map(repr, frame.collect()))


def test_every_function_has_a_case_and_is_documented() -> None:
    assert {call.partition("(")[0] for call in FORMS} == FUNCTIONS.keys()
    page = (Path(__file__).parents[2] / "docs/flip11.md").read_text()
    names = {*FUNCTIONS, *(name for each in FUNCTIONS.values() for name in each.arguments)}
    for text in (page, str(wp.sql.__doc__)):
        assert [name for name in names if not re.search(rf"\b{name}\b", text)] == []


@pytest.mark.parametrize("call", FORMS)
def test_a_call_gives_what_the_dataframe_gives(
    spark: SparkSession, events: DataFrame, call: str
) -> None:
    """Rules B to F: late records, firings and empty windows, too."""
    found = wp.sql(spark, f"SELECT * FROM {call.format('TABLE(events) PARTITION BY user')}")  # noqa: S608
    expected = FORMS[call](events)
    assert found.schema == expected.schema
    assert rows_of(found) == rows_of(expected) != []


def test_a_query_names_aggregates_of_ones_own(
    spark: SparkSession, events: DataFrame, tmp_path: Path
) -> None:
    """Rule G1: by module and name, as a pipeline's file does; also in a query within TABLE."""
    module = tmp_path / "my_module.py"
    module.write_text(
        "from windows_pipeline import UserAggregate\n"
        "spread = UserAggregate(create=list, update=lambda acc, value: [*acc, value],\n"
        "    merge=lambda a, b: a + b, result=lambda acc: max(acc) - min(acc) if acc else None,\n"
        "    result_type='bigint')\n"
        "weighed = UserAggregate(create=int, update=lambda acc, of: acc + len(of['user'] or '')\n"
        "    + (of['amount'] or 0) * of['at'], merge=int.__add__, result=int,\n"
        "    result_type='bigint')\n"
        "fails = UserAggregate(create=list, update=pow, merge=max, result=max,\n"
        "    result_type='bigint')\n"
    )
    aggregates = (
        "my_module:spread(amount) where at > 2 AS s, "
        "my_module:weighed(struct(user, amount, at)) AS w"
    )
    call = SLIDING.replace("count(*), sum(amount)", aggregates)
    query = f"SELECT * FROM {call}"  # noqa: S608
    found = wp.sql(spark, query, modules=[module])
    windows = SlidingWindows.of_time_difference_and_grace("10 minutes", "0 seconds")
    by_user = wp.windowed(events, windows).by("user").event_time("ts")
    late = "at > 2"
    bounds = (wp.max_("amount").where(late).alias("h"), wp.min_("amount").where(late).alias("l"))
    weight = "coalesce(length(user), 0) + coalesce(amount, 0) * at"
    expected = by_user.agg(*bounds, wp.sum_(F.expr(weight)).alias("w"))
    expected = expected.withColumn("s", F.expr("h - l")).select(*found.columns)
    weighed = UserModules((module,)).aggregate("my_module:weighed").of_library()
    of_columns = wp.user_aggregate(F.struct("user", "amount", "at"), weighed).alias("w")
    columns = ("user", "window_end", "w")
    assert rows_of(by_user.agg(of_columns).select(columns)) == rows_of(expected.select(columns))
    assert rows_of(found) == rows_of(expected)
    inner = f"count_windows(TABLE({query}), order_col => 'window_end', size => 2, {{}})"
    inner = inner.format("aggregates => 'max(s) AS s'").replace("user, t", "(user), t")
    assert wp.sql(spark, f"SELECT s FROM {inner}", modules=[str(module)]).columns == ["s"]  # noqa: S608
    query = f"count_windows(TABLE(events), order_col => 'at', size => 12, {FAILS})"
    row = wp.sql(spark, f"SELECT * FROM {query}", modules=[module]).first()  # noqa: S608
    assert row is not None
    assert row.asDict()["failed"] == ["user_aggregate_amount"]


@pytest.mark.parametrize(
    ("aggregates", "modules", "refusal"),
    [
        (
            "my_module:spread(at) AS s",
            [],
            (
                "aggregates: 'my_module:spread(at)': 'my_module' is not one of the modules of "
                "windows_pipeline.sql; to let this code run, add its file, as in "
                "modules=['my_module.py']"
            ),
        ),
        ("my_module:spread(at) AS s", ["/no/my_module.py"], "there is no file /no/my_module.py"),
        ("count(*)", "my_module.py", "modules: must be a list of Python files, not 'my_module.py'"),
        ("count(*)", 5, "modules: must be a list of Python files, not 5"),
        ("count(*)", [5], "modules: must be a list of Python files, not [5]; pass one such as ["),
    ],
)
def test_mistakes_in_modules(
    spark: SparkSession, events: DataFrame, aggregates: str, modules: Any, refusal: str
) -> None:
    del events
    query = SLIDING.replace("count(*), sum(amount)", aggregates)
    with pytest.raises(ValueError, match=r".") as refused:
        wp.sql(spark, f"SELECT * FROM {query}", modules=modules)  # noqa: S608
    assert refusal in str(refused.value)


def with_arguments(call: str, arguments: str) -> str:
    return call.replace(", aggregates", f", {arguments}, aggregates")


FAILS = "on_error => 'null', aggregates => 'my_module:fails(amount)'"
LATE = f"tumbling_windows(TABLE(events), {TIMED}, size => '1 hour', late_records => TRUE)"
FORWARD = f"forward_windows(TABLE(events), {TIMED}, size => '1 hour', grace => '1 hour', {TEXT})"
FIRING = with_arguments(SLIDING, "offset_col => 'at', early_every => '1 minute'")
SLIDE_ROWS = f"slide_rows(TABLE(events), time_col => 'ts', preceding => '1 hour', {TEXT})"
TUMBLE_ROWS = f"tumble_rows(TABLE(events), order_col => 'at', size => '5 rows', {TEXT})"
SESSION_ROWS = (
    f"session_rows(TABLE(events), {TEXT}, time_col => 'ts', order_col => 'at', gap => '1 h')"
)
MISTAKES = [
    (
        SLIDING.replace("grace => '0 seconds', ", ""),
        "sliding_windows: 'grace' is missing; add grace => '0 ms' if windows close at their end",
    ),
    (
        FORWARD.replace("grace => '1 hour', ", ""),
        "forward_windows: 'grace' is missing; add grace => '0 ms' if windows close at their end",
    ),
    (with_arguments(SLIDING, "emit_empty => 'yes'"), "emit_empty: must be True or False, not 'yes"),
    (
        with_arguments(SLIDING, "first_window_start_ms => 'noon'"),
        "first_window_start_ms: 'noon' is not a whole number of milliseconds; use an int",
    ),
    (
        with_arguments(FORWARD, "emit_empty => TRUE"),
        "forward_windows: has no argument 'emit_empty'; use size, grace, time_col, ",
    ),
    (
        with_arguments(SLIDING, "idle_after => '1 hour'"),
        "idle_after needs offset_col, which is missing; add offset_col => ..., the column that",
    ),
    (
        with_arguments(SLIDING, "offset_col => 'at', idle_after => '0 ms'"),
        "idle_after: '0 seconds' must be above zero; use '1 ms' or more",
    ),
    (
        with_arguments(SLIDING, "pre_aggregate => 'no'"),
        "pre_aggregate: must be True or False, not 'no'",
    ),
    (
        with_arguments(SLIDING, "on_error => 'skip'"),
        "on_error: must be 'raise' or 'null', not 'skip'",
    ),
    (
        LATE.replace("TRUE", f"TRUE, {TEXT}"),
        "aggregates does not go with late_records; leave one of them out",
    ),
    (LATE.replace("TRUE", "'yes'"), "late_records: must be True or False, not 'yes'"),
    (
        LATE.replace("offset_col => 'at', ", ""),
        "late_records needs offset_col, which is missing; add offset_col => ..., the column that",
    ),
    (
        FIRING.replace("offset_col => 'at', ", ""),
        "early_every needs offset_col, which is missing; add offset_col => ..., the column that",
    ),
    (
        with_arguments(FIRING, "pre_aggregate => TRUE"),
        "pre_aggregate does not go with early_every; leave one of them out",
    ),
    (
        FIRING.replace("'1 minute'", "'often'"),
        "or '1 hour 30 minutes'; or '10 records', or 'update' for every record",
    ),
    (
        FIRING.replace("'1 minute'", "'often'"),
        "early_every: 'often' is not a duration; write a number and a unit, such as '10 minutes'",
    ),
    (FIRING.replace("'1 minute'", "5"), "early_every: 5 has no unit; write a unit"),
    (FIRING.replace("1 minute", "0 records"), "early_every_records: must be an int above zero"),
    (
        with_arguments(FIRING, "panes => 'both'"),
        "panes: must be 'accumulating' or 'discarding', not 'both'",
    ),
    (with_arguments(FIRING, "late => 'no'"), "late: must be True or False, not 'no'"),
    (with_arguments(FIRING, "final => 1"), "final: must be True or False, not 1"),
    (
        with_arguments(FIRING, "final => TRUE, panes => 'discarding'"),
        "panes: 'discarding' does not go with final, whose firing shows all records of its window",
    ),
    (with_arguments(FIRING, "input_ends => 1"), "input_ends: must be True or False, not 1"),
    (
        with_arguments(FIRING, "out_of_orderness => '1 second'"),
        "an out_of_orderness of '1 second' is above the windows' grace of '0 seconds'",
    ),
    (
        with_arguments(FORWARD, "late => TRUE"),
        "trigger: ForwardSlidingWindows fire only when they close",
    ),
    (
        SLIDE_ROWS.replace("preceding => '1 hour', ", ""),
        "slide_rows: preceding: is missing, and so is following; add how far before the row",
    ),
    (
        SLIDE_ROWS.replace("'1 hour'", "'5'"),
        "preceding: '5' has no unit; write a unit, as in '10 ms' or '10 minutes'",
    ),
    (SLIDE_ROWS.replace("'1 hour'", "5"), "preceding: 5 has no unit; write a unit"),
    (
        with_arguments(SLIDE_ROWS, "following => '5 rows'"),
        "following: rows(5) must have the unit of preceding: '1 hour'; pass both as durations or",
    ),
    (
        SLIDE_ROWS.replace("'1 hour'", "'-1 hour'"),
        "preceding: '-1 hour' starts the frame after the row, but without 'following' the frame",
    ),
    (
        SLIDE_ROWS.replace("time_col => 'ts', ", ""),
        "slide_rows: 'time_col' is missing, and these windows need it; add time_col => ...",
    ),
    (
        SLIDE_ROWS.replace("'1 hour'", "'5 rows'"),
        "slide_rows: 'order_col' is missing, and these windows need it; add order_col => ...",
    ),
    (
        with_arguments(SLIDE_ROWS, "alias => 'user'"),
        "the alias hides the column of that name; use another alias",
    ),
    (TUMBLE_ROWS.replace("5 rows", "0 rows"), "size: rows(0) must be above zero; use rows(1) or"),
    (TUMBLE_ROWS.replace("5 rows", "five"), "size: 'five' is not a duration; write a number and"),
    (TUMBLE_ROWS.replace("size => '5 rows', ", ""), "tumble_rows: 'size' is missing; add size => "),
    (SESSION_ROWS.replace("1 h", "5 rows"), "gap: '5 rows' has an unknown unit 'rows'; use ms,"),
    (SESSION_ROWS.replace(", order_col => 'at'", ""), "session_rows: 'order_col' is missing"),
    (
        SLIDING.replace("sum(amount)", "my_module:spread(amount)"),
        "'my_module' is not one of the modules of windows_pipeline.sql; to let this code run",
    ),
]
"""Calls with a mistake in an argument, and what the error says."""


@pytest.mark.parametrize(
    ("query", "refusal"),
    [
        (SLIDING.replace("'ts'", "'tss'"), "sliding_windows: there is no column 'tss'"),
        (SLIDING.replace("sum(", "total("), "unknown aggregate 'total'; did you mean 'sum'?"),
        (
            SLIDING.replace("sum(amount)", "sum(amount * 2)"),
            "'sum(amount * 2)' has no name; give it one, as in 'sum(amount * 2) AS total'",
        ),
        (
            SLIDING.replace("time_difference", "size"),
            "sliding_windows: has no argument 'size'; use",
        ),
        (SLIDING.replace("'10 minutes'", "'0 ms'"), "time_difference: '0 seconds' must be above"),
        (SLIDING.replace("'10 minutes'", "10"), "time_difference: 10 has no unit; write a unit"),
        (SLIDING.replace("time_col => 'ts', ", ""), "sliding_windows: 'time_col' is missing"),
        (
            with_arguments(SLIDING, "source_partition_col => 'user'"),
            "source_partition_col needs offset_col",
        ),
        (
            "count_windows(TABLE(events), order_col => 'at', size => '3', aggregates => 'sum(at)')",
            "count_windows: size: '3' is not a whole number of rows; use an int",
        ),
        *MISTAKES,
    ],
)
def test_mistakes_in_a_call(
    spark: SparkSession, events: DataFrame, query: str, refusal: str
) -> None:
    """Rule F3: each names the function and the argument."""
    del events
    with pytest.raises(ValueError, match=r"^\w+_(windows|rows): ") as refused:
        wp.sql(spark, f"SELECT * FROM {query}")  # noqa: S608
    assert refusal in str(refused.value)


def test_a_view_of_a_call_is_refused(spark: SparkSession, events: DataFrame) -> None:
    """Spark would read the view's text again, without these functions."""
    del events
    with pytest.raises(ValueError, match="a view stores its text"):
        wp.sql(spark, f"CREATE TEMPORARY VIEW v AS SELECT * FROM {SLIDING}")  # noqa: S608


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("SELECT * FROM HOP(TABLE ev, DESCRIPTOR(ts), INTERVAL 5 MINUTES, INTERVAL 1 HOUR)", "HOP"),
        ("SELECT * FROM slide(TABLE(ev), 'ts')", "slide"),
        ("SELECT * FROM slding_windows(TABLE(ev), time_col => 'ts')", "slding_windows"),
        ("SELECT key FROM ev GROUP BY TUMBLE(ts, INTERVAL 1 HOUR), key", "TUMBLE"),
    ],
)
def test_a_function_that_is_not_there_lists_those_that_are(
    spark: SparkSession, query: str, name: str
) -> None:
    spark.sql("SELECT 'k' AS key, current_timestamp() AS ts").createOrReplaceTempView("ev")
    with pytest.raises(ValueError, match="there is no window function") as raised:
        wp.sql(spark, query)
    assert f"no window function {name!r}; use one of tumbling_windows, " in str(raised.value)


def test_other_errors_of_a_query_are_sparks(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException, match="nowhere"):
        wp.sql(spark, "SELECT * FROM nowhere")
