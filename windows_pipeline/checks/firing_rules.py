"""The checks of firings and of early warnings: what breaks them, as SQL over `firing_evidence`."""

from __future__ import annotations

from collections.abc import Mapping

from windows_pipeline.checks.run import Check
from windows_pipeline.config import Windows
from windows_pipeline.config.firing_trigger import FiringTrigger

_BEGAN_SINCE = "coalesce(_window_start_ms > _stream_before_ms, FALSE)"
"""Whether no record of a window can have come before the judged units."""


def firing_checks(trigger: FiringTrigger) -> list[Check]:
    """Checks of firings; a row a firing, the one before it, and its window's final result."""
    shown = "" if trigger.panes == "discarding" else " OR NOT coalesce(is_as_final, FALSE)"
    return [
        Check(
            "firings_numbered",
            "A window's firings are numbered 0, 1, 2, ... once each, in the order of units (E2)",
            f"previous_id IS NULL AND firing_id <> 0 AND (firing_id < 0 OR {_BEGAN_SINCE}) "
            "OR firing_id <= previous_id OR arrival_unit < previous_arrival_unit "
            "OR since = previous_since AND firing_id <> previous_id + 1",
        ),
        Check(
            "firing_reasons_in_order",
            "A window fires early, then once on time, then late (rule E2)",
            "reason NOT IN ('EARLY', 'ON_TIME', 'LATE') OR firing_id = 0 AND reason = 'LATE' "
            "OR (since = previous_since OR firing_id = previous_id + 1) "
            "AND (reason = 'LATE') <> (previous_reason <> 'EARLY')",
        ),
        Check(
            "final_firing_is_final",
            "A firing of a closed window shows what is final of it (rules E1, E2)",
            f"is_final AND (NOT final_is_there{shown})",
        ),
    ]


def closed_checks(trigger: FiringTrigger) -> list[Check]:
    """Checks of final windows beside their firings; a row a final window."""
    once = "on_time > 1"
    if trigger.panes == "accumulating":
        once += f" OR on_time = 0 AND {_BEGAN_SINCE}"
    checks = [
        Check(
            "on_time_once",
            "A window that is final has fired once on time; where panes discard, at most (E2)",
            once,
        )
    ]
    if trigger.panes == "accumulating" and trigger.late:
        checks.append(
            Check(
                "last_firing_shows_final",
                "The last firing of a window holds what became final (rules E1, E2)",
                "last_since = since AND NOT is_as_final",
            )
        )
    return checks


def early_warning_checks(windows: Windows, columns: Mapping[str, str]) -> list[Check]:
    """Checks of early warnings; a row a warning and state, with its firing and final window."""
    broken = " OR ".join(
        f"(rule = '{name}' AND ({rule.when_sql(columns)}))" for name, rule in windows.alerts.items()
    )
    return [
        Check(
            "early_warning_breaks_its_rule",
            "An early warning is of a firing, before its window closed, that breaks its rule",
            f"state = 'open' AND NOT is_firing OR NOT coalesce({broken or 'FALSE'}, FALSE)",
        ),
        Check(
            "early_warning_settled_by_final",
            "A warning is confirmed or withdrawn as its window's final result breaks the rule",
            "state NOT IN ('open', 'confirmed', 'withdrawn') OR state <> 'open' "
            "AND (NOT final_is_there OR (state = 'confirmed') <> final_breaks)",
        ),
        Check(
            "early_warning_once",
            "A window's rule is warned of once, and settled once",
            "open_rows > 1 OR settled_rows > 1",
        ),
    ]
