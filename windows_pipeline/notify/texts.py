"""The content of messages: as JSON, and as lines for people.

Keys and names come from data: control characters are escaped, and each form escapes its marks.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from windows_pipeline.config import Pipeline
from windows_pipeline.notify.events import ENDED, OF_EPISODES, RETRACTED, Event
from windows_pipeline.notify.pipeline_events import FAILED, OVERDUE, AnyEvent, PipelineEvent
from windows_pipeline.notify.plan import Message
from windows_pipeline.text.counts import counted
from windows_pipeline.text.instants import time_text
from windows_pipeline.text.values import cut, key_text, one_line, short
from windows_pipeline.windows.durations import length_text

_MOST_EPISODES = 20
"""A message with more episodes shows the worst of them."""
_MOST_EVENTS = 500
"""The most events of a message as JSON."""
_EPISODE, _EARLY_WARNING = "episode", "early warning"
_FAILED_RUN, _OVERDUE = "failed run", "overdue table"
_KINDS = (_EPISODE, _EARLY_WARNING, _FAILED_RUN, _OVERDUE)
_WITHOUT_RULES = {_FAILED_RUN, _OVERDUE}
_OF_NO_RULE = 2
"""The rank of an event of no rule, such as a failed run: that of a rule without a level."""
_IN_LINES = ("owner", "runbook")
_FOR_PEOPLE = {"when", "level", "description", *_IN_LINES}


def body(pipeline: Pipeline, message: Message, ui_url: str | None) -> dict[str, Any]:
    """The message as JSON: its id, its text, and its events.

    Args:
        pipeline: The pipeline.
        message: The message.
        ui_url: The address of Dagster's UI, for links; None for no links.
    """
    return {
        "id": message.id,
        "pipeline": pipeline.name,
        "text": "\n".join(lines(pipeline, message, ui_url)),
        "count": len(message.episodes),
        "events": [
            {
                **event.as_json(),
                **_declared(pipeline, event),
                **_trace(pipeline, event),
                **_linked(pipeline, event, ui_url),
            }
            for event in message.events[:_MOST_EVENTS]
        ],
    }


def slack(pipeline: Pipeline, message: Message, ui_url: str | None) -> dict[str, Any]:
    """The message in Slack's form, in which nothing of the data is markup; see `body`."""
    text = "\n".join(lines(pipeline, message, ui_url))
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(character, entity)
    return {"text": text, "mrkdwn": False}


def title(pipeline: Pipeline, message: Message) -> str:
    """The message in a line."""
    episodes = message.episodes
    if len(episodes) == 1:
        return line(pipeline, episodes[0])
    by_kind: dict[str, Counter[str]] = {kind: Counter() for kind in _KINDS}
    for event in episodes:
        by_kind[_kind(event)][event.topic] += 1
    texts = []
    for kind, by_topic in by_kind.items():
        if by_topic:
            rules = ", ".join(f"{count} of {topic}" for topic, count in by_topic.items())
            number = counted(by_topic.total(), kind)
            texts.append(number if kind in _WITHOUT_RULES else f"{number}: {rules}")
    return f"{pipeline.name}: {'; '.join(texts)}"


def _kind(event: AnyEvent) -> str:
    """The noun for what the event is of."""
    if isinstance(event, PipelineEvent):
        return _FAILED_RUN if event.event == FAILED else _OVERDUE
    return _EPISODE if event.event in {*OF_EPISODES, RETRACTED} else _EARLY_WARNING


def lines(pipeline: Pipeline, message: Message, ui_url: str | None) -> list[str]:
    """The message for people; see `body`."""
    episodes = message.episodes
    if len(episodes) == 1:
        about = [line(pipeline, episodes[0]), *details(pipeline, episodes[0])]
        return [*about, *_links(pipeline, episodes, ui_url)]
    worst = sorted(episodes, key=lambda event: _rank(pipeline, event))[:_MOST_EPISODES]
    more = len(episodes) - len(worst)
    of_episodes = any(_kind(event) == _EPISODE for event in episodes)
    return [
        title(pipeline, message),
        *(line(pipeline, event) for event in worst),
        *([f"and {more} more"] if more else []),
        *([f"each episode: windows-pipeline episodes {pipeline.name}"] if of_episodes else []),
        *_links(pipeline, worst, ui_url),
    ]


def _links(pipeline: Pipeline, events: Sequence[AnyEvent], ui_url: str | None) -> list[str]:
    """The addresses of the pages of events, a line each."""
    links = (_linked(pipeline, event, ui_url).values() for event in events)
    return [f"in Dagster: {link}" for link in dict.fromkeys(one for of in links for one in of)]


def _linked(pipeline: Pipeline, event: AnyEvent, ui_url: str | None) -> dict[str, str]:
    """The address of the page of Dagster's UI that shows what an event is of, if there is one.

    The check of the rule has the episodes; early warnings and arrivals have their asset's page.
    """
    windows = None if isinstance(event, PipelineEvent) else pipeline.windows.get(event.windows)
    page = None
    if isinstance(event, PipelineEvent):
        page = event.what if event.event == OVERDUE else None
    elif windows is not None and _kind(event) == _EARLY_WARNING:
        page = f"{pipeline.name}/{event.windows}/early_warnings"
    elif windows is not None and event.rule in windows.alerts:
        check = windows.check_of(event.rule)
        page = f"{pipeline.name}/{event.windows}/alerts?view=checks&checkDetail={check}"
    return {} if ui_url is None or page is None else {"link": f"{ui_url}/assets/{page}"}


