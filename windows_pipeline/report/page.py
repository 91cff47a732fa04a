"""One page of HTML that shows a report: it works offline, runs no script, and loads nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from math import floor

from markdown_it import MarkdownIt

from windows_pipeline.config import Rule, Windows
from windows_pipeline.plots.bars import lateness
from windows_pipeline.plots.episodes import Lane, timeline
from windows_pipeline.plots.svg import STYLE as PLOT_STYLE
from windows_pipeline.plots.windows import windows_over_time
from windows_pipeline.query.episodes import Episode, Episodes
from windows_pipeline.query.tables.newest_rows import NewestRows
from windows_pipeline.report.gather import MOST_EPISODES, PipelineReport, WindowsReport
from windows_pipeline.report.measures import values_compared
from windows_pipeline.report.records import by_grace, caught_text
from windows_pipeline.report.style import STYLE
from windows_pipeline.report.words import definition_rows, trace_command
from windows_pipeline.text.instants import epoch_ms, time_text
from windows_pipeline.text.markup import Markup, joined, tag
from windows_pipeline.text.values import cut, key_text, printable, short, value_text
from windows_pipeline.windows.durations import duration_text, length_text

_MOST_LANES = 20
_COLUMNS = ("rule", "key", "from", "to", "length", "alerts", "worst window")


def report_page(report: PipelineReport, made: datetime) -> str:
    """The page.

    Args:
        report: What it shows.
        made: When it was made, in UTC.
    """
    style = f"{PLOT_STYLE}{STYLE}"
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    name = report.pipeline.name
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{name}: report"),
        # This module makes the style, and the text of a style element must not be escaped.
        Markup(f"<style>{style}</style>"),
    )
    sections = (_definition(name, each) for each in report.definitions)
    body = tag("body", tag("main", _header(report, made), *sections, _lateness(report)))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def rendered(text: str) -> Markup:
    """A description in Markdown as HTML: HTML in it is text, and it loads no picture."""
    markdown = MarkdownIt("commonmark", {"html": False, "xhtmlOut": True}).disable("image")
    return Markup(markdown.render(printable(text)))


def _header(report: PipelineReport, made: datetime) -> Markup:
    pipeline, days = report.pipeline, report.days
    said = f"Arrival days {days[0]} to {days[-1]} · made {time_text(made)[:16]} UTC"
    are_open = [
        episode.is_open(each.close_time_ms)
        for each in report.definitions
        if each.episodes is not None
        for episode in each.episodes.found
    ]
    cards = [
        (f"{report.accepted:,}", "records accepted"),
        (f"{report.rejected:,}", "records rejected"),
        (f"{len(are_open):,}", "episodes of alerts"),
        (f"{sum(are_open):,}", "of them still open"),
        (str(report.through or "nothing"), "ingested through"),
    ]
    links = [(f"#windows-{each.name}", each.name) for each in report.definitions]
    links.append(("#lateness", "Lateness"))
    return tag(
        "header",
        tag("h1", pipeline.name),
        *([rendered(pipeline.description)] if pipeline.description else []),
        tag("p", said, class_="soft"),
        tag("ul", *(tag("li", tag("b", of), " ", label) for of, label in cards), class_="cards"),
        tag("nav", *(tag("a", text, href=link) for link, text in links)),
    )


def _definition(pipeline: str, found: WindowsReport) -> Markup:
    """All about a window definition: what it is, its rules, its episodes, windows around them."""
    declared = (row for row in definition_rows(found.windows) if not row[0].startswith("alert "))
    rows = (tag("div", tag("dt", name), tag("dd", value)) for name, value in declared)
    parts: list[object] = [tag("dl", *rows)]
    if found.episodes is None:
        parts.append(tag("p", "There are no alerts so far."))
    else:
        parts += _episodes(pipeline, found, found.episodes)
    for table, newest in found.warned.items():
        parts += _warned(pipeline, found.name, table, newest)
    return tag("section", tag("h2", found.name), *parts, id=f"windows-{found.name}")


def _episodes(pipeline: str, found: WindowsReport, episodes: Episodes) -> list[Markup]:
    parts = [tag("h3", f"Episodes: {len(episodes.found):,}"), *_rules(found.windows)]
    note = _left_out("Episodes", episodes.read_from)
    if not episodes.found:
        return [*parts, tag("p", "No window broke a rule."), *note]
    lanes = _lanes(episodes)
    said = f"{episodes.alerts:,} alerts, the keys with the worst episodes first"
    if len(lanes) > _MOST_LANES:
        said += f"; {_MOST_LANES} of {len(lanes):,} keys and rules are drawn"
    parts += [_figure(timeline(lanes[:_MOST_LANES]), said), *note]
    if found.around:
        parts.append(tag("h3", "Windows around the worst episodes"))
    for episode, strip in found.around:
        caption = f" · {_key(episode)} · {time_text(episode.first)} to {time_text(episode.last)}"
        parts.append(_figure(windows_over_time([strip]), tag("b", episode.rule), caption))
    shown = zip(episodes.found[:MOST_EPISODES], found.worst_alerts, strict=True)
    table = _table(_COLUMNS, (_row(pipeline, found, episode, alert) for episode, alert in shown))
    parts += [tag("h3", "The worst episodes"), table]
    rest = len(episodes.found) - MOST_EPISODES
    if rest > 0:
        text = f"{rest:,} milder episodes are left out; to list them: "
        option = f"--windows {found.name} --limit {len(episodes.found)}"
        command = tag("code", f"windows-pipeline episodes {pipeline} {option}")
        parts.append(tag("p", text, command, class_="note"))
    return parts


def _warned(pipeline: str, windows: str, table: str, found: NewestRows) -> list[Markup]:
    """The newest rows of a table, and the command that lists more of them."""
    rows = found.rows.to_pylist()
    # An empty list, as of failed aggregates, is no value either.
    columns = [name for name in found.rows.column_names if any(row[name] for row in rows)]
    cells = ([_cell(name, row[name]) for name in columns] for row in rows)
    parts = [tag("h3", table.replace("_", " ").capitalize()), _table(columns, cells)]
    if found.are_more:
        command = tag("code", f"windows-pipeline rows {pipeline} {table} --windows {windows}")
        parts.append(tag("p", "Older ones are left out; to list them: ", command, class_="note"))
    return parts


def _cell(name: str, value: object) -> str:
    if value is None:
        return ""
    return key_text(value) if name == "key" else cut(value_text(value))


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
            link = tag("a", rule.runbook, href=rule.runbook)
            parts.append(tag("div", "runbook: ", link, class_="soft"))
        items.append(tag("li", *parts))
    return [tag("ul", *items, class_="rules")] if items else []


def _lanes(episodes: Episodes) -> list[Lane]:
    """A lane for each pair of a key and a rule, those with the worst episodes first."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for episode in episodes.found:
        span = epoch_ms(episode.first), epoch_ms(episode.last)
        spans.setdefault(f"{_key(episode)} · {episode.rule}", []).append(span)
    return [Lane(title, found) for title, found in spans.items()]


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    """A table, which scrolls where it is wider than the page."""
    kinds = ["number" if column == "alerts" else None for column in columns]
    head = (
        tag("th", name, class_=kind, scope="col") for name, kind in zip(columns, kinds, strict=True)
    )
    body = (
        tag("tr", *(tag("td", cell, class_=kind) for cell, kind in zip(row, kinds, strict=True)))
        for row in rows
    )
    table = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body))
    return tag("div", table, class_="wide", tabindex=0)


