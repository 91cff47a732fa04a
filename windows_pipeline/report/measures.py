"""Which value of a window a rule's plots show, and the threshold that breaks the rule."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from windows_pipeline.alerts.rule_sql import columns_read
from windows_pipeline.config import Pipeline, Rule, Windows

_COUNT = "record_count"
_NUMBERS = re.compile(r"(tinyint|smallint|int|bigint|float|double|decimal\(.*\))\Z")


class Measure(NamedTuple):
    """A number of a window.

    Attributes:
        column: The column of final_windows.
        threshold: The value that the rule compares the column with; None if there is no such
            value, or several.
        keeps_smallest: Whether small values are the bad ones.
    """

    column: str
    threshold: float | None
    keeps_smallest: bool


def numeric_columns(pipeline: Pipeline, windows: Windows) -> set[str]:
    """The results of windows that are numbers."""
    kinds = windows.result_columns(windows.keyed(pipeline.source))
    return {name for name, kind in kinds.items() if _NUMBERS.match(kind)} | {_COUNT}


def measure_of(rule: Rule, numbers: Collection[str]) -> Measure:
    """The column to plot for a rule: the first that its severity reads, else its condition.

    Args:
        rule: The rule.
        numbers: The columns that are numbers.
    """
    column = _first(rule.severity, numbers) or _first(rule.when, numbers) or _COUNT
    compared = re.findall(
        rf"(?<![\w.`]){re.escape(column)}\s*(<=|>=|<|>)\s*(-?\d+(?:\.\d+)?)(?![\w.])", rule.when
    )
    threshold = float(compared[0][1]) if len(compared) == 1 else None
    by_less = all(sign.startswith("<") for sign, _ in compared)
    is_negated = str(rule.severity).lstrip(" (").startswith("-")
    return Measure(column, threshold, by_less if compared else is_negated)


def values_compared(rule: Rule, columns: Collection[str]) -> list[str]:
    """The results that a rule reads, in the order of its text; `record_count` is always there."""
    found = [name for name in _in_order(rule.when, columns) if name != _COUNT]
    return [*found, _COUNT]


def _first(text: object, numbers: Collection[str]) -> str | None:
    return next(iter(_in_order(str(text), numbers)), None)


def _in_order(text: str, names: Collection[str]) -> list[str]:
    found = columns_read(text) & set(names)
    return sorted(found, key=lambda name: (text.find(name), name))
