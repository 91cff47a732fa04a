"""The models of windows by time, one for each kind; `row_kinds` has those of windows by row."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, StrictBool

from windows_pipeline.aggregates import Aggregate, UserFunction, UserModules
from windows_pipeline.alerts.rule_sql import (
    EPISODE_MS,
    ValueSql,
    columns_read,
    compile_rule,
    struct_fields,
)
from windows_pipeline.config.aggregates import (
    BoundAggregates,
    aggregates_of,
    bound,
    failure_of,
    result_types,
)
from windows_pipeline.config.columns.key import NO_KEY, key_type
from windows_pipeline.config.fields import (
    AggregateText,
    Condition,
    DurationMs,
    Identifier,
    Instant,
    NumberRule,
    Owner,
    PositiveDurationMs,
    Text,
    WebAddress,
    modules_in,
)
from windows_pipeline.config.keys import Filter, OwnKey, filter_sql
from windows_pipeline.config.own_checks import FIRING_COLUMNS, CheckName, ResultCheck
from windows_pipeline.config.source import Source
from windows_pipeline.config.strict import Strict
from windows_pipeline.config.windows.firing_trigger import FiringTrigger, not_empty
from windows_pipeline.config.windows.window_function import Process, as_process
from windows_pipeline.text.instants import epoch_ms
from windows_pipeline.text.problems import Problem
from windows_pipeline.windows import (
    ForwardSlidingWindows,
    PipelineWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
)


def fixed_result_columns(source: Source) -> dict[str, str]:
    """Returns the columns of every window's result, aggregates aside, with their Spark types."""
    times = ("window_start", "window_end", "first_event_time", "last_event_time")
    key = {} if source.key == NO_KEY else {"key": key_type(source.key, source.types)}
    return {
        **key,
        **dict.fromkeys(times, "timestamp"),
        "record_count": "bigint",
    }


_LEVELS = ("critical", "warning", None, "info")
"""The levels of alert rules, the most urgent first; None is a rule without a level."""


class Rule(Strict):
    """An alert rule over final results (rule E5).

    Attributes:
        when: SQL that is true for windows that break the rule.
        severity: A number, or SQL of a number; the worst window of an episode has the largest.
            Besides the columns of the result it may read `episode_ms`: the milliseconds from the
            start of the episode to the end of the window; at the end of a silence, to the key's
            next record.
        description: What a broken rule means, for whoever gets the alert.
        level: How urgent an alert is.
        owner: Who takes care of alerts: an e-mail address, or `team:NAME`.
        runbook: The address of a page that says what to do.
    """

    when: Condition
    severity: NumberRule
    description: Text | None = None
    level: Literal["info", "warning", "critical"] | None = None
    owner: Owner | None = None
    runbook: WebAddress | None = None

    def when_sql(self, columns: Mapping[str, str]) -> ValueSql:
        """Compiles the condition to SQL for Spark, over `Windows.result_columns`.

        `Windows.breaking_sql` also leaves out windows in which the rule can't be evaluated.

        Raises:
            RuleError: See `windows_pipeline.alerts.rule_sql.compile_rule`.
        """
        return compile_rule(self.when, columns, "boolean")

    def severity_sql(self, columns: Mapping[str, str]) -> ValueSql:
        """Compiles the severity to SQL for Spark, over `Windows.result_columns` and `episode_ms`.

        It is null where a number does not fit its type.

        Raises:
            RuleError: See `windows_pipeline.alerts.rule_sql.compile_rule`.
        """
        return compile_rule(self.severity, {**columns, EPISODE_MS: "bigint"}, "number")

    @property
    def urgency(self) -> int:
        """The rank of the level, 0 for the most urgent; severities of rules do not compare."""
        return _LEVELS.index(self.level)

    @property
    def reads(self) -> frozenset[str]:
        """The columns that the rule reads, those of its severity included."""
        return columns_read(self.when) | columns_read(self.severity)


