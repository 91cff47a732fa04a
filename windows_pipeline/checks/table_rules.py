"""The checks of source tables, final windows and alerts, as SQL over their rows and recounts."""

from __future__ import annotations

from windows_pipeline.checks.run import Check
from windows_pipeline.config import Pipeline, Windows


def closed_by_arrival_unit(windows: Windows) -> str:
    """The SQL condition that an arrival unit closed a window (rule A4)."""
    if windows.spec.excludes_end:
        return "_window_end_ms > _close_before_ms AND _window_end_ms <= _close_after_ms"
    return "_window_end_ms >= _close_before_ms AND _window_end_ms < _close_after_ms"


_NO_FILE_QUARANTINED = Check(
    "no_file_quarantined",
    "Every landed file of the day was read; quarantined_files lists the bad files that were left "
    "out, with what is wrong (rule A8)",
    "quarantined > 0",
    blocking=False,
    is_warning=True,
)


_NO_AMBIGUOUS_TIME = Check(
    "no_ambiguous_time",
    "No record of the day has a local time that occurs twice, as clocks are put back; such a time "
    "is the first instant, unless `ambiguous` of the column says `later` or `reject` (rule A6)",
    "ambiguous > 0",
    blocking=False,
    is_warning=True,
)


def raw_events_checks(pipeline: Pipeline) -> list[Check]:
    """Checks of raw_events, over one row for each arrival unit and source partition."""
    limit, least = pipeline.limits.rejected, pipeline.limits.least_records
    own_offsets = pipeline.source.format == "kafka"
    gap = "" if own_offsets else "first_offset <> 0 OR last_offset <> rows - 1 OR "
    return [
        Check(
            "offsets_without_gap" if not own_offsets else "offsets_once",
            "In each arrival unit and source partition the offsets are 0, 1, 2, ..., each once "
            "(rule A1)"
            if not own_offsets
            else "In each arrival unit and source partition no offset of the topic occurs twice "
            "(rule A1)",
            f"rows > 0 AND ({gap}distinct_offsets <> rows)",
        ),
        Check(
            "running_max_is_stream_time",
            "running_max of a record is the largest event time up to it in its arrival unit and "
            "source partition (rule A2)",
            "wrong_running_max > 0",
        ),
        Check(
            "landed_is_accepted_or_rejected",
            "Every landed record is either in raw_events or in rejected_records (rule A6)",
            # `landed` is null for a stream, whose arrival units are not landed days.
            "coalesce(landed <> arrival_unit_rows + rejected, FALSE) "
            "OR rejected <> arrival_unit_rejected",
        ),
        Check(
            "rejected_within_limit",
            f"At most {limit:.4g} % of a day's records are rejected (limits.rejected), and not all "
            f"of them; of fewer than {least:,} records (limits.least_records) only all fail. "
            "rejected_records lists them with the reasons (rule A6)",
            "rejected > 0 AND "
            f"(arrival_unit_rows = 0 OR rejected * 100 > {limit} * (arrival_unit_rows + rejected))",
            blocking=False,
            unjudged=f"arrival_unit_rows > 0 AND arrival_unit_rows + rejected < {least}",
        ),
        Check(
            "columns_have_values",
            "Each declared column has a value in at least one record of the day; a column without "
            "any value may have another name in the source, or be gone from it (rule A6)",
            "size(without_value) > 0",
            blocking=False,
            is_warning=True,
        ),
        *([_NO_AMBIGUOUS_TIME] if pipeline.source.zones else []),
        *([_NO_FILE_QUARANTINED] if pipeline.source.skips_bad_files else []),
    ]


def accounting_checks(pipeline: Pipeline, windows: Windows) -> list[Check]:
    """Checks that no record is lost and every rule evaluated, over a row for each arrival unit."""
    undecided = windows.undecided_rules_sql(windows.result_columns(pipeline.source))
    limit, least = pipeline.limits.late, pipeline.limits.least_records
    filtered, named = "", ""
    if windows.where is not None:
        filtered, named = " + filtered", "filtered out by `where` + "
    advice = (
        ""
        if pipeline.source.arrival
        else ". The source declares no arrival, so lines (or commits of a table) order its "
        "records; if they arrived in another order, name the column that says when a record "
        "arrived, or write arrival: event_time"
    )
    return [
        Check(
            "every_record_accounted_for",
            "Of each day's records, ingested = counted + pending + listed in late_records + "
            f"{named}rejected; a pending record may still count in an open window (rule A5)",
            f"blocked_by IS NULL AND ingested <> counted + pending + late + rejected{filtered}",
        ),
        Check(
            "no_arrival_missing",
            "No earlier day is missing from raw_events; a missing day blocks all later days, whose "
            "windows stay open (rule A2)",
            "blocked_by IS NOT NULL",
            blocking=False,
            is_warning=True,
        ),
        Check(
            "late_within_limit",
            f"At most {limit:.4g} % of a day's accepted records are late (limits.late, rule A1); "
            f"fewer than {least:,} records (limits.least_records) are not judged{advice}",
            f"blocked_by IS NULL AND too_late * 100 > {limit} * (ingested - (rejected{filtered}))",
            blocking=False,
            unjudged=f"ingested - (rejected{filtered}) < {least}",
        ),
        Check(
            "aggregates_computed",
            "In each window that the day closed, every aggregate that an alert rule reads is "
            "computed, and the numbers and times in its condition fit their types; where not, the "
            "rule raises no alert. failed in keyed_windows names such aggregates, and "
            "failed_windows has the reasons; in a condition, cast(x as double) fits (rule G3)",
            "FALSE" if undecided is None else "undecided > 0",
            blocking=windows.on_failed == "block",
        ),
    ]


