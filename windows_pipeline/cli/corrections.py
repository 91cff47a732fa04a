"""`correct`: changes published results, and records each change."""

from __future__ import annotations

from typing import Annotated

import typer

from windows_pipeline.cli.arguments import (
    PipelineName,
    WindowsName,
    chosen_windows,
    declared,
    parsed_day,
    session,
)
from windows_pipeline.cli.printed import CONSOLE, print_checks
from windows_pipeline.jobs.correction.run import correct as run_correction


def correct(
    context: typer.Context,
    pipeline: PipelineName,
    first: Annotated[
        str, typer.Option("--from", metavar="DAY", help="The first arrival day to compute again.")
    ],
    cause: Annotated[str, typer.Option(help="Why; stands in each row of corrections.")],
    last: Annotated[
        str | None,
        typer.Option("--to", metavar="DAY", help="The last one; the last published if left out."),
    ] = None,
    windows: WindowsName = None,
) -> None:
    """Corrects what was published of days whose raw records, or whose grace, were changed."""
    from_day = parsed_day("--from", first)
    to_day = None if last is None else parsed_day("--to", last)
    settings, found = declared(pipeline)
    name = chosen_windows(found, windows)
    spark = session(context, settings)
    done = run_correction(spark, found, name, settings, from_day, to_day, cause, CONSOLE.print)
    for table, result in done.results:
        print_checks((table, check) for check in result.checks if not check.passed)
    if not done.published:
        CONSOLE.print("NOT published; fix what the checks found, then run the same command again")
        raise typer.Exit(1)
    for day, corrected in done.units.items():
        CONSOLE.print(f"{day}: {corrected}")
    if done.number is None:
        CONSOLE.print(f"{pipeline} {name}: everything stands as it was published")
    else:
        CONSOLE.print(f"{pipeline} {name}: correction {done.number} is published")