class Windows(Strict):
    """A window definition of any kind, with its aggregates and alert rules.

    Attributes:
        kind: The kind of window.
        key: The column, or columns, whose values each have windows of their own; None for the
            source's key, the empty list for one key that all records have.
        where: SQL over the source's columns that is true of the records that windows hold; None
            for all records.
        grace: How long after its end a window still takes records, ms (rule A3).
        partial_results: Whether keyed_windows holds open windows as well as closed ones.
        aggregates: Calls such as ``avg(dep_delay)``, of a column or an expression, with or without
            a condition, by the name of their result; `record_count` is in every result.
        alerts: The alert rules, by name.
        trigger: When windows fire, before they close or as they do (rule E2); None for windows that
            don't.
        process: A Python function that turns each firing into rows of the table `processed`; None
            for no such table (rule E3).
        on_failed: Whether a day with an aggregate that a rule reads, but that can't be computed, is
            published (`publish`) or not (`block`); the check fails either way (rule G3).
        checks: The user's own checks of the results, by name.
    """

    examples: ClassVar[Mapping[str, str]] = {}
    """What a missing field may be, where other kinds have a field of that name."""

    kind: str
    key: OwnKey = None
    where: Filter = None
    grace: DurationMs
    partial_results: StrictBool = True
    aggregates: dict[Identifier, AggregateText] = Field(default_factory=dict)
    alerts: dict[Identifier, Rule] = Field(default_factory=dict)
    trigger: Annotated[FiringTrigger | None, BeforeValidator(not_empty)] = None
    process: Annotated[Process | None, BeforeValidator(as_process)] = None
    on_failed: Literal["publish", "block"] = "publish"
    checks: dict[CheckName, ResultCheck] = Field(default_factory=dict)
    _modules: UserModules = PrivateAttr(default_factory=UserModules)

    def model_post_init(self, context: object) -> None:
        """Takes the modules of users' aggregates from the context of validation."""
        self._modules = modules_in(context)

    def urgency(self, rule: str) -> int:
        """The rank of a rule's level, 0 for the most urgent; of an unknown rule, as of no level."""
        found = self.alerts.get(rule)
        return _LEVELS.index(None) if found is None else found.urgency

    @staticmethod
    def check_of(rule: str) -> str:
        """The name of the check by which Dagster shows the episodes of a rule."""
        return f"alert_{rule}"

    @property
    @abstractmethod
    def spec(self) -> PipelineWindows:
        """The window specification."""

    @property
    def row_key(self) -> tuple[str, ...]:
        """The columns that identify the row of a window; empty for windows by time."""
        return ()

    @property
    def frame_names(self) -> tuple[str, ...]:
        """The names of the frames that aggregates choose from; empty for windows of one frame."""
        return ()

    @property
    def window_key(self) -> tuple[str, ...]:
        """The columns that identify a window."""
        return ("key", "window_start", "window_end", *self.row_key)

    def keyed(self, source: Source) -> Source:
        """The source with the key of these windows; the windows' results follow from it."""
        return source if self.key is None else source.model_copy(update={"key": self.key})

    def where_sql(self, source: Source) -> str | None:
        """Compiles the filter to SQL for Spark; None if windows hold all records."""
        return None if self.where is None else filter_sql(self.where, source)

    def problems(self, source: Source) -> Iterator[Problem]:
        """Yields conflicts between the fields of this kind, or with the source."""
        del source
        yield from ()

    @property
    def aggregate_list(self) -> list[Aggregate]:
        """The aggregates, in the order of the file."""
        return aggregates_of(self.aggregates, self._modules)

    @property
    def window_function(self) -> UserFunction | None:
        """The function that turns firings into rows; None without one."""
        return None if self.process is None else self._modules.function(self.process.function)

    def bound_aggregates(self, source: Source) -> BoundAggregates:
        """The aggregates with the columns that they take of the source's records."""
        return bound(self.aggregate_list, self.keyed(source))

    def result_columns(self, source: Source) -> dict[str, str]:
        """Returns the columns of final results that a rule may use, each with its Spark type."""
        keyed = self.keyed(source)
        return {**fixed_result_columns(keyed), **result_types(self.aggregate_list, keyed)}

    def checked_columns(self, columns: Mapping[str, str], table: str) -> dict[str, str]:
        """Returns the columns that the user's own checks of a table may read, with their types.

        For a key of several columns the checks read its parts.

        Args:
            columns: The types of the results, as of `result_columns`.
            table: `final_windows` or `firings`.
        """
        parts = struct_fields(columns.get("key", ""))
        plain = {name: kind for name, kind in columns.items() if name != "key" or not parts}
        return {**parts, **plain, **(FIRING_COLUMNS if table == "firings" else {})}

    def failure_messages(self, columns: Mapping[str, str]) -> dict[str, str]:
        """What is wrong where an aggregate can't be computed, by the aggregate's name (rule G3).

        Aggregates that can always be computed are left out.

        Args:
            columns: The types of the results, as of `result_columns`.
        """
        failures = {each.name: failure_of(each, columns[each.name]) for each in self.aggregate_list}
        return {name: text for name, text in failures.items() if text is not None}

    def breaking_sql(self, rule: Rule, columns: Mapping[str, str]) -> str:
        """Compiles the condition that a window breaks a rule (rules E5, G3).

        No window breaks a rule that can't be evaluated there.
        """
        condition, undecided = rule.when_sql(columns).sql, self._undecided_sql(rule, columns)
        return condition if undecided is None else f"({condition}) AND NOT {undecided}"

    def undecided_rules_sql(self, columns: Mapping[str, str]) -> str | None:
        """The list of the rules that can't be evaluated in a window (rule G3).

        None if each rule can be evaluated in every window.
        """
        undecided = {name: self._undecided_sql(rule, columns) for name, rule in self.alerts.items()}
        # Names are identifiers, so they need no escapes.
        named = [f"IF({sql}, '{name}', NULL)" for name, sql in undecided.items() if sql]
        return f"array_compact(array({', '.join(named)}))" if named else None

    def _undecided_sql(self, rule: Rule, columns: Mapping[str, str]) -> str | None:
        """The condition that a rule can't be evaluated in a window; None if it always can.

        It reads an aggregate that can't be computed, or a number or time in its condition does not
        fit its type.
        """
        read = [name for name in self.failure_messages(columns) if name in rule.reads]
        found = [sql for sql in (_failed_sql(read), rule.when_sql(columns).fails) if sql]
        return f"({' OR '.join(found)})" if found else None


