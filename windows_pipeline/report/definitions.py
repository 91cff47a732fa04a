"""The part of the page about a window definition: what it is, its episodes, its windows."""

from __future__ import annotations

from collections.abc import Sequence

from windows_pipeline.config import Rule, Windows
from windows_pipeline.plots.bars import records_a_window
from windows_pipeline.plots.episodes import Lane, timeline
from windows_pipeline.plots.windows import windows_over_time
from windows_pipeline.query.episodes import Episode, Episodes
from windows_pipeline.report.gather import MOST_EPISODES, WindowsReport
from windows_pipeline.report.measures import values_compared
from windows_pipeline.report.parts import figure, grid, left_out, section
from windows_pipeline.report.records import Counted
from windows_pipeline.report.words import definition_rows, trace_command
from windows_pipeline.text.instants import time_text
from windows_pipeline.text.markup import Markup, joined, tag
from windows_pipeline.text.values import short
from windows_pipeline.windows.durations import length_text

_MOST_LANES = 20
_REASONS = {
    "late": "every window of its event time was closed when it arrived",
    "partly_late": "some window was open when it arrived, but none counts it",
    "outside_windows": "no window covers its event time",
}


def definition_section(pipeline: str, found: WindowsReport) -> Markup:
    """All about a window definition.

    Args:
        pipeline: The pipeline's name.
        found: What the definition found.
    """
    rows = (tag("div", tag("dt", name), tag("dd", value)) for name, value in _declared(found))
    parts: list[object] = [tag("dl", *rows)]
    if found.sizes is None:
        parts.append(tag("p", "Nothing is computed so far."))
    elif found.episodes is not None:
        parts += _episodes(pipeline, found, found.episodes)
    if found.sizes is not None and any(found.sizes.counts):
        parts.append(tag("h3", "Records a window"))
        parts.append(figure(records_a_window(found.sizes), "Closed windows by number of records"))
        parts += left_out("Windows", found.sizes_from)
    if found.late is not None:
        parts += [tag("h3", "Late records"), *_late(found.late)]
    return section(f"windows-{found.name}", found.name, *parts)


def _declared(found: WindowsReport) -> list[tuple[str, str]]:
    return [row for row in definition_rows(found.windows) if not row[0].startswith("alert ")]


def _episodes(pipeline: str, found: WindowsReport, episodes: Episodes) -> list[Markup]:
    title = tag("h3", f"Episodes: {len(episodes.found):,}")
    note = left_out("Episodes", episodes.read_from)
    rules = _rules(found.windows)
    if not episodes.found:
        return [title, *rules, tag("p", "No window broke a rule."), *note]
    lanes, all_lanes = _lanes(episodes)
    said = f"{episodes.alerts:,} alerts, the keys with the worst episodes first"
    if all_lanes > len(lanes):
        said += f"; {len(lanes)} of {all_lanes:,} keys and rules are drawn"
    parts = [title, *rules, figure(timeline(lanes), said), *note, *_around(found)]
    parts += [tag("h3", "The worst episodes"), _table(pipeline, found, episodes)]
    if len(episodes.found) > MOST_EPISODES:
        rest = len(episodes.found) - MOST_EPISODES
        text = f"{rest:,} milder episodes are left out; to list them: "
        option = f"--windows {found.name} --limit {len(episodes.found)}"
        command = tag("code", f"windows-pipeline episodes {pipeline} {option}")
        parts.append(tag("p", text, command, class_="note"))
    return parts


def _around(found: WindowsReport) -> list[Markup]:
    """The worst episodes, each with the windows before and after it."""
    parts = [tag("h3", "Windows around the worst episodes")] if found.around else []
    for episode, strip in found.around:
        caption = joined(
            [
                tag("b", episode.rule),
                f" · {episode.key_text or 'all records'} · ",
                f"{time_text(episode.first)} to {time_text(episode.last)}",
            ]
        )
        parts.append(figure(windows_over_time([strip]), caption))
    return parts


def _rules(windows: Windows) -> list[Markup]:
    """The rules in full: condition, severity and owner."""
    items = []
    for name, rule in windows.alerts.items():
        about = {"level": rule.level, "owner": rule.owner}
        named = "".join(f" · {field} {value}" for field, value in about.items() if value)
        parts: list[object] = [tag("b", name), " ", tag("code", rule.when), named]
        if rule.description:
            parts.append(tag("div", rule.description, class_="soft"))
        if rule.runbook:
            link = tag("a", rule.runbook, href=rule.runbook, rel="noreferrer")
            parts.append(tag("div", "runbook: ", link, class_="soft"))
        items.append(tag("li", *parts))
    return [tag("ul", *items, class_="rules")] if items else []


def _table(pipeline: str, found: WindowsReport, episodes: Episodes) -> Markup:
    columns = ("rule", "key", "from", "to", "length", "alerts", "worst window")
    shown = zip(episodes.found[:MOST_EPISODES], found.worst_alerts, strict=True)
    rows = [_row(pipeline, found, episode, alert) for episode, alert in shown]
    return grid(columns, rows, numbers=(5,))


def _row(
    pipeline: str, found: WindowsReport, episode: Episode, worst_alert: str
) -> Sequence[object]:
    rule = found.windows.alerts.get(episode.rule)
    text = "the pipeline's file has no such rule" if rule is None else rule.when
    end = time_text(episode.last)
    closed_ms = found.state.close_time_ms
    mark = tag("mark", episode.state(closed_ms))
    to = joined([end, " ", mark]) if episode.is_open(closed_ms) else end
    command = trace_command(pipeline, worst_alert)
    return (
        joined([tag("b", episode.rule), tag("div", text, class_="soft")]),
        episode.key_text or "all records",
        time_text(episode.first),
        to,
        length_text(episode.length_ms),
        f"{episode.alerts:,}",
        joined([_worst(found.windows, rule, episode), tag("code", command, class_="command")]),
    )


def _worst(windows: Windows, rule: Rule | None, episode: Episode) -> Markup:
    """The values of the worst window that its rule compares."""
    names = {aggregate.name for aggregate in windows.aggregate_list} & episode.worst.keys()
    compared = ["record_count"] if rule is None else values_compared(rule, names)
    values = ", ".join(f"{name} = {episode.worst_value(name)}" for name in compared)
    severity = "" if episode.severity is None else f" · severity {short(episode.severity)}"
    ends = f" · ends {time_text(episode.worst['window_end'])}"
    return tag("div", values, tag("span", f"{severity}{ends}", class_="soft"))


def _lanes(episodes: Episodes) -> tuple[list[Lane], int]:
    """The lanes of the worst keys and rules, and how many there are."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for episode in episodes.found:
        title = f"{episode.key_text or 'all records'} · {episode.rule}"
        first, last = (round(at.timestamp() * 1_000) for at in (episode.first, episode.last))
        spans.setdefault(title, []).append((first, last))
    lanes = [Lane(title, found) for title, found in spans.items()]
    return lanes[:_MOST_LANES], len(lanes)


def _late(late: Counted) -> list[Markup]:
    if not late.rows:
        return [tag("p", "Every record counts in a window, or still can.")]
    rows = [
        (reason, f"{number:,}", f"{number / late.rows:.1%}", _REASONS.get(reason, ""))
        for reason, number in late.counts
    ]
    table = grid(("reason", "records", "share", "meaning"), rows, numbers=(1, 2))
    return [table, *left_out("Late records", late.read_from)]