def closing_checks() -> list[Check]:
    """Checks of how far windows are closed, over the rows of `closing_frame`."""
    return [
        Check(
            "closed_through",
            "The watermark moved on in each day that has records, so that windows closed; "
            "closed_through is the close time after the day. Where it stood still, each record is "
            "older than earlier ones, or a source partition holds the watermark back (rule A4)",
            "records > 0 AND _watermark_after_ms <= _watermark_before_ms",
            blocking=False,
            is_warning=True,
        )
    ]


FINAL_NEVER_CHANGED = "final_never_changed"
"""The check by which a run refuses to change final windows (rule E1)."""


ALERTS_NEVER_CHANGED = "alerts_never_changed"
"""The check by which a run refuses to change alerts (rules E1, E5)."""

VALUES_ARE_THOSE_OF_RECORDS = "values_are_those_of_records"
"""The check that finds windows whose raw records were changed since."""


def final_windows_checks(windows: Windows) -> list[Check]:
    """Checks of final windows, over one row for each distinct window, with its copies.

    The rows need `rows_in_final` (copies among the checked rows), `rows_in_published` (copies among
    the published rows), `rows_in_closed` (copies among the closed keyed windows), `_times_final`
    (how many final windows have its key and end; of row windows, its row) and `_arrival_unit_had`
    (how many final windows the arrival unit has had, before corrections, too).
    """
    return [
        Check(
            "final_is_closed",
            "The final windows are the closed keyed windows, and each ended between the close "
            "times before and after its arrival unit (rules A4, E1)",
            "least(rows_in_final, 1) <> least(rows_in_closed, 1) "
            f"OR rows_in_final > 0 AND NOT coalesce({closed_by_arrival_unit(windows)}, FALSE)",
        ),
        Check(
            "final_once",
            "A window becomes final in one arrival unit only (rules E1, E4)",
            "rows_in_final > 0 AND _times_final > 1",
        ),
        Check(
            FINAL_NEVER_CHANGED,
            "Published final windows are unchanged, or as their newest correction left them (rule "
            "E1); a run never changes them, only a correction does",
            "rows_in_published <> rows_in_final AND _arrival_unit_had > 0",
        ),
    ]


def alerts_checks(windows: Windows, columns: dict[str, str]) -> list[Check]:
    """Checks of alerts that no correction retracted, over each alert with the previous one."""
    broken = " OR ".join(
        f"(rule = '{name}' AND ({windows.breaking_sql(rule, columns)}))"
        for name, rule in windows.alerts.items()
    )
    # Late records can make a session around an earlier, closed session.
    # A block by arrival that ends later may start earlier.
    may_start_before = windows.spec.length_ms is None
    first = "" if may_start_before else "episode_start > window_start OR "
    return [
        Check(
            "alert_breaks_its_rule",
            "The window of an alert is final and breaks the alert's rule (rule E5)",
            f"NOT _is_final OR NOT coalesce({broken or 'FALSE'}, FALSE)",
        ),
        Check(
            "episodes_apart",
            "Alerts of one key and rule share an episode if their windows overlap, and only then "
            "(rule E5)",
            f"{first}(_previous_end IS NOT NULL AND "
            "(window_start <= _previous_end) <> (episode_start = _previous_episode))",
        ),
    ]


def alerts_history_checks() -> list[Check]:
    """Checks of alerts against published ones, over one row for each distinct alert.

    The rows need `rows_in_alerts` (copies among the checked rows), `rows_in_published` (copies
    among the published rows) and `_arrival_unit_had` (how many alerts the arrival unit has had,
    retracted ones included).
    """
    return [
        Check(
            ALERTS_NEVER_CHANGED,
            "Published alerts are unchanged; a correction marks alerts as retracted and adds "
            "others, but deletes none (rules E1, E5)",
            "rows_in_published <> rows_in_alerts AND _arrival_unit_had > 0",
        ),
    ]
