"""The demo's summary fits a terminal, and the commands that it names work."""

from __future__ import annotations

import io
import json
import re
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import mean

import pytest
import typer
from pyspark.sql import SparkSession
from rich.console import Console
from typer.core import TyperGroup

from demo.summary import print_summary
from tests.support.alert_ids import digest
from tests.support.pipelines import ROOT, Project
from tests.support.stored_rows import stored_rows
from windows_pipeline.cli.main import app
from windows_pipeline.cli.terminal.progress import Status
from windows_pipeline.config import load_pipeline, load_pipelines
from windows_pipeline.windows import SlidingWindows

WIDTH = 80
PROGRAM = ".venv/bin/windows-pipeline "


@pytest.fixture(scope="module")
def printed(full_run: Project, spark: SparkSession) -> list[str]:
    """The lines of the summary of three days, on a terminal of 80 columns."""
    out = io.StringIO()
    console = Console(file=out, width=WIDTH)
    print_summary(console, spark, full_run.folder, full_run.settings)
    return out.getvalue().splitlines()


@pytest.fixture(scope="module")
def commands(printed: Sequence[str]) -> list[str]:
    """The commands that the summary names, a line each."""
    return [line.split(PROGRAM)[1] for line in printed if PROGRAM in line]


@pytest.fixture(scope="module")
def trace() -> dict[str, str]:
    """The parameters of the page's command that traces a window by its key and end."""
    (found,) = (each for each in map(params, traces_of_page()) if each["key"] is not None)
    return found


def of_page() -> list[str]:
    """The commands of the page that are of the flights."""
    page = (ROOT / "docs" / "commands.md").read_text()
    return re.findall(r"^windows-pipeline (\w+ flights.*)$", page, re.MULTILINE)


def traces_of_page() -> list[str]:
    return [text for text in of_page() if text.startswith("trace ")]


def params(command: str) -> dict[str, str]:
    """The parameters that the command line parses from a command; raises on unknown ones."""
    name, *arguments = shlex.split(command)
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return group.commands[name].make_context(name, arguments).params


def test_no_line_is_broken_or_cut(full_run: Project, printed: list[str]) -> None:
    """Every line fits, but for commands, which users copy."""
    assert [line for line in printed if len(line) > WIDTH and PROGRAM not in line] == []
    text = "\n".join(printed)
    assert "…" not in text
    for table in (*full_run.source.of_source, *full_run.windows.of_every_definition):
        rows = f"{len(stored_rows(table)):,}"
        assert re.search(rf"^ *{table.name} +{rows} +\S", text, re.MULTILINE), table.name


def test_the_commands_of_the_summary_and_of_the_page_exist(commands: list[str]) -> None:
    of_flights = of_page()
    assert {shlex.split(text)[0] for text in commands} == {"episodes", "trace"}
    (by_alert,) = (text for text in commands if text.startswith("trace "))
    assert by_alert in traces_of_page()
    pipelines = {pipeline.name: pipeline for pipeline in load_pipelines(ROOT / "pipelines")}
    for command in commands + of_flights:
        found = params(command)
        if "pipeline" in found:
            assert found.get("windows") in {None, *pipelines[found["pipeline"]].windows}


def test_the_window_to_trace_is_final_and_broke_a_rule(
    trace: dict[str, str], commands: list[str], landed_flights: Path
) -> None:
    """Rules A2 to A5, B2, B3 and E5, from the landed lines, which are in order of arrival."""
    hourly = load_pipeline(ROOT / "pipelines" / "flights.yaml").windows[trace["windows"]]
    assert isinstance(hourly.spec, SlidingWindows)
    assert hourly.alerts["disruption"].when == "record_count >= 10 and avg_dep_delay > 60"
    end = datetime.fromisoformat(trace["window_end"]).replace(tzinfo=UTC)
    start = end - timedelta(milliseconds=hourly.spec.time_difference_ms)
    # Who departed on this evening in New York landed on the day on which the window ended in UTC.
    file = landed_flights / end.date().isoformat() / "flights.jsonl"
    closed_through = datetime.min.replace(tzinfo=UTC)
    of_key, delays = set(), []
    for record in map(json.loads, file.read_text().splitlines()):
        if record["landed_at"] is None:  # rejected
            continue
        departed = datetime.fromisoformat(record["departed_at"])
        grace = timedelta(milliseconds=hourly.spec.grace_ms)
        closed_through = max(closed_through, departed - grace)
        if record["origin"] == trace["key"]:
            of_key.add(departed)
            if start <= departed <= end and closed_through <= end:
                delays.append(record["dep_delay"])
    assert {end, start - timedelta(milliseconds=1)} & of_key
    assert end < closed_through
    assert len(delays) >= 10
    assert mean(delays) > 60
    bounds = (
        f"{instant:%Y-%m-%dT%H:%M:%S}.{instant.microsecond // 1_000:03}Z"
        for instant in (start, end)
    )
    of_alert = digest(["flights", "hourly", "disruption", [trace["key"]], *bounds, None])
    (by_alert,) = (text for text in commands if text.startswith("trace "))
    assert params(by_alert)["alert"] == of_alert


def test_what_other_code_prints_stays_out_of_the_progress(
    capfd: pytest.CaptureFixture[str],
) -> None:
    out = io.StringIO()
    with Status(Console(file=out, force_terminal=True), "starting") as status:
        sys.stderr.write("of Dagster\n")
        status.update("computing")
    assert "of Dagster" in capfd.readouterr().err
    assert "computing" in out.getvalue()
    assert "of Dagster" not in out.getvalue()


def test_on_a_pipe_each_step_of_the_progress_is_a_line() -> None:
    out = io.StringIO()
    console = Console(file=out)
    with Status(console, "starting", lines=console) as status:
        status.update("computing")
    assert out.getvalue() == "starting\ncomputing\n"
