"""Sends events of episodes, without Spark: `notify`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from windows_pipeline.cli.arguments import PipelineName, declared
from windows_pipeline.cli.terminal.console import CONSOLE
from windows_pipeline.cli.terminal.printed import say
from windows_pipeline.cli.terminal.progress import Status
from windows_pipeline.text.counts import counted

if TYPE_CHECKING:  # read when the command runs, so that `--help` answers at once
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
        _print(pipeline, sent, "would be sent" if dry_run else "sent")
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


def _print(pipeline: str, sent: Sequence[Sent], what: str) -> None:
    for one in sent:
        for message in one.messages:
            CONSOLE.print(f"{one.target} {what}: {message}")
        for message in one.refused:
            CONSOLE.print(f"{one.target} set aside: {message}")
        old = f"; {one.old:,} are too old (--all)" if one.old else ""
        aside = f"; {one.set_aside:,} are set aside (--again)" if one.set_aside else ""
        wait = f"; {one.waiting:,} wait: {one.reason}" if one.waiting and not one.failed else ""
        CONSOLE.print(
            f"{pipeline} {one.target}: {counted(len(one.messages), 'message')} of "
            f"{counted(one.events, 'event')}"
            f"{old}{aside}{wait}"
        )
