"""Sends events of episodes, without Spark: `notify`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from windows_pipeline.cli.arguments import PipelineName, declared
from windows_pipeline.cli.terminal.console import CONSOLE
from windows_pipeline.cli.terminal.printed import say
from windows_pipeline.cli.terminal.progress import Status
from windows_pipeline.text.counts import counted

if TYPE_CHECKING:  # read when the command runs, so that `--help` answers at once
    from windows_pipeline.config import Pipeline
    from windows_pipeline.notify import Sent


def notify(
    pipeline: PipelineName,
    *,
    every: Annotated[
        bool, typer.Option("--all", help="Also events that are older than a target's max_age.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Also what was set aside, as a target refused it.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be sent.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Sends the pipeline's targets what happened to episodes of alerts and was not sent so far.

    Exit status 1 where a message was not taken; the same command sends it again. Or where a message
    was set aside, as its target refuses its content and takes others; `--again` sends it again.
    """
    settings, found = declared(pipeline)
    wrong: ValueError | None = None
    with Status(CONSOLE, f"{pipeline}: notifying"):
        from windows_pipeline.notify import WrongTargetsError, deliver

        try:
            sent = deliver(found, settings, every=every, again=again, dry_run=dry_run)
        except WrongTargetsError as error:
            sent, wrong = error.sent, error
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in sent], indent=1))
    else:
        for one in sent:
            _print(one, found, settings.warehouse, "would be sent" if dry_run else "sent")
    for one in sent:
        if one.refused:
            say(
                "warning",
                f"{pipeline} {one.target}: {counted(len(one.refused), 'message')} set aside, as "
                "the target refuses the content and takes other messages; to send again: "
                f"windows-pipeline notify {pipeline} --again",
            )
        if one.failed:
            say(
                "warning",
                f"{pipeline} {one.target}: {counted(one.waiting, 'event')} waiting, as a "
                f"message was not taken: {one.reason}; to send again: "
                f"windows-pipeline notify {pipeline}",
            )
    if wrong is not None:
        raise wrong
    if any(one.failed or one.refused for one in sent):
        raise typer.Exit(1)


def _print(one: Sent, pipeline: Pipeline, warehouse: str, what: str) -> None:
    for message in one.messages:
        CONSOLE.print(f"{one.target} {what}: {message}")
    for message in one.refused:
        CONSOLE.print(f"{one.target} set aside: {message}")
    number = f"{counted(len(one.messages), 'message')} of {counted(one.events, 'event')}"
    if not one.messages:
        number = "nothing was taken" if one.failed else "nothing to send"
    why = _not_sent(one, pipeline, warehouse)
    CONSOLE.print(f"{pipeline.name} {one.target}: {'; '.join([number, *why])}")


def _not_sent(one: Sent, pipeline: Pipeline, warehouse: str) -> Iterator[str]:
    """Why events were not sent, by the reason; why there are none if nothing is to be sent."""
    from windows_pipeline.notify import unfilled
    from windows_pipeline.windows.durations import duration_text

    if one.old:
        age = duration_text(pipeline.notify[one.target].max_age)
        why = "so that old data notifies nobody"
        yield f"{_are(one.old)} older than max_age ({age}), {why}; --all sends them"
    if one.unwanted:
        yield f"{_are(one.unwanted)} left out by rules, min_severity or events of the target"
    if one.set_aside:
        yield f"{_are(one.set_aside)} set aside, as the target refused them; --again sends them"
    if one.waiting and not one.failed:
        yield f"{_are(one.waiting)} waiting: {one.reason}"
    if not (one.messages or one.old or one.unwanted or one.set_aside or one.waiting):
        lacking = unfilled(pipeline, warehouse, one.target)
        yield from lacking or ["no event is left that was not sent or skipped"]


def _are(number: int) -> str:
    return f"{counted(number, 'event')} {'is' if number == 1 else 'are'}"
