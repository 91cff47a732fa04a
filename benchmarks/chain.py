"""What the chain takes beside its floor, in processor seconds: `python -m benchmarks.chain`."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
import yaml
from rich.console import Console
from rich.table import Table as Grid

from benchmarks import landed
from benchmarks.chain_process import HELD, OURS, Step
from demo.prepare_flights import prepare
from tests.support import costs

_ROOT = Path(__file__).parent.parent
_FIRST = date(2026, 3, 1)
_LARGE_RECORDS = 1_000_000

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@dataclass(frozen=True)
class Part:
    """A process of the chain, and one of its floor.

    Attributes:
        land: Writes the landed files, settings and pipelines into a folder.
        steps: What is measured, in one process.
        before: What a process of its own does first.
    """

    land: Callable[[Path], None]
    steps: Sequence[Step]
    before: Sequence[Step] = ()


@app.command()
def main(
    only: Annotated[str, typer.Option(help="Parts, as in 'day,batch'; all by default.")] = "",
    warm: Annotated[int, typer.Option(help="Warm days and micro-batches; their median.")] = 5,
) -> None:
    """Runs each part once; the first step of a process has the start of Python and Spark."""
    every = parts(warm)
    names = only.split(",") if only else [*every]
    grid = Grid("work", "processor s", "floor", "ratio")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            Console().print(f"{name} ...")
            found = measured(every[name], Path(folder))
        for step in dict.fromkeys(one.name for one in every[name].steps):
            ours, floor = (median(taken[step]) for taken in found)
            grid.add_row(step, f"{ours:.1f}", f"{floor:.1f}", f"{ours / floor:.2f}")
    Console().print(grid)


def parts(warm: int) -> dict[str, Part]:
    """What is measured, by name."""
    year = [str(date(2013, 1, 1) + timedelta(days=number)) for number in range(366)]
    days = [str(_FIRST + timedelta(days=number)) for number in range(warm + 3)]
    run = [Step(_named("day", number), "days", [day]) for number, day in enumerate(days[2:])]
    follow = [
        Step(_named("micro-batch", number), "flow", [day], stream=True)
        for number, day in enumerate(days[2:])
    ]
    return {
        "year": Part(_land_year, [Step("a year of flights", "flights", year)]),
        "day": Part(lambda folder: _land_days(folder, days), run, [Step("", "days", days[:2])]),
        "batch": Part(
            lambda folder: _land_days(folder, days, stream=True),
            follow,
            [Step("", "flow", [day], stream=True) for day in days[:2]],
        ),
        "large": Part(_land_large, [Step("a day of 1,000,000 records", "large", ["2026-01-01"])]),
    }


def measured(part: Part, folder: Path) -> list[dict[str, list[float]]]:
    """The processor seconds of each step, of the chain and of its floor."""
    part.land(folder)
    if part.before:
        _process(folder, OURS, part.before)
    return [_process(folder, engine, part.steps) for engine in (OURS, "floor")]


def _process(folder: Path, engine: str, steps: Sequence[Step]) -> dict[str, list[float]]:
    """Runs steps in a process of its own, which writes what it took to a file."""
    plan = json.dumps([one._asdict() for one in steps])
    command = [sys.executable, "-m", "benchmarks.chain_process", engine, str(folder), plan]
    with (folder / "output").open("wb") as output:
        ended = subprocess.run(  # noqa: S603  our own program
            command, cwd=_ROOT, stdout=output, stderr=subprocess.STDOUT, check=False
        )
    if ended.returncode:
        raise RuntimeError(f"{engine} failed:\n{(folder / 'output').read_text()[-2_000:]}")
    found: dict[str, list[float]] = json.loads((folder / "taken.json").read_text())
    return found


def _named(what: str, number: int) -> str:
    return f"a warm {what}" if number else f"a {what} with the start of Spark"


def _land_year(folder: Path) -> None:
    """The demo's flights, and the definition that it computes."""
    prepare(folder / "data" / "flights")
    declared = yaml.safe_load((_ROOT / "pipelines" / "flights.yaml").read_text())
    declared["windows"] = {"hourly": declared["windows"]["hourly"]}
    _settle(folder)
    (folder / "pipelines" / "flights.yaml").write_text(yaml.safe_dump(declared))


def _land_days(folder: Path, days: Sequence[str], *, stream: bool = False) -> None:
    """Days of 800 records, for runs; or for a stream, which they land for one by one."""
    _settle(folder)
    chance = random.Random(7)  # noqa: S311  a seeded generator is wanted
    name = "flow" if stream else "days"
    costs.declare(folder, name, stream=stream)
    for day in days:
        costs.land(folder, name, date.fromisoformat(day), chance)
    if stream:
        (folder / name).rename(folder / HELD)
        (folder / name).mkdir()


def _land_large(folder: Path) -> None:
    """A day of records in ten files, with about a hundred a window."""
    landing = landed.declared(folder, "large", 10, 8).landing
    for number in range(10):
        landed.land(landing, number, _LARGE_RECORDS // 10)
    _settle(folder, landed.FOR_LONG_WORK)
    (folder / "large.yaml").rename(folder / "pipelines" / "large.yaml")


def _settle(folder: Path, spark: dict[str, str] | None = None) -> None:
    """Writes the project's settings, with all that is computed inside the folder."""
    found = yaml.safe_load((_ROOT / "settings.yaml").read_text())
    found |= {"warehouse": "warehouse", "landing": ".", "dagster_home": None}
    found["spark"] |= spark or {}
    (folder / "settings.yaml").write_text(yaml.safe_dump(found))
    (folder / "pipelines").mkdir()


if __name__ == "__main__":
    app()
