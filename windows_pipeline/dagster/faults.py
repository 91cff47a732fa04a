"""Turns expected faults into Dagster failures with the command line's text, without a trace."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import isgeneratorfunction
from typing import Any, TypeVar

import dagster as dg

from windows_pipeline.faults.chain import innermost
from windows_pipeline.faults.explain import explained
from windows_pipeline.text.references import without_values

Step = TypeVar("Step", bound=Callable[..., Any])


def fails_plainly(step: Step) -> Step:
    """Turns an expected fault of a step into a failure that says what is wrong and what to do.

    The trace of another program's error goes to the step's log, at the level debug.

    Args:
        step: The function of an op or asset; its first argument is the context.
    """
    if isgeneratorfunction(step):

        @wraps(step)
        def run(context: Any, *args: Any, **named: Any) -> Any:
            with _failing_plainly(context):
                yield from step(context, *args, **named)
    else:

        @wraps(step)
        def run(context: Any, *args: Any, **named: Any) -> Any:
            with _failing_plainly(context):
                return step(context, *args, **named)

    return run  # type: ignore[return-value]


@contextmanager
def _failing_plainly(context: Any) -> Iterator[None]:
    try:
        yield
    except dg.Failure:
        raise
    except Exception as error:
        fault = explained(error)
        if fault is None:
            # Spark's text has the message below a trace. Dagster adds the trace itself.
            context.log.error(without_values(innermost(error)))  # noqa: TRY400
            trace = "".join(traceback.format_exception(error))
            if without_values(trace) != trace:  # Dagster would keep it
                raise dg.Failure(without_values(innermost(error))) from None
            raise
        if fault.is_foreign:
            context.log.debug(without_values("".join(traceback.format_exception(error))))
        raise dg.Failure(without_values(str(fault))) from None