def _rank(pipeline: Pipeline, event: AnyEvent) -> tuple[int, float]:
    """Sorts the most urgent first, and of one level the worst: severities of rules differ."""
    windows = None if isinstance(event, PipelineEvent) else pipeline.windows.get(event.windows)
    urgency = _OF_NO_RULE if windows is None else windows.urgency(event.rule)
    return urgency, -(event.severity or 0)


def line(pipeline: Pipeline, event: AnyEvent) -> str:
    """An event in a line."""
    if isinstance(event, PipelineEvent):
        at = "at" if event.event == FAILED else "since"
        when = f"{at} {time_text(event.at)} UTC"
        return one_line(f"{pipeline.name}: {event.what} {event.event} {when}")
    severity = "" if event.severity is None else f", severity {short(event.severity)}"
    level = _declared(pipeline, event).get("level")
    urgency = "" if level is None else f", level {level}"
    number = "" if event.correction is None else f" (correction {event.correction})"
    when = f" since {_times(pipeline, event.since)}"
    if event.event == ENDED:
        when = f" at {_times(pipeline, event.until)}, after {length_text(event.length_ms)}"
    return one_line(
        f"{pipeline.name} {event.windows}: {event.rule} {event.event}{number} for "
        f"{_key(pipeline, event)}{when}{severity}{urgency}"
    )


def details(pipeline: Pipeline, event: AnyEvent) -> list[str]:
    """More about an event, a line each; with the command that leads to the records."""
    if isinstance(event, PipelineEvent):
        return list(map(one_line, event.text.splitlines()))
    values = [f"{name} {short(value)}" for name, value in event.aggregates.items()]
    window = _times(pipeline, event.window_start, event.window_end)
    result = ", ".join([window, counted(event.record_count, "record"), *values])
    ends, length = _times(pipeline, event.until), length_text(event.length_ms)
    so_far = f"last window so far ends {ends}, after {length}"
    if event.event == ENDED:
        so_far = f"it began at {_times(pipeline, event.since)}"
    return [
        *_about_rule(pipeline, event),
        one_line(f"worst window: {result}"),
        one_line(so_far),
        *(one_line(f"its records: {command}") for command in _trace(pipeline, event).values()),
    ]


def _times(pipeline: Pipeline, *instants: datetime) -> str:
    """Event times in UTC and, where their column declares a zone, as its clocks show them."""
    in_utc = f"{' to '.join(map(time_text, instants))} UTC"
    zone = pipeline.source.zones.get(pipeline.source.event_time)
    if zone is None:
        return in_utc
    # With their offset's name, as a local time may occur twice.
    at = [(time_text(one, ZoneInfo(zone)), one.astimezone(ZoneInfo(zone))) for one in instants]
    return f"{in_utc} ({' to '.join(f'{text} {local:%Z}' for text, local in at)}, {zone})"


def _declared(pipeline: Pipeline, event: AnyEvent) -> dict[str, str]:
    """The fields for people that the file declares for an event's rule."""
    if isinstance(event, PipelineEvent) or event.windows not in pipeline.windows:
        return {}
    rule = pipeline.windows[event.windows].alerts.get(event.rule)
    return {} if rule is None else rule.model_dump(include=_FOR_PEOPLE, exclude_none=True)


def _about_rule(pipeline: Pipeline, event: Event) -> list[str]:
    """The rule's description, condition, owner and runbook; its level is in the first line."""
    declared = _declared(pipeline, event)
    texts = declared.get("description", "").splitlines()
    texts += [f"condition: {declared['when']}"] if "when" in declared else []
    texts += [f"{name}: {declared[name]}" for name in _IN_LINES if name in declared]
    return list(map(one_line, texts))


def _trace(pipeline: Pipeline, event: AnyEvent) -> dict[str, str]:
    """The command that shows the records of an episode's worst window, if its bounds name it."""
    if isinstance(event, PipelineEvent) or event.event not in OF_EPISODES:
        return {}
    windows = pipeline.windows.get(event.windows)
    if windows is None or windows.row_key:
        return {}
    key = key_text(event.key)
    window, option = [key, time_text(event.window_end)], ["--windows", event.windows]
    # Without the two hyphens a key that begins with one would be an option.
    last = [*option, "--", pipeline.name, *window]
    arguments = last if key.startswith("-") else [pipeline.name, *window, *option]
    return {"trace": shlex.join(["windows-pipeline", "trace", *arguments])}


def _key(pipeline: Pipeline, event: Event) -> str:
    """The key as commands take it; a null key is that of all records or, with a key, a null."""
    windows = pipeline.windows.get(event.windows)
    if windows is not None and not windows.keyed(pipeline.source).key_columns:
        return "all records"
    return cut("null" if event.key is None else key_text(event.key))
