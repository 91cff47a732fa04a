"""The checks of each table: what breaks them, as SQL over a row and its evidence."""

from __future__ import annotations

from windows_pipeline.checks.run import Check
from windows_pipeline.config import Pipeline, Windows
from windows_pipeline.windows import GracedRows, SessionWindows, TimeWindows


def closed_by_unit(windows: Windows) -> str:
    """The condition that a unit closed a window (rule A4)."""
    if isinstance(windows.spec, TimeWindows):  # the end does not belong to the window
        return "_window_end_ms > _close_before_ms AND _window_end_ms <= _close_after_ms"
    return "_window_end_ms >= _close_before_ms AND _window_end_ms < _close_after_ms"


def raw_events_checks(pipeline: Pipeline) -> list[Check]:
    """Checks of what was ingested; a row a unit and source partition."""
    limit = pipeline.limits.rejected
    own_offsets = pipeline.source.format == "kafka"
    gap = "" if own_offsets else "first_offset <> 0 OR last_offset <> rows - 1 OR "
    return [
        Check(
            "offsets_without_gap" if not own_offsets else "offsets_once",
            "In each unit and source partition the offsets are 0, 1, 2, ... once each (rule A1)"
            if not own_offsets
            else "In each unit and source partition each of the topic's offsets is there once",
            f"rows > 0 AND ({gap}distinct_offsets <> rows)",
        ),
        Check(
            "running_max_is_stream_time",
            "The running maximum is the largest event time so far in the unit (rule A2)",
            "wrong_running_max > 0",
        ),
        Check(
            "landed_is_accepted_or_rejected",
            "Every landed record is accepted or rejected with a reason (rule A6)",
            # Of a stream, whose units are its own, none is known to have landed.
            "coalesce(landed <> unit_rows + rejected, FALSE) OR rejected <> unit_rejected",
        ),
        Check(
            "rejected_within_limit",
            f"At most {limit:.4g} % of a day's records are rejected (limits.rejected), and never "
            "all of them; rejected_records has each with its reason",
            "rejected > 0 AND "
            f"(unit_rows = 0 OR rejected * 100 > {limit} * (unit_rows + rejected))",
            blocking=False,
        ),
        Check(
            "columns_have_values",
            "Each declared column has a value in some record of a day; one without any may have "
            "another name in the source, or be gone from it",
            "size(without_value) > 0",
            blocking=False,
            is_warning=True,
        ),
    ]


def accounting_checks(pipeline: Pipeline) -> list[Check]:
    """Checks of where a unit's records went; a row a unit."""
    limit = pipeline.limits.late
    advice = (
        ""
        if pipeline.source.arrival
        else ". No arrival is declared, so records come in the order of lines, or of commits; if "
        "that is not how they arrived, name the column that is, or write arrival: event_time"
    )
    return [
        Check(
            "every_record_accounted_for",
            "Ingested = counted + pending + late and uncovered + rejected (rule A5); pending "
            "ones may be in a window that is open",
            "held_back_by IS NULL AND ingested <> counted + pending + late + rejected",
        ),
        Check(
            "no_arrival_missing",
            "Every earlier raw day is there; past a missing one nothing closes (rule A2)",
            "held_back_by IS NOT NULL",
            blocking=False,
            is_warning=True,
        ),
        Check(
            "late_within_limit",
            f"At most {limit:.4g} % of a day's accepted records are late (limits.late){advice}",
            f"held_back_by IS NULL AND too_late * 100 > {limit} * (ingested - rejected)",
            blocking=False,
        ),
    ]


def final_windows_checks(windows: Windows, correct: str) -> list[Check]:
    """Checks of final windows; a row a distinct window, with how often each side has it.

    The sides: the rows judged (`in_final`), what is published (`in_published`), and the
    closed keyed windows (`in_closed`). `times_final`: how often its key and end are final, or,
    where windows are of rows, its row; `unit_had`: how many windows its unit has had, also
    before corrections. `correct` is the command that corrects them, but for days and cause.
    """
    return [
        Check(
            "final_is_closed",
            "A final window is a closed keyed window, and each of these is final; it ended "
            "before the unit's close time and not before the last unit's (rules A4, E1)",
            "least(in_final, 1) <> least(in_closed, 1) "
            f"OR in_final > 0 AND NOT coalesce({closed_by_unit(windows)}, FALSE)",
        ),
        Check(
            "final_once",
            "A key's window is final once",
            "in_final > 0 AND times_final > 1",
        ),
        Check(
            "final_never_changed",
            "The final windows of a unit that was published stand as they were, or as their "
            "newest correction has them (rule E1). Where raw records were changed on purpose: "
            f"{correct} --from DAY --cause TEXT",
            "in_published <> in_final AND unit_had > 0",
        ),
    ]


def alerts_checks(windows: Windows, columns: dict[str, str]) -> list[Check]:
    """Checks of standing alerts; a row an alert, whether its window is final, the one before."""
    broken = " OR ".join(
        f"(rule = '{name}' AND ({rule.when_sql(columns)}))" for name, rule in windows.alerts.items()
    )
    # Late records can make a session around one that was closed before, and ends before.
    # Of blocks by arrival one that ends later may start earlier.
    may_start_before = isinstance(windows.spec, (SessionWindows, GracedRows))
    first = "" if may_start_before else "episode_start > window_start OR "
    return [
        Check(
            "alert_breaks_its_rule",
            "An alert's window is final and breaks the alert's rule (rule E5)",
            f"NOT is_final OR NOT coalesce({broken or 'FALSE'}, FALSE)",
        ),
        Check(
            "episodes_apart",
            "Overlapping alerts of one key and rule are one episode, others are not (rule E5)",
            f"{first}(previous_end IS NOT NULL AND "
            "(window_start <= previous_end) <> (episode_start = previous_episode))",
        ),
    ]


def alerts_history_checks(correct: str) -> list[Check]:
    """Checks of alerts against what was published; a row a distinct alert with side counts.

    The sides: the rows judged (`in_alerts`) and what is published (`in_published`).
    `unit_had`: how many alerts its unit has had, also such as were taken back. `correct` is the
    command that corrects them, but for days and cause.
    """
    return [
        Check(
            "alerts_never_changed",
            "The alerts of a unit that was published stand as they were; a correction takes "
            "them back and raises others, and deletes none (rules E1, E5). Where raw records "
            "were changed on purpose: "
            f"{correct} --from DAY --cause TEXT",
            "in_published <> in_alerts AND unit_had > 0",
        ),
    ]
