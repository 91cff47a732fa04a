"""One page of HTML that shows a report: it works offline, runs no script, and loads nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from datetime import date, datetime
from math import floor

from windows_pipeline.plots.bars import by_day, lateness
from windows_pipeline.plots.svg import STYLE as PLOT_STYLE
from windows_pipeline.query.tables.arrow_values import python_rows
from windows_pipeline.report.definitions import definition_section
from windows_pipeline.report.gather import PipelineReport
from windows_pipeline.report.markdown import rendered
from windows_pipeline.report.parts import figure, grid, left_out, section, size_text
from windows_pipeline.report.records import Counted, caught_text
from windows_pipeline.report.style import STYLE
from windows_pipeline.text.instants import time_text
from windows_pipeline.text.markup import Markup, joined, tag
from windows_pipeline.text.values import short
from windows_pipeline.windows.durations import duration_text

_MOST_REASONS = 20


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
        tag("title", f"{name}: report"),
        # This module makes the style, and the text of a style element must not be escaped.
        Markup(f"<style>{style}</style>"),
    )
    body = tag("body", tag("main", _head(report, made), *_sections(report)))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _head(report: PipelineReport, made: datetime) -> Markup:
    pipeline, days = report.pipeline, report.days
    said = f"Arrival days {days[0]} to {days[-1]} · made {time_text(made)[:16]} UTC"
    links = [("#records", "Records"), ("#tables", "Tables")]
    links[:0] = [(f"#windows-{each.name}", each.name) for each in report.definitions]
    return tag(
        "header",
        tag("h1", pipeline.name),
        *([rendered(pipeline.description)] if pipeline.description else []),
        tag("p", said, class_="soft"),
        _cards(report),
        _unfinished(report),
        tag("nav", *(tag("a", text, href=link) for link, text in links)),
    )


def _cards(report: PipelineReport) -> Markup:
    are_open = [
        episode.is_open(each.state.close_time_ms)
        for each in report.definitions
        if each.episodes is not None
        for episode in each.episodes.found
    ]
    late = sum(each.late.rows for each in report.definitions if each.late is not None)
    cards = [
        (f"{sum(accepted for accepted, _ in report.arrived):,}", "records accepted"),
        (f"{sum(rejected for _, rejected in report.arrived):,}", "records rejected"),
        (f"{late:,}", "records late, of all windows"),
        (f"{len(are_open):,}", "episodes of alerts"),
        (f"{sum(are_open):,}", "of them still open"),
        (str(report.state.through or "nothing"), "ingested through"),
    ]
    return tag(
        "ul", *(tag("li", tag("b", number), " ", label) for number, label in cards), class_="cards"
    )


def _unfinished(report: PipelineReport) -> Markup:
    """What waits, with the commands that resume it."""
    state, name = report.state, report.pipeline.name
    waits = [(each.what, each.command) for each in state.unfinished]
    for windows in state.windows:
        if windows.lacking:
            days = f"{len(windows.lacking):,} ingested days are not computed"
            waits.append((f"{windows.name}: {days}", f"windows-pipeline run {name}"))
    if state.blocked:
        text = f"{len(state.blocked):,} days are blocked by the missing day {state.missing}"
        waits.append((text, f"windows-pipeline run {name}"))
    if not waits:
        return joined([])
    items = (tag("li", what, "; to resume: ", tag("code", command)) for what, command in waits)
    return tag("ul", *items, class_="waits")


def _sections(report: PipelineReport) -> list[Markup]:
    return [
        *(definition_section(report.pipeline.name, each) for each in report.definitions),
        section("records", "Records", *_records(report)),
        section("tables", "Tables", _tables(report)),
    ]


def _records(report: PipelineReport) -> list[Markup]:
    found = report.lateness
    of_grace: dict[int, list[str]] = {}
    for name, windows in report.pipeline.windows.items():
        of_grace.setdefault(windows.grace, []).append(name)
    graces = [(", ".join(names), grace) for grace, names in sorted(of_grace.items())]
    said = [
        f"With the grace of {', '.join(names)}, {duration_text(grace)}, "
        f"{_share_text(found.within[grace])} of the records came while all their windows were open."
        for grace, names in sorted(of_grace.items())
    ]
    parts = [
        figure(
            by_day(list(map(str, report.days)), [each for each, _ in report.arrived],
                   "accepted records"),
            "Accepted records by arrival day",
        ),
        tag("h3", "How late records came"),
        tag("p", caught_text(found.most_ms)),
        *(tag("p", text) for text in said),
        figure(lateness(found.bars, graces), "How far records were behind stream time"),
        *left_out("Lateness", found.read_from),
        tag("h3", "Rejected records"),
    ]  # fmt: skip
    parts += _rejected(report)
    note = "Durations of runs are not in the tables; Dagster's page of a run has them."
    return [*parts, tag("p", note, class_="soft")]


def _rejected(report: PipelineReport) -> list[Markup]:
    rejected = report.rejected
    if rejected is None or not rejected.rows:
        return [tag("p", "No record was rejected.")]
    parts = [_counted(rejected, "reason"), *left_out("Rejected records", rejected.read_from)]
    if report.rejected_sample is not None:
        rows = [
            [tag("code", short(row["original"])), row["reason"], row["file"], row["arrival_unit"]]
            for row in python_rows(report.rejected_sample)
        ]
        parts += [tag("h4", "The newest"), grid(("record", "reason", "file", "arrival day"), rows)]
    return parts


def _counted(found: Counted, name: str) -> Markup:
    """A table of how many rows there are of each kind, at most twenty kinds."""
    rows: list[Sequence[object]] = [
        (short(kind), f"{number:,}", f"{number / found.rows:.1%}")
        for kind, number in found.counts[:_MOST_REASONS]
    ]
    rest = sum(number for _, number in found.counts[_MOST_REASONS:])
    if rest:
        rows.append(("all others", f"{rest:,}", f"{rest / found.rows:.1%}"))
    return grid((name, "records", "share"), rows, numbers=(1, 2))


def _tables(report: PipelineReport) -> Markup:
    rows: list[Sequence[object]] = []
    for table in report.tables:
        name = joined([tag("b", table.name), tag("div", table.description, class_="soft")])
        if table.version is None:
            rows.append((name, "does not exist yet", "", "", "", ""))
            continue
        number = "?" if table.rows is None else f"{table.rows:,}"
        last: date | str = table.last_day or ""
        size = size_text(table.size_bytes)
        rows.append((name, number, f"{table.version:,}", last, f"{table.files:,}", size))
    columns = ("table", "rows", "version", "last day", "files", "size")
    return grid(columns, rows, numbers=(1, 2, 4, 5))


def _share_text(share: float) -> str:
    """A share in percent, rounded down: 100 % means all."""
    return f"{floor(share * 10_000) / 100:g} %"
