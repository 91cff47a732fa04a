"""User-defined aggregates in Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from windows_pipeline.aggregates.column_type import parse_type
from windows_pipeline.aggregates.function import Takes


@dataclass(frozen=True, slots=True)
class UserAggregate:
    """An aggregate made of a user's functions over an accumulator (rule G1).

    The functions get values as Python objects: int, float, str, bytes, bool, `datetime.date`,
    `datetime.datetime`, `decimal.Decimal`, a dict by name for a struct of several columns, in which
    a null field is None. If a function raises in a window, the window is computed again from its
    own values alone. If that raises, too, the job fails with an error that names the aggregate and
    the window, or the result is null (`on_error="null"`).

    For example the mean of squares, with an accumulator of (count, sum):

        UserAggregate(
            create=lambda: (0, 0.0),
            update=lambda acc, value: (acc[0] + 1, acc[1] + value * value),
            merge=lambda a, b: (a[0] + b[0], a[1] + b[1]),
            result=lambda acc: acc[1] / acc[0] if acc[0] else None,
            result_type="double",
        )

    Without `inverse`, the engine merges values in the order of event time and, at one time, of
    value, so that the result depends on nothing else. Each record costs one update; each
    change of a window costs a number of merges that grows with the logarithm of its length.

    With `inverse`, the engine adds each record once and removes it once. One accumulator then
    serves all windows of a key, so its state must depend neither on the order of updates nor
    on values that were removed: sums of integers fulfil this, sums of floats do not (rule G2).

    Attributes:
        create: Returns a new, empty accumulator; a different object in every call.
        update: Adds a value to an accumulator and returns the result; may change its argument.
        merge: Joins two accumulators, the one of the earlier values first, and returns the
            result. It must be associative, with the empty accumulator as neutral element. It
            may change its first argument. It must never change the second, not through the
            result either: copy mutable parts.
        result: Returns an accumulator's result, None for null; must not change the accumulator.
        result_type: The result's type, as in Spark's DDL: 'double', 'array<bigint>'.
        inverse: Removes an earlier value from an accumulator and returns the result; may change
            its argument. None for an aggregate whose values can't be removed.
        skip_nulls: Whether the aggregate skips nulls, as others do; otherwise they are None.

    Raises:
        ValueError: A function is not callable, or the result type is unknown.
    """

    # What a `Function` answers, too.
    takes: ClassVar[Takes] = Takes.ORDERED
    second: ClassVar[None] = None
    may_overflow: ClassVar[bool] = False
    more_digits: ClassVar[int] = 0
    counts_records: ClassVar[bool] = False
    lists_values: ClassVar[bool] = False

    create: Callable[[], Any]
    update: Callable[[Any, Any], Any]
    merge: Callable[[Any, Any], Any]
    result: Callable[[Any], Any]
    result_type: str
    inverse: Callable[[Any, Any], Any] | None = None
    skip_nulls: bool = True

    def __post_init__(self) -> None:
        """Checks the arguments."""
        for name in ("create", "update", "merge", "result"):
            if not callable(getattr(self, name)):
                value = getattr(self, name)
                raise ValueError(f"{name}: {value!r} is not a function; pass a function")
        if self.inverse is not None and not callable(self.inverse):
            raise ValueError(
                f"inverse: {self.inverse!r} is not a function; pass a function, or None"
            )
        try:
            parse_type(self.result_type)
        except ValueError as error:
            raise ValueError(f"result_type: {error}") from None

    @property
    def name(self) -> str:
        """The name in texts and in names of results."""
        return "user_aggregate"

    def result_of(self, _: str) -> str:
        """The type of a result, whatever the type of the column."""
        return self.result_type
