"""The door of the command line: all commands, and how their errors are printed."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from windows_pipeline.cli.commands import (
    check,
    correct,
    forget,
    maintain,
    rebuild,
    run,
    stream,
)
from windows_pipeline.cli.failures import noting_failures
from windows_pipeline.cli.init import init
from windows_pipeline.cli.jobs.validate import validate
from windows_pipeline.cli.new import new
from windows_pipeline.cli.notify import notify
from windows_pipeline.cli.questions.episodes import episodes
from windows_pipeline.cli.questions.explain import explain
from windows_pipeline.cli.questions.fetch import fetch
from windows_pipeline.cli.questions.newest import alerts, late, rejected, rows
from windows_pipeline.cli.questions.status import status
from windows_pipeline.cli.questions.trace import trace
from windows_pipeline.cli.report import report
from windows_pipeline.cli.session import Invocation, StartSession, invocation
from windows_pipeline.cli.terminal.console import ERRORS
from windows_pipeline.cli.terminal.printed import say
from windows_pipeline.text.references import without_values

# Each group of `--help`, its commands, and an example of each that fits 80 columns.
_GROUPS: dict[str, dict[Callable[..., None], str]] = {
    "Begin": {
        init: "init streams",
        new: "new payments --from payments.csv",
        validate: "validate flights",
    },
    "Compute": {
        run: "run flights --from 2013-01-01 --to 2013-01-31",
        stream: "stream flights --every '10 seconds'",
        rebuild: "rebuild flights --from final_windows",
        correct: "correct payments --from 2026-11-02 --cause 'late files'",
        forget: "forget flights 2013-03-08",
    },
    "Look at results": {
        status: "status flights",
        alerts: "alerts flights --windows hourly --from 2013-03-01",
        late: "late flights --windows hourly --json",
        rejected: "rejected flights --from 2013-03-08 --to 2013-03-08",
        rows: "rows flights failed_windows --windows hourly",
        fetch: "fetch flights JFK --windows hourly --from 2013-03-08",
        episodes: "episodes flights --windows hourly --rule quiet",
        trace: "trace flights LGA '2013-09-13 02:00:00.001' --windows hourly",
        explain: "explain flights LGA '2013-09-13 01:25' --windows hourly",
    },
    "Notify people": {
        report: "report flights --from 2013-07-01 --output summer.html",
        notify: "notify flights --dry-run",
    },
    "Keep tables in order": {
        check: "check flights",
        maintain: "maintain flights",
    },
}

Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", help="Say where the log lies, print each step, and show traces of errors."
    ),
]

_INTERRUPTED = 130
"""The exit status of a command that Ctrl-C stopped, as in shells."""

app = typer.Typer(
    help="Exact event-time windows on Spark and Delta.",
    epilog="Exit status: 0 done; 1 a check failed, or something is left to do; 2 wrong arguments, "
    "files or tables; 3 a landed file is bad; 4 the machine failed, such as its disk; 130 Ctrl-C "
    "stopped it. Errors say what to do.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _with_verbose(function: Callable[..., None]) -> Callable[..., None]:
    """The command with the option `--verbose`, and with its name known to the call."""
    signature = inspect.signature(function, eval_str=True)
    takes_context = "context" in signature.parameters

    @wraps(function)
    def command(*, context: typer.Context, verbose: bool, **arguments: Any) -> None:
        call = invocation(context)
        call.command = str(context.info_name)
        call.is_verbose = verbose
        if verbose:
            say("log", str(call.log.path))
        if takes_context:
            arguments["context"] = context
        try:
            with noting_failures(call.command, arguments):
                function(**arguments)
        except (KeyboardInterrupt, typer.Abort):  # the latter at a question
            say("note", "stopped; to resume, give the same command again")
            raise typer.Exit(_INTERRUPTED) from None

    def added(name: str, annotation: object, default: object) -> inspect.Parameter:
        kind = inspect.Parameter.KEYWORD_ONLY
        return inspect.Parameter(name, kind, annotation=annotation, default=default)

    parameters = [*signature.parameters.values(), added("verbose", Verbose, default=False)]
    if not takes_context:
        parameters.append(added("context", typer.Context, inspect.Parameter.empty))
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return command


for _group, _commands in _GROUPS.items():
    for _function, _example in _commands.items():
        app.command(
            epilog=f"Example:\n\nwindows-pipeline {_example}",
            rich_help_panel=_group,
        )(_with_verbose(_function))


def main(start: StartSession | None = None) -> None:
    """Runs the command line; an expected error is a few lines, with exit status 2 or 4.

    An unexpected error is two lines with exit status 1. Traces of errors that are not the
    library's own are in the log.

    Args:
        start: Starts the Spark session, once a command's arguments are known to be right; the
            library's own function if None.
    """
    call = Invocation(start)
    try:
        app(obj=call)
    except Exception as error:  # noqa: BLE001  each kind of error has its own text and exit status
        raise SystemExit(_report(call, error)) from None


def _report(call: Invocation, error: Exception) -> int:
    """Prints an error, and adds its trace to the log; returns the exit status."""
    from windows_pipeline.faults.explain import fault_of

    fault = fault_of(error)
    say("error", str(fault))
    if not fault.is_foreign:
        return fault.status
    is_printed = call.is_verbose
    try:
        call.log.add_trace(error)
        say("log", f"{call.log.path} has the trace")
    except OSError as no_log:
        say("warning", f"no log is written: {no_log}")
        is_printed = is_printed or fault.is_unexpected
    if is_printed:
        trace = without_values("".join(traceback.format_exception(error)))
        ERRORS.print(trace, soft_wrap=True)
    return fault.status
