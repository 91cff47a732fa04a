"""A user's own aggregate, in Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from windows_pipeline.aggregates.column_type import parse_type


@dataclass(frozen=True, slots=True)
class UserAggregate:
    """An aggregate made of a user's functions over an accumulator (rule G1).

    A value reaches them as Python has it: int, float, str, bytes, bool, `datetime.date`,
    `datetime.datetime`, `decimal.Decimal`, a dict for a struct. A function that raises stops
    the job, with an error that names aggregate and window.

    The mean of squares, for one, with an accumulator of (count, sum):

        UserAggregate(
            create=lambda: (0, 0.0),
            update=lambda acc, value: (acc[0] + 1, acc[1] + value * value),
            merge=lambda a, b: (a[0] + b[0], a[1] + b[1]),
            result=lambda acc: acc[1] / acc[0] if acc[0] else None,
            result_type="double",
        )

    Without `inverse`, values are merged in the order of event time, and of value where event
    times are equal, so that the result depends on nothing else; each record costs an update
    and each change of a window a number of merges that grows with the logarithm of the
    window's length.

    With `inverse`, each record is updated once and taken out once. One accumulator then
    serves all windows of a key, so the order of updates and what was taken out must leave no
    trace in it: sums of integers may be such, sums of floats are not (rule G2).

    Attributes:
        create: Makes a new accumulator, of no value. Called often: never hand out one twice.
        update: Takes a value into an accumulator and returns it; may change the one it got.
        merge: Joins two accumulators, the earlier values first, and returns the result; must
            be associative, with what `create` makes as its neutral element. May change its
            first argument, must leave the second as it is, also later: it copies what can
            change.
        result: An accumulator's result, null for None; must leave the accumulator as it is.
        result_type: The result's type, as in Spark's DDL: 'double', 'array<bigint>'.
        inverse: Takes an earlier value out of an accumulator and returns it; may change the
            one it got. None where that can't be done.
        skip_nulls: Whether nulls are left out, as other aggregates do; else they are None.

    Raises:
        ValueError: An unknown result type.
    """

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
                raise ValueError(f"{name}: {getattr(self, name)!r} is no function; pass one")
        if self.inverse is not None and not callable(self.inverse):
            raise ValueError(f"inverse: {self.inverse!r} is no function; pass one, or None")
        try:
            parse_type(self.result_type)
        except ValueError as error:
            raise ValueError(f"result_type: {error}") from None
