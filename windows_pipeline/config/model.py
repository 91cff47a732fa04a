"""The pydantic model of a pipeline's YAML file."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from windows_pipeline.config.checks import windows_problems
from windows_pipeline.config.fields import (
    Day,
    Identifier,
    Percent,
)
from windows_pipeline.config.kinds import AnyWindows
from windows_pipeline.config.notify import Target
from windows_pipeline.config.own_checks import CheckName, OwnCheck
from windows_pipeline.config.source import Source
from windows_pipeline.config.strict import Strict, refuse
from windows_pipeline.config.window_kinds import Windows
from windows_pipeline.text.problems import Problem, listed, nearest

SHARED_TABLES = ("raw_events", "rejected_records", "arrival_log", "quarantined_files")
"""The tables that all windows of a pipeline share; windows cannot have these names."""


class Limits(Strict):
    """Shares of a day's records, in percent, above which a check fails.

    Attributes:
        rejected: The rejected records' share of all records.
        late: The late records' share of the accepted records.
    """

    rejected: Percent = 50.0
    late: Percent = 50.0


class Partitions(Strict):
    """The arrival units: the days in UTC from `start` to `end`, both included.

    Attributes:
        unit: What an arrival unit is.
        start: The first arrival day.
        end: The last arrival day; None for no end, so that each new day adds a unit.
    """

    unit: Literal["day"] = "day"
    start: Day
    end: Day | None = None

    @model_validator(mode="after")
    def _end_not_before_start(self) -> Self:
        if self.end is not None and self.end < self.start:
            text = f"must not be before the start, {self.start}; write that day or a later one"
            refuse([Problem(("end",), str(self.end), text)])
        return self


def _windows_name(name: str) -> str:
    if name in SHARED_TABLES:
        raise ValueError("is the name of a table; use another name")
    return name


def _fits_records(check: OwnCheck, info: ValidationInfo) -> OwnCheck:
    source = info.data.get("source")
    if isinstance(source, Source):
        refuse(list(check.problems(source.types)))
    return check


def _fits_source(windows: Windows, info: ValidationInfo) -> Windows:
    source = info.data.get("source")
    # pydantic leaves out a source that has problems: those are reported, and windows can't be.
    if isinstance(source, Source):
        refuse(windows_problems(windows, source))
    return windows


def _fits_rules(target: Target, info: ValidationInfo) -> Target:
    windows: dict[str, Windows] | None = info.data.get("windows")
    if windows is not None:
        rules = list(dict.fromkeys(rule for each in windows.values() for rule in each.alerts))
        refuse(
            [
                Problem(("rules", str(number)), rule, f"is not an alert rule here; {fix}")
                for number, rule in enumerate(target.rules or ())
                if rule not in rules
                for fix in [nearest(rule, rules, f"the rules are: {listed(rules) or 'none'}")]
            ]
        )
    return target


class Pipeline(Strict):
    """One source, its arrival units and one or more named windows over its records.

    Attributes:
        name: The pipeline's name, which its tables' names begin with.
        source: Where the records come from, and what they hold.
        partitions: The arrival days.
        limits: The shares of rejected and late records above which a check fails.
        checks: The user's own checks of accepted records, by name.
        windows: The window definitions, by name; each has tables of its own.
        notify: Who is told what happens to episodes of alerts, by name.
    """

    name: Identifier
    source: Source
    partitions: Partitions
    limits: Limits = Limits()
    checks: dict[CheckName, Annotated[OwnCheck, AfterValidator(_fits_records)]] = Field(
        default_factory=dict
    )
    windows: dict[
        Annotated[Identifier, AfterValidator(_windows_name)],
        Annotated[AnyWindows, Field(discriminator="kind"), AfterValidator(_fits_source)],
    ]
    notify: dict[Identifier, Annotated[Target, AfterValidator(_fits_rules)]] = Field(
        default_factory=dict
    )

    @field_validator("windows")
    @classmethod
    def _some_windows(cls, windows: dict[str, AnyWindows]) -> dict[str, AnyWindows]:
        if not windows:
            raise ValueError("declares no windows; declare at least one")
        return windows
