"""The commands `notify` and `snooze`, which send events of episodes without Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from windows_pipeline.cli.arguments import PipelineName, declared, parsed_instant
from windows_pipeline.cli.terminal.console import CONSOLE
from windows_pipeline.cli.terminal.printed import say
from windows_pipeline.cli.terminal.progress import Status
from windows_pipeline.text.counts import counted
from windows_pipeline.text.instants import time_text

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


def snooze(
    pipeline: PipelineName,
    rule: Annotated[str, typer.Argument(metavar="RULE", help="An alert rule.")],
    until: Annotated[
        str,
        typer.Option(metavar="TIME", help="Until when, in UTC; a past one ends the snooze."),
    ],
) -> None:
    """Stops notifying of what is published of a rule from now until a time.

    None of it is ever sent, but for the end of an episode that a target heard of.
    """
    instant = parsed_instant("--until", until)
    settings, found = declared(pipeline)
    from windows_pipeline.notify import snooze as snoozed_until

    now = datetime.now(UTC)
    was_snoozed = snoozed_until(found, settings, rule, instant, now)
    if instant > now:
        CONSOLE.print(
            f"{pipeline}: of what is published of {rule} until {time_text(instant)} UTC, "
            "nothing is sent but the end of episodes that a target heard of"
        )
    elif was_snoozed:
        CONSOLE.print(
            f"{pipeline}: {rule} is no longer snoozed: what is published from now on is sent"
        )
    else:
        CONSOLE.print(f"{pipeline}: {rule} is not snoozed; nothing changed")


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