def _row(
    pipeline: str, found: WindowsReport, episode: Episode, worst_alert: str
) -> Sequence[object]:
    rule = found.windows.alerts.get(episode.rule)
    text = "the pipeline's file has no such rule" if rule is None else rule.when
    end = time_text(episode.last)
    closed_ms = found.close_time_ms
    mark = tag("mark", episode.state(closed_ms))
    command = tag("code", trace_command(pipeline, worst_alert), class_="command")
    return (
        joined([tag("b", episode.rule), tag("div", text, class_="soft")]),
        _key(episode),
        time_text(episode.first),
        joined([end, " ", mark]) if episode.is_open(closed_ms) else end,
        length_text(episode.length_ms),
        f"{episode.alerts:,}",
        joined([_worst(found.windows, rule, episode), command]),
    )


def _key(episode: Episode) -> str:
    return episode.key_text or "all records"


def _worst(windows: Windows, rule: Rule | None, episode: Episode) -> Markup:
    """The values of the worst window that its rule compares."""
    names = {aggregate.name for aggregate in windows.aggregate_list} & episode.worst.keys()
    compared = ["record_count"] if rule is None else values_compared(rule, names)
    values = ", ".join(f"{name} = {episode.worst_value(name)}" for name in compared)
    severity = "" if episode.severity is None else f" · severity {short(episode.severity)}"
    ends = f" · ends {time_text(episode.worst['window_end'])}"
    return tag("div", values, tag("span", f"{severity}{ends}", class_="soft"))


def _lateness(report: PipelineReport) -> Markup:
    found, graces = report.lateness, by_grace(report.pipeline)
    said = (
        f"With the grace of {names}, {duration_text(grace)}, {_share_text(found.within[grace])} of "
        "the records came while all their windows were open."
        for names, grace in graces
    )
    return tag(
        "section",
        tag("h2", "How late records came"),
        tag("p", caught_text(found.most_ms)),
        *(tag("p", text) for text in said),
        _figure(lateness(found.bars, graces), "How far records were behind stream time"),
        *_left_out("Lateness", found.read_from),
        id="lateness",
    )


def _share_text(share: float) -> str:
    """A share in percent, rounded down: 100 % means all."""
    return f"{floor(share * 10_000) / 100:g} %"


def _figure(plot: Markup, *caption: object) -> Markup:
    """A drawing with its caption."""
    wide = tag("div", plot, class_="wide", tabindex=0)
    return tag("figure", tag("figcaption", *caption), wide)


def _left_out(what: str, read_from: date | None) -> list[Markup]:
    """The note that only the newest days were read; none if all were."""
    if read_from is None:
        return []
    text = f"{what}: only arrival days from {read_from} on were read; older ones are left out."
    return [tag("p", text, class_="note")]
