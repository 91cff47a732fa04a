"""`new`: looks at a sample of the user's records, and writes a pipeline for them."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from windows_pipeline.cli.session import begin, session
from windows_pipeline.cli.terminal.console import PlainConsole, UserStream

if TYPE_CHECKING:
    from collections.abc import Callable

    from windows_pipeline.starter.new_pipeline import NewPipeline

    _Choose = Callable[[str], object]

Kind = Literal["sliding", "tumbling", "hopping", "session"]


def new(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new pipeline's name.")],
    source: Annotated[
        Path,
        typer.Option(
            "--from",
            metavar="PATH",
            help="A file (CSV, JSON lines, Parquet), a folder of files, or of day folders.",
        ),
    ],
    key: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column that says whose record it is.")
    ] = None,
    event_time: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column that says when it happened.")
    ] = None,
    arrival: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="The column that says when it came, or lines, or event_time."
        ),
    ] = None,
    zone: Annotated[
        str | None,
        typer.Option(
            metavar="ZONE", help="The zone of times without an offset, such as Europe/Berlin."
        ),
    ] = None,
    windows: Annotated[Kind, typer.Option(help="The kind of window.")] = "sliding",
    size: Annotated[
        str | None, typer.Option(metavar="DURATION", help="A window's length, such as '1 hour'.")
    ] = None,
    grace: Annotated[
        str | None, typer.Option(metavar="DURATION", help="How late a record may be.")
    ] = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing; take the guesses.")] = False,
) -> None:
    """Looks at a sample of your records, guesses what they are, and writes pipelines/NAME.yaml.

    Asks what a sample cannot say, where it runs on a terminal. The sample is copied into the
    folder of one day, unless it lies in day folders already. No file is overwritten.
    """
    try:
        _new(
            *(context, name, source, key, event_time, arrival, zone, windows, size, grace),
            asks=not yes and sys.stdin.isatty(),
        )
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ValueError(f"{error.filename}: {error.strerror}; check its permissions") from None


def _new(
    context: typer.Context,
    name: str,
    source: Path,
    key: str | None,
    event_time: str | None,
    arrival: str | None,
    zone: str | None,
    windows: Kind,
    size: str | None,
    grace: str | None,
    *,
    asks: bool,
) -> None:
    from windows_pipeline.cli import new_report
    from windows_pipeline.settings import load_settings
    from windows_pipeline.starter.new_pipeline import NewPipeline
    from windows_pipeline.windows.durations import duration_ms, duration_text

    width = None if sys.stdout.isatty() else 120
    console = PlainConsole(file=UserStream("stdout"), width=width)
    size_ms = None if size is None else _positive("--size", duration_ms(size, "--size"))
    grace_ms = None if grace is None else _not_negative("--grace", duration_ms(grace, "--grace"))
    settings = load_settings(Path.cwd())
    with NewPipeline(name, source, settings) as made:
        if zone is not None:
            made.choose_zone(zone)
        new_report.print_sample(console, made)
        if asks and zone is None and made.local_times:
            _ask("Time zone of times without an offset", "UTC", made.choose_zone)
        made.choose_event_time(event_time)
        if asks and event_time is None:
            _ask("Event time", made.event_time.name, made.choose_event_time)
        made.choose_arrival(arrival)
        if asks and arrival is None:
            question = "Arrival (a column, lines or event_time)"
            _ask(question, made.arrival.name, made.choose_arrival)
        _choose_key(made, key, asks=asks)
        new_report.print_roles(console, made)
        new_report.print_lateness(console, made)
        made.choose_windows(windows, size_ms, grace_ms)
        if asks and size is None:
            guess = duration_text(made.proposal.size_ms)
            _ask(
                "Length of a window",
                guess,
                lambda text: made.choose_windows(
                    windows, _positive("length", duration_ms(text, "length")), grace_ms
                ),
            )
        status = begin(context, f"{name}: starting Spark, to read the sample as a run does")
        from windows_pipeline.starter.acceptance import judge

        accepted = made.accept(partial(judge, session(context, settings)))
        status.stop()
        new_report.print_accepted(console, *accepted)
        made.choose_windows(windows, made.proposal.size_ms, grace_ms)
        new_report.print_windows(console, made)
        new_report.print_created(console, name, made.create())


def _choose_key(made: NewPipeline, key: str | None, *, asks: bool) -> None:
    from windows_pipeline.starter.roles import CannotGuessError

    if not asks or key is not None:
        made.choose_key(key)
        return
    try:
        guess = made.choose_key().name
    except CannotGuessError:
        guess = None
    _ask("Key (whose record it is)", guess, made.choose_key)


def _ask(question: str, guess: str | None, choose: _Choose) -> None:
    """Asks until the answer is right; Enter takes the guess, which is chosen already."""
    is_chosen = guess is not None
    while True:
        answer = typer.prompt(question, default=guess).strip()
        if is_chosen and answer == guess:
            return
        try:
            choose(answer)
        except ValueError as error:
            is_chosen = False
            PlainConsole().print(str(error), soft_wrap=True)
        else:
            return


def _positive(option: str, ms: int) -> int:
    if ms <= 0:
        raise ValueError(
            f"{option}: must be above zero, but is not; write a duration such as '1 hour'"
        )
    return ms


def _not_negative(option: str, ms: int) -> int:
    if ms < 0:
        raise ValueError(f"{option}: must not be negative; write '0 seconds' or more")
    return ms
