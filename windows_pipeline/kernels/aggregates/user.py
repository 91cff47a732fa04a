"""Computes a user's own aggregate of many windows (rule G1)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from windows_pipeline.aggregates import Aggregate, ProjectAggregate, UserAggregate
from windows_pipeline.aggregates.column_type import parse_type
from windows_pipeline.kernels.aggregates.user_contents import Contents, contents_of
from windows_pipeline.kernels.aggregates.user_errors import with_location
from windows_pipeline.kernels.arrow_types import arrow_type
from windows_pipeline.kernels.values import is_valid, positions_by_time_and_value, value_codes
from windows_pipeline.kernels.windows.arrays import WindowArrays
from windows_pipeline.kernels.windows.filled import WindowedRecords

_LONGEST_REASON = 2_000
_UNCHANGING = (bool, bytes, float, int, str, type(None))
_NOT_OF_TYPE = (pa.ArrowException, TypeError, OverflowError, ValueError)
"""What Arrow raises for values of another type."""


def aggregate_of_user(
    aggregate: Aggregate,
    user: UserAggregate,
    column: pa.Array,
    records: WindowedRecords,
) -> pa.Array:
    """Computes a user's aggregate of each window.

    A window fails if and only if it fails when computed alone (`WindowedRecords.fail`). If failures
    are noted, a failed window's result is null.

    Raises:
        RuntimeError: A function of the user raised; names aggregate and window.
        TypeError: A result is not of the declared type; names aggregate and window.
    """
    kind = arrow_type(parse_type(user.result_type))
    results: list[Any] = []
    for window, result in enumerate(_results(user, column, records)):
        if isinstance(result, _Raised):
            error_of = partial(_raised, aggregate, records, result.error)
            _fail(aggregate, records, np.array([window]), error_of)
        results.append(None if isinstance(result, _Raised) else result)
    try:
        return pa.array(results, kind)
    except _NOT_OF_TYPE:
        misfits = {
            window: error
            for window, result in enumerate(results)
            if (error := _misfit(result, kind)) is not None
        }
        if not misfits:
            raise

    def misfit_of(window: int) -> Exception:
        mistyped = TypeError(
            f"{aggregate.name}: {aggregate} returned {results[window]!r}, which is no "
            f"{user.result_type}, in {records.describe(window)}: {misfits[window]}"
        )
        mistyped.__cause__ = misfits[window]
        return mistyped

    _fail(aggregate, records, np.array(list(misfits)), misfit_of)
    fitting = [None if window in misfits else result for window, result in enumerate(results)]
    return pa.array(fitting, kind)


def _results(
    user: UserAggregate, column: pa.Array, records: WindowedRecords
) -> Iterator[Any | _Raised]:
    """Each window's result, or the exception that computing the window alone raises.

    An exception may corrupt the contents that windows share, or result from corrupt contents. So
    the window is computed again, alone, and later windows share new contents.
    """
    inputs = _Inputs.of(user, column, records)
    windows, starts = records.windows, records.starts
    order = windows.enter_order.tolist()
    group, low, entered, left = -1, 0, 0, 0
    contents: Contents | None = None
    rows = zip(windows.group.tolist(), windows.entered.tolist(), windows.left.tolist(), strict=True)
    for window, (of_group, to_enter, to_leave) in enumerate(rows):
        try:
            if of_group != group:
                group = of_group
                low = entered = left = int(starts[group])
                contents = None
                contents = contents_of(user, int(starts[group + 1]) - low)
            if contents is not None:
                inputs.move(contents, low, order[entered:to_enter], range(left, to_leave))
                result = _result(user, contents)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001  whatever the user's code raises
            contents = None
        entered, left = to_enter, to_leave
        if contents is None:
            inside = inputs.inside(window)
            result = inputs.alone(inside)
            # While windows fail, shared contents are not made.
            if not isinstance(result, _Raised):
                contents = inputs.shared(inside, low, int(starts[group + 1]) - low)
        yield result


@dataclass(frozen=True)
class _Raised:
    """An error that a user's function raised."""

    error: Exception


