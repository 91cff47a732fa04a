"""The checks of firings, early warnings and processed, as SQL over `recounts/firings.py`."""

from __future__ import annotations

from collections.abc import Mapping

from windows_pipeline.checks.run import Check
from windows_pipeline.config import Windows
from windows_pipeline.config.windows.firing_trigger import FiringTrigger

_BEGAN_SINCE = "coalesce(_window_start_ms > _watermark_before_ms, FALSE)"
"""SQL: no record of the window can have arrived before the checked run of days."""


def firing_checks(trigger: FiringTrigger) -> list[Check]:
    """Checks over firings, each with the previous firing and the window's final result."""
    if trigger.panes == "discarding":
        at_close = "A window that fires at its close has a final result (rules E1, E2)"
        or_differs = ""
    else:
        at_close = "The firing at a window's close has the values of the final result (E1, E2)"
        or_differs = " OR NOT coalesce(_is_as_final, FALSE)"
    return [
        Check(
            "firings_numbered",
            "The firings of a window have the numbers 0, 1, 2, ..., each once, in the order of "
            "arrival units (rule E2)",
            f"_previous_id IS NULL AND firing_id <> 0 AND (firing_id < 0 OR {_BEGAN_SINCE}) "
            "OR firing_id <= _previous_id OR arrival_unit < _previous_arrival_unit "
            "OR _since = _previous_since AND firing_id <> _previous_id + 1",
        ),
        Check(
            "firing_reasons_in_order",
            "A window fires EARLY any number of times, then ON_TIME once, then LATE any number of "
            "times (rule E2)",
            "reason NOT IN ('EARLY', 'ON_TIME', 'LATE') OR firing_id = 0 AND reason = 'LATE' "
            "OR (_since = _previous_since OR firing_id = _previous_id + 1) "
            "AND (reason = 'LATE') <> (_previous_reason <> 'EARLY')",
        ),
        Check(
            "final_firing_is_final",
            at_close,
            f"is_final AND (NOT _has_final{or_differs})",
        ),
    ]


def closed_checks(trigger: FiringTrigger) -> list[Check]:
    """Checks over final windows, each with its firings."""
    times, failing = "at most", "_on_time > 1"
    if trigger.panes == "accumulating":
        times = "exactly"
        failing += f" OR _on_time = 0 AND {_BEGAN_SINCE}"
    checks = [
        Check(
            "on_time_once",
            f"A final window has fired ON_TIME {times} once (rule E2)",
            failing,
        )
    ]
    if trigger.final:
        checks.append(
            Check(
                "final_firing_once",
                "Each closed window has one final firing, in the arrival unit that closed it (E2)",
                "_final <> 1",
            )
        )
    if trigger.panes == "accumulating" and (trigger.final or trigger.late is not False):
        checks.append(
            Check(
                "last_firing_shows_final",
                "A final window's last firing has the values of the final result (rules E1, E2)",
                "_last_since = _since AND NOT _is_as_final",
            )
        )
    return checks


def early_warning_checks(windows: Windows, columns: Mapping[str, str]) -> list[Check]:
    """Checks over rows of early_warnings, each with its firing and final window."""
    broken = " OR ".join(
        f"(rule = '{name}' AND ({windows.breaking_sql(rule, columns)}))"
        for name, rule in windows.alerts.items()
    )
    return [
        Check(
            "early_warning_breaks_its_rule",
            "An early warning belongs to a firing that broke the warning's rule before the window "
            "closed (rule E5)",
            f"state = 'open' AND NOT _is_firing OR NOT coalesce({broken or 'FALSE'}, FALSE)",
        ),
        Check(
            "early_warning_agrees_with_final",
            "When its window closes, a warning is confirmed if the final result breaks the rule, "
            "and withdrawn if not (rule E5)",
            "state NOT IN ('open', 'confirmed', 'withdrawn') OR state <> 'open' "
            "AND (NOT _has_final OR (state = 'confirmed') <> _final_breaks)",
        ),
        Check(
            "early_warning_once",
            "A window and rule have at most one open warning, which is confirmed or withdrawn at "
            "most once (rule E5)",
            "_open_rows > 1 OR _closed_rows > 1",
        ),
    ]


def processed_checks() -> list[Check]:
    """Checks over rows of a window function, each with its firing."""
    return [
        Check(
            "processed_follow_firings",
            "Each row of a window function belongs to a firing of its arrival unit, and the rows "
            "of a firing have the numbers 0, 1, 2, ..., each once (rule E3)",
            "NOT _is_firing OR row_number <> _in_order",
        ),
    ]
