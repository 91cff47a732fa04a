"""The windows by time that a pipeline's file can name, a model a kind; see `row_kinds`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field, StrictBool

from windows_pipeline.aggregates import Aggregate, parse_aggregate
from windows_pipeline.alerts.rule_sql import compile_expression
from windows_pipeline.config.checks import fixed_result_columns
from windows_pipeline.config.fields import (
    AggregateText,
    Condition,
    DurationMs,
    Identifier,
    Instant,
    NumberRule,
    PositiveDurationMs,
    epoch_ms,
)
from windows_pipeline.config.firing_trigger import FiringTrigger, not_empty
from windows_pipeline.config.strict import Strict
from windows_pipeline.text.problems import Problem
from windows_pipeline.windows import (
    PipelineWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
)

if TYPE_CHECKING:
    from windows_pipeline.config.model import Source


class Rule(Strict):
    """An alert rule over final results (rule E5).

    Attributes:
        when: SQL that is true for a window that breaks the rule.
        severity: A number or SQL of one, largest for the worst window of an episode.
    """

    when: Condition
    severity: NumberRule

    def when_sql(self, columns: Mapping[str, str]) -> str:
        """The condition as SQL for Spark, over `Windows.result_columns`.

        Raises:
            RuleError: See `windows_pipeline.rules.compile_expression`.
        """
        return compile_expression(self.when, columns, "boolean")

    def severity_sql(self, columns: Mapping[str, str]) -> str:
        """The severity as SQL for Spark, over `Windows.result_columns`.

        Raises:
            RuleError: See `windows_pipeline.rules.compile_expression`.
        """
        return compile_expression(self.severity, columns, "number")


class Windows(Strict):
    """A named window definition with what is computed in it, of any kind.

    Attributes:
        kind: What kind of window.
        grace: How long after its end a window still takes records, ms (rule A3).
        partial_results: Whether keyed_windows holds open windows too, or closed ones only.
        aggregates: Calls such as ``avg(dep_delay)``, by the name of their result.
        alerts: The alert rules, by name.
        trigger: When windows fire before they close (rule E2); None where they don't.
    """

    kind: str
    grace: DurationMs
    partial_results: StrictBool = True
    aggregates: dict[Identifier, AggregateText]
    alerts: dict[Identifier, Rule] = Field(default_factory=dict)
    trigger: Annotated[FiringTrigger | None, BeforeValidator(not_empty)] = None

    @property
    @abstractmethod
    def spec(self) -> PipelineWindows:
        """The window specification."""

    @property
    def row_name(self) -> tuple[str, ...]:
        """The columns that name the row whose window it is; none where windows are of no row."""
        return ()

    @property
    def named_by(self) -> tuple[str, ...]:
        """The columns that name a window."""
        return ("key", "window_start", "window_end", *self.row_name)

    def problems(self, source: Source) -> Iterator[Problem]:
        """What of its kind does not fit together, or the source."""
        del source
        yield from ()

    @property
    def aggregate_list(self) -> list[Aggregate]:
        """The aggregates, in the order of the file."""
        return [parse_aggregate(name, text) for name, text in self.aggregates.items()]

    def result_columns(self, source: Source) -> dict[str, str]:
        """The columns of final results that a rule may use, each with its Spark type."""
        columns = fixed_result_columns(source)
        for aggregate in self.aggregate_list:
            columns[aggregate.name] = aggregate.result_type(source.types[aggregate.column])
        return columns


class Sliding(Windows):
    """Windows of the records that are at most a time difference apart (rules B).

    Attributes:
        time_difference: The most that two records of one window are apart, ms (rule B2).
        first_window_start: No window starts before it (rule B6); None for no bound.
        emit_empty: Whether a silence gives a window of count 0 (rule B8).
    """

    kind: Literal["sliding"]
    time_difference: PositiveDurationMs
    first_window_start: Instant | None = None
    emit_empty: StrictBool = False

    @property
    def spec(self) -> SlidingWindows:
        """The window specification."""
        first_ms = _epoch_ms(self.first_window_start)
        return SlidingWindows(self.time_difference, self.grace, first_ms, self.emit_empty)


class Hopping(Windows):
    """Windows of one size that start at each multiple of an advance (rule C1).

    Attributes:
        size: How long a window is, ms; its end does not belong to it.
        advance: From one window's start to the next one's, ms.
        first_window_start: No window starts before it; None for no bound.
    """

    kind: Literal["hopping"]
    size: PositiveDurationMs
    advance: PositiveDurationMs
    first_window_start: Instant | None = None

    @property
    def spec(self) -> TimeWindows:
        """The window specification."""
        first_ms = _epoch_ms(self.first_window_start)
        return TimeWindows(self.size, self.advance, self.grace, first_ms)


class Tumbling(Windows):
    """Windows of one size, one after the other (rule C1).

    Attributes:
        size: How long a window is, ms; its end does not belong to it.
        first_window_start: No window starts before it; None for no bound.
    """

    kind: Literal["tumbling"]
    size: PositiveDurationMs
    first_window_start: Instant | None = None

    @property
    def spec(self) -> TimeWindows:
        """The window specification."""
        first_ms = _epoch_ms(self.first_window_start)
        return TimeWindows(self.size, self.size, self.grace, first_ms)


class Session(Windows):
    """Records of a key without a longer gap between them (rules D).

    Attributes:
        gap: The longest silence within a session, ms.
    """

    kind: Literal["session"]
    gap: PositiveDurationMs

    @property
    def spec(self) -> SessionWindows:
        """The window specification."""
        return SessionWindows(self.gap, self.grace)


def _epoch_ms(instant: Instant | None) -> int | None:
    return None if instant is None else epoch_ms(instant)