@dataclass(frozen=True)
class _Inputs:
    """The records of a chunk as a user's functions take them.

    Attributes:
        user: The functions.
        windows: The windows.
        starts: Where each group's records begin.
        positions: The positions of the records by group, event time and value.
        values: The values as Python objects.
        counted: Whether each record counts.
    """

    user: UserAggregate
    windows: WindowArrays
    starts: np.ndarray
    positions: list[int]
    values: list[Any]
    counted: list[bool]

    @classmethod
    def of(cls, user: UserAggregate, column: pa.Array, records: WindowedRecords) -> _Inputs:
        valid, codes = is_valid(column), value_codes(column)
        positions = positions_by_time_and_value(records.starts, records.time_ms, codes, valid)
        counted = valid | (not user.skip_nulls)
        return cls(
            user,
            records.windows,
            records.starts,
            positions.tolist(),
            column.to_pylist(),
            counted.tolist(),
        )

    def move(
        self, contents: Contents, low: int, entering: Sequence[int], leaving: Sequence[int]
    ) -> None:
        """Adds the records that enter to a group's contents, and removes those that leave."""
        positions, values, counted = self.positions, self.values, self.counted
        for record in sorted(entering, key=positions.__getitem__):
            if counted[record]:
                contents.enter(positions[record] - low, values[record])
        for record in sorted(leaving, key=positions.__getitem__):
            if counted[record]:
                contents.leave(positions[record] - low, values[record])

    def inside(self, window: int) -> list[int]:
        """The records of a window that count, by event time and value."""
        windows = self.windows
        first, left = self.starts[windows.group[window]], windows.left[window]
        entered = windows.enter_order[first : windows.entered[window]]
        held = entered[entered >= left].tolist()
        return sorted((each for each in held if self.counted[each]), key=self.positions.__getitem__)

    def alone(self, inside: list[int]) -> Any | _Raised:
        """The result of records that share nothing with other windows."""
        try:
            contents = contents_of(self.user, len(inside))
            for position, record in enumerate(inside):
                contents.enter(position, self.values[record])
            return _result(self.user, contents)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001  whatever the user's code raises
            return _Raised(error)

    def shared(self, inside: list[int], low: int, size: int) -> Contents | None:
        """New contents with these records, for later windows; None if they can't be made."""
        try:
            contents = contents_of(self.user, size)
            self.move(contents, low, inside, ())
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001  whatever the user's code raises
            return None
        return contents


def _result(user: UserAggregate, contents: Contents) -> Any:
    result = user.result(contents.accumulator())
    # A result may be part of the accumulator, which later values change.
    return result if type(result) in _UNCHANGING else copy.deepcopy(result)


def _fail(
    aggregate: Aggregate,
    records: WindowedRecords,
    windows: np.ndarray,
    error_of: Callable[[int], Exception],
) -> None:
    """Notes or raises a failure; with the error's text if a project's aggregate failed."""
    if records.noted is None or not isinstance(aggregate.function, ProjectAggregate):
        records.fail(aggregate.name, windows, error_of)
        return
    for window in windows:
        text = str(error_of(int(window)))[:_LONGEST_REASON]
        records.fail(
            f"{aggregate.name}{ProjectAggregate.BEFORE_REASON}{text}", np.array([window]), error_of
        )


def _raised(
    aggregate: Aggregate, records: WindowedRecords, cause: Exception, window: int
) -> RuntimeError:
    """The error of a window in which a user's function raised."""
    error = RuntimeError(
        f"{aggregate.name}: {aggregate} failed in {records.describe(window)}: "
        f"{with_location(cause, getattr(aggregate.function, 'file', ''))}"
    )
    error.__cause__ = cause
    return error


def _misfit(result: Any, kind: pa.DataType) -> Exception | None:
    """Why a result is not of the declared type; None if it is."""
    try:
        pa.array([result], kind)
    except _NOT_OF_TYPE as error:
        return error
    return None
