"""The `trigger` field of a pipeline's windows: its specification, its errors, its tables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.pipeline_texts import FLIGHTS, load_text, table_definition
from windows_pipeline.config import ConfigError, definition_changes
from windows_pipeline.storage.catalog import specs_of
from windows_pipeline.windows import SlidingWindows
from windows_pipeline.windows.firing.triggers import Trigger

TUMBLING = re.sub(r"    emit_empty: true.*\n", "", FLIGHTS).replace(
    "kind: sliding\n    time_difference: 60 minutes", "kind: tumbling\n    size: 1 hour"
)
AT_END = Trigger.at_window_end()
TABLES = (
    *("keyed_windows", "late_records", "final_windows", "corrections", "alerts"),
    "failed_windows",
)


def with_trigger(trigger: str, text: str = TUMBLING) -> str:
    return text.replace("    aggregates:\n", f"    trigger: {trigger}\n    aggregates:\n")


@pytest.mark.parametrize(
    ("trigger", "meant"),
    [
        ("{}", AT_END),
        ("{early_every: 15 minutes}", AT_END.early_every("15 minutes")),
        ("{early_every: 10 records, late: false}", AT_END.early_every_n(10).without_late()),
        ("{early_every: update, panes: discarding}", AT_END.early_every_update().discarding()),
        ("{out_of_orderness: 5 seconds}", AT_END.with_out_of_orderness("5 seconds")),
        ("{final: true}", Trigger.until_window_closes()),
        ("{final: true, late: false}", AT_END.without_late().with_final()),
        ("{final: true, late: true}", AT_END.with_final()),
        (
            "{final: true, early_every: update}",
            AT_END.early_every_update().without_late().with_final(),
        ),
        ("{final: false}", AT_END),
    ],
)
def test_a_trigger_has_its_specification(tmp_path: Path, trigger: str, meant: Trigger) -> None:
    """Rule E2: the field stands for a trigger of the library."""
    declared = load_text(tmp_path, with_trigger(trigger)).windows["hourly"].trigger
    assert declared is not None
    assert declared.spec == meant


@pytest.mark.parametrize(
    ("trigger", "field", "words"),
    [
        ("{early_every: 15}", ".early_every", "'15' has no unit; write a duration such as"),
        ("{early_every: }", ".early_every", "is empty; write a duration such as '15 minutes', or"),
        ("{early_every: 0 records}", ".early_every", "'0 records' must be above zero"),
        ("{early_every: often}", ".early_every", "or 'update' for every record"),
        ("{early: update}", ".early", "is not a field here; did you mean 'early_every'?"),
        ("{panes: both}", ".panes", "'both' is not a known value; use 'accumulating' or 'discard"),
        (
            "{out_of_orderness: 7 hours}",
            ".out_of_orderness",
            (
                "'7 hours' is above the grace, 6 hours: windows would close before they fire on "
                "time; write a grace of 7 hours or more"
            ),
        ),
        ("update", "", "'update' is not a mapping"),
        ("{late: }", ".late", "is empty; write true or false, or leave it out"),
        ("{final: 1}", ".final", "'1' must be true or false; write either, without quotes"),
        (
            "{final: true, late: true, panes: discarding}",
            ".panes",
            (
                "'discarding' does not go with final, whose firing shows all records of its "
                "window, not those since the firing before; leave one of them out"
            ),
        ),
        (
            "{final: true, out_of_orderness: 1 hour}",
            ".out_of_orderness",
            (
                "'1 hour' has no effect, because these windows fire only as they close; leave it "
                "out, or write late, too"
            ),
        ),
        (
            "",
            "",
            (
                "is empty; write {} to let windows fire on time and late, {final: true} to let "
                "them fire as they close, or leave it out"
            ),
        ),
        ("{early_every: 9007199254740993 records}", ".early_every", "is more than a window can"),
    ],
)
def test_an_error_about_a_trigger_has_the_field_and_the_fix(
    tmp_path: Path, trigger: str, field: str, words: str
) -> None:
    text = with_trigger(trigger)
    line = text[: text.index("trigger:")].count("\n") + 1
    with pytest.raises(ConfigError) as raised:
        load_text(tmp_path, text)
    (problem,) = raised.value.problems
    assert problem.startswith(f"{tmp_path / 'flights.yaml'}:{line}: windows.hourly.trigger{field}:")
    assert words in problem


def test_a_result_cannot_have_the_name_of_a_column_of_firings(tmp_path: Path) -> None:
    """Rule E2."""
    text = TUMBLING.replace("max_dep_delay:", "reason:")
    with pytest.raises(ConfigError) as raised:
        load_text(tmp_path, with_trigger("{late: true}", text))
    (problem,) = raised.value.problems
    words = "'reason' is the name of a column that every firing has"
    assert f": windows.hourly.aggregates.reason: {words}" in problem


def test_sliding_windows_take_a_trigger_with_emit_empty(tmp_path: Path) -> None:
    """Rules B8, E2."""
    declared = load_text(tmp_path, with_trigger("{early_every: update}", FLIGHTS)).windows["hourly"]
    assert declared.trigger is not None
    fitted = declared.trigger.spec.fitted(declared.spec)
    assert fitted == SlidingWindows.of_time_difference_and_grace(
        "60 minutes", "6 hours", emit_empty=True
    )


def test_a_trigger_changes_the_definition_of_firings_only(tmp_path: Path) -> None:
    """Rule E1: final results, and the tables that hold them, do not depend on it."""
    plain = load_text(tmp_path, TUMBLING)
    often = load_text(tmp_path, with_trigger("{early_every: 60 seconds}"))
    rarely = load_text(tmp_path, with_trigger("{early_every: 1 hour, late: true}"))
    for table in TABLES:
        assert table_definition(plain, "hourly", table) == table_definition(often, "hourly", table)
    for table in ("firings", "early_warnings"):
        changes = definition_changes(
            table_definition(often, "hourly", table), table_definition(rarely, "hourly", table)
        )
        field = "windows.hourly.trigger.early_every"
        assert changes == [f"{field}: was '1 minute', is '1 hour'"]


@pytest.mark.parametrize(
    ("written", "same"),
    [
        ("{}", "{late: true, final: false}"),
        ("{final: true, early_every: 1 hour}", "{final: true, early_every: 1 hour, late: false}"),
    ],
)
def test_a_default_that_is_written_is_no_other_definition(
    tmp_path: Path, written: str, same: str
) -> None:
    """Rule H1: nor does a field that the file leaves out change tables of earlier releases."""
    fields = [
        table_definition(load_text(tmp_path, with_trigger(trigger)), "hourly", "firings")
        for trigger in (written, same)
    ]
    assert fields[0] == fields[1]
    assert ("windows.hourly.trigger.final" in fields[0]) == ("final" in written)
    late = fields[0]["windows.hourly.trigger.late"]
    assert late == ("false" if "final" in written else "true")


@pytest.mark.parametrize("trigger", ["{final: true}", "{final: true, late: true}"])
def test_only_firings_before_the_close_can_warn(tmp_path: Path, trigger: str) -> None:
    """Rules E2, E5."""
    tables = specs_of(load_text(tmp_path, with_trigger(trigger)), "").of("hourly")
    assert tables.firings.is_written
    assert tables.early_warnings.is_written == ("late" in trigger)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (TUMBLING, set()),
        (TUMBLING.replace("format: jsonl", "format: delta"), set()),
        (
            TUMBLING.replace("  arrival:", "  source_partition: carrier\n  arrival:"),
            {"fired_after_arrival_unit", "fired_after_partition"},
        ),
    ],
)
def test_a_firing_identifies_its_record(tmp_path: Path, text: str, columns: set[str]) -> None:
    """Rules A1, E2: with one source partition the offset within the unit is enough."""
    pipeline = load_text(tmp_path, with_trigger("{late: true}", text))
    names = [column.name for column in specs_of(pipeline, "").of("hourly").firings.columns]
    assert {name for name in names if name.startswith("fired_after_")} == columns
