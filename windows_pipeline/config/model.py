"""The pydantic model of a pipeline's YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    PositiveInt,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from windows_pipeline.config.checks import windows_problems
from windows_pipeline.config.fields import (
    Day,
    Identifier,
    Owner,
    Percent,
    PositiveDurationMs,
    Tag,
    Text,
)
from windows_pipeline.config.notify import Target
from windows_pipeline.config.own_checks import CheckName, OwnCheck
from windows_pipeline.config.schedule import Schedule
from windows_pipeline.config.source import Source
from windows_pipeline.config.strict import Strict, refuse
from windows_pipeline.config.windows.kinds import AnyWindows
from windows_pipeline.config.windows.window_kinds import Windows
from windows_pipeline.text.problems import FieldPath, Problem, listed, nearest

SHARED_TABLES = ("raw_events", "rejected_records", "arrival_log", "quarantined_files")
"""The tables that all windows of a pipeline share; windows cannot have these names."""


@dataclass(frozen=True)
class DeclaredIn:
    """Where a pipeline is declared; two pipelines are equal wherever they are declared.

    Attributes:
        file: The file.
        lines: The line of each field, by its path.
    """

    file: Path = field(compare=False)
    lines: Mapping[FieldPath, int] = field(compare=False)

    def line(self, path: FieldPath) -> int:
        """The line of a field, or of the nearest field around it that has a line."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


class Limits(Strict):
    """Shares of a day's records, in percent, above which a check fails.

    Attributes:
        rejected: The rejected records' share of all records.
        late: The late records' share of the accepted records.
        least_records: The least number of records, of which the share is, that a day must have for
            a share to fail it; 1 for any day.
    """

    rejected: Percent = 50.0
    late: Percent = 50.0
    least_records: PositiveInt = 100


class Partitions(Strict):
    """The arrival units: the days in UTC from `start` to `end`, both included.

    Attributes:
        unit: What an arrival unit is.
        start: The first arrival day.
        end: The last arrival day; None for no end, so that each new day adds an arrival unit.
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


_ONLY_BY_DAYS = {
    "on_landing": "a stream reads each file as it lands; remove on_landing, and set by cron how "
    "often the stream looks",
    "automation": "a stream computes as it ingests; remove automation",
}


def _fits_source_kind(schedule: Schedule, info: ValidationInfo) -> Schedule:
    source = info.data.get("source")
    if isinstance(source, Source) and not source.by_days:
        refuse(
            [
                Problem(
                    (name,),
                    schedule.model_dump(mode="json")[name],
                    f"needs a source of day folders that is ingested by days, but {why}",
                )
                for name, why in _ONLY_BY_DAYS.items()
                if name in schedule.model_fields_set
            ]
        )
    return schedule


def _fits_source(windows: Windows, info: ValidationInfo) -> Windows:
    source = info.data.get("source")
    # pydantic leaves out a faulty source: its problems are reported, and windows can't be checked.
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
        name: The pipeline's name, with which its tables' names begin.
        description: What the pipeline is for, in Markdown; Dagster shows it.
        owners: Who owns the tables: e-mail addresses, or `team:NAME`; Dagster shows them.
        tags: Tags of the tables in Dagster, by name.
        source: Where the records come from, and what they hold.
        partitions: The arrival days.
        schedule: When Dagster runs the pipeline by itself.
        expect_every: How long raw_events may go without new records before Dagster shows it as
            late, and targets are notified that records are overdue, ms; None for any time.
        limits: The shares of rejected and late records above which a check fails, and of how many
            records at least.
        checks: The user's own checks of accepted records, by name.
        windows: The window definitions, by name; each has tables of its own.
        notify: The targets that are notified of events of alert episodes, by name.
    """

    name: Identifier
    description: Text | None = None
    owners: list[Owner] = Field(default_factory=list)
    tags: dict[Tag, Tag] = Field(default_factory=dict)
    source: Source
    partitions: Partitions
    schedule: Annotated[Schedule, AfterValidator(_fits_source_kind)] = Schedule()
    expect_every: PositiveDurationMs | None = None
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

    _declared_in: DeclaredIn | None = PrivateAttr(default=None)

    def with_declaration(self, file: Path, lines: Mapping[FieldPath, int]) -> Self:
        """The pipeline, which knows the file that declares it and the line of each field."""
        self._declared_in = DeclaredIn(file, lines)
        return self

    def declared_in(self, *path: str) -> tuple[Path, int] | None:
        """The file and line that declare a field, or the nearest field around it.

        Returns:
            The file and the line; None for a pipeline that was not read from a file.
        """
        if self._declared_in is None:
            return None
        return self._declared_in.file, self._declared_in.line(path)

    @field_validator("windows")
    @classmethod
    def _some_windows(cls, windows: dict[str, AnyWindows]) -> dict[str, AnyWindows]:
        if not windows:
            raise ValueError("declares no windows; declare at least one")
        return windows