def _failed_sql(names: Sequence[str]) -> str | None:
    """The condition that an aggregate with one of these names failed; None without names."""
    if not names:
        return None
    # Names are identifiers, so they need no escapes.
    return f"arrays_overlap(`failed`, array({', '.join(map(repr, names))}))"


class SlidingKind(Windows):
    """Windows of the records that are at most a time difference apart (rules B).

    Attributes:
        time_difference: The largest difference between two records of one window, ms (rule B2).
        first_window_start: The earliest start of a window (rule B6); None for no bound.
        emit_empty: Whether a time without records gives a window of count 0 (rule B8).
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


class ForwardKind(Windows):
    """Windows of one size that start at each distinct time of a key's records (rule B7).

    Attributes:
        size: The time from a window's first record to its end, which belongs to it, ms.
    """

    kind: Literal["forward"]
    grace: DurationMs = 0
    size: PositiveDurationMs

    @property
    def spec(self) -> ForwardSlidingWindows:
        """The window specification."""
        return ForwardSlidingWindows(self.size, self.grace)

    def problems(self, source: Source) -> Iterator[Problem]:
        """Yields conflicts between the fields of this kind."""
        yield from super().problems(source)
        if self.trigger is not None and not self.trigger.final_only:
            text = (
                "windows fire only when they close; write 'trigger: {final: true}', or use kind: "
                "sliding, hopping or tumbling"
            )
            yield Problem(("trigger",), self.kind, text)


class HoppingKind(Windows):
    """Windows of one size that start at each multiple of an advance (rule C1).

    Attributes:
        size: The length of a window, ms; the window's end is exclusive.
        advance: The time from one window's start to the next one's, ms.
        first_window_start: The earliest start of a window; None for no bound.
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


class TumblingKind(Windows):
    """Windows of one size, one after the other (rule C1).

    Attributes:
        size: The length of a window, ms; the window's end is exclusive.
        first_window_start: The earliest start of a window; None for no bound.
    """

    kind: Literal["tumbling"]
    size: PositiveDurationMs
    first_window_start: Instant | None = None

    @property
    def spec(self) -> TimeWindows:
        """The window specification."""
        first_ms = _epoch_ms(self.first_window_start)
        return TimeWindows(self.size, self.size, self.grace, first_ms)


class SessionKind(Windows):
    """Runs of a key's records without a gap between records that is longer than `gap` (rule D1).

    Attributes:
        gap: The longest time between two consecutive records of a session, ms.
    """

    kind: Literal["session"]
    gap: PositiveDurationMs

    @property
    def spec(self) -> SessionWindows:
        """The window specification."""
        return SessionWindows(self.gap, self.grace)

    def problems(self, source: Source) -> Iterator[Problem]:
        """Refuses several source partitions: a slow partition may yet join sessions."""
        yield from super().problems(source)
        if source.has_several_partitions:
            text = (
                "needs one order of arrival (rule D2), but this source may have several source "
                f"partitions; {source.one_order}, or use another kind"
            )
            yield Problem(("kind",), self.kind, text)


def _epoch_ms(instant: Instant | None) -> int | None:
    return None if instant is None else epoch_ms(instant)
