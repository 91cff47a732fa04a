"""`new`: looks at a sample of the user's records, and writes a pipeline for them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from windows_pipeline.cli.session import begin, session
from windows_pipeline.cli.terminal.console import PlainConsole, UserStream

if TYPE_CHECKING:
    from collections.abc import Callable

    from windows_pipeline.starter.new_pipeline import NewPipeline

_WIDTH = 120
"""The width of tables where standard output is no terminal."""


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
    from windows_pipeline.cli import new_report
    from windows_pipeline.settings import load_settings
    from windows_pipeline.starter.new_pipeline import NewPipeline
    from windows_pipeline.windows.durations import duration_text

    asks = not yes and sys.stdin.isatty()
    console = PlainConsole(file=UserStream("stdout"), width=None if sys.stdout.isatty() else _WIDTH)
    size_ms = None if size is None else _duration_ms("--size", size, 1)
    grace_ms = None if grace is None else _duration_ms("--grace", grace, 0)
    settings = load_settings(Path.cwd())
    with _named_files(), NewPipeline(name, source, settings) as made:
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
        made.choose_windows(size_ms, grace_ms)
        if asks and size is None:
            _ask(
                "Length of a window",
                duration_text(made.proposal.size_ms),
                lambda text: made.choose_windows(_duration_ms("length", text, 1), grace_ms),
            )
        status = begin(context, f"{name}: starting Spark, to read the sample as a run does")
        from windows_pipeline.starter.acceptance import judge

        accepted = made.accept(partial(judge, session(context, settings)))
        status.stop()
        new_report.print_accepted(console, *accepted)
        made.choose_windows(made.proposal.size_ms, grace_ms)
        new_report.print_windows(console, made)
        made.create()
        new_report.print_created(console, name, made)


@contextmanager
def _named_files() -> Iterator[None]:
    """Raises an error of a file as one line that names the file.

    Raises:
        ValueError: A file cannot be read or written.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ValueError(f"{error.filename}: {error.strerror}; check its permissions") from None


def _choose_key(made: NewPipeline, key: str | None, *, asks: bool) -> None:
    from windows_pipeline.starter.roles import CannotGuessError

    try:
        made.choose_key(key)
    except CannotGuessError:
        if not asks:
            raise
        _ask("Key (whose record it is)", None, made.choose_key)
    else:
        if asks and key is None:
            _ask("Key (whose record it is)", made.key.name, made.choose_key)


def _ask(question: str, guess: str | None, choose: Callable[[str], None]) -> None:
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


def _duration_ms(option: str, text: str, least: int) -> int:
    from windows_pipeline.windows.durations import duration_ms, duration_text

    ms = duration_ms(text, option)
    if ms < least:
        raise ValueError(
            f"{option}: must be at least {duration_text(least)}, but is {text!r}; write a duration "
            "such as '1 hour'"
        )
    return ms
