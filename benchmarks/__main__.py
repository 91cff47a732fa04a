"""`python -m benchmarks`: measures, and writes what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks import plot, results
from benchmarks.compare import Engines, compare
from benchmarks.engine_process import Resources
from benchmarks.plan import Planned, planned
from benchmarks.ways import FLOOR, OURS, WAYS, Way
from benchmarks.workload import size_number

_RESULTS = Path(__file__).parent / "results"
_DEFAULT_SIZES = "1M,10M"
_FULL_SIZES = "1M,10M,50M,100M"
_ALWAYS = (OURS, FLOOR)
# They take minutes, so they are measured when they are named, or with everything.
_LONG = ("flink-hop-batch", "kafka-streams")

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def main(
    size: Annotated[str, typer.Option(help="Numbers of records: 1M,10M,50M,100M.")] = "",
    peers: Annotated[str, typer.Option(help=f"Of {', '.join(WAYS)}.")] = "",
    only: Annotated[str, typer.Option(help="Works whose name holds this text.")] = "",
    runs: Annotated[int, typer.Option(help="How many runs of each count.", min=1)] = 5,
    cores: Annotated[int, typer.Option(help="How many cores an engine uses.", min=1)] = 2,
    memory_gib: Annotated[int, typer.Option(help="A JVM's heap; DuckDB's limit.", min=1)] = 3,
    limit_gib: Annotated[float, typer.Option(help="An engine that takes more is ended.")] = 9.0,
    patience_s: Annotated[float, typer.Option(help="How long a run waits for others.")] = 20.0,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="One run of each.")] = False,
    full: Annotated[bool, typer.Option("--full", help="All sizes, keys and peers.")] = False,
) -> None:
    """Measures windows_pipeline against other engines; see benchmarks/results."""
    console = Console()
    sizes = _sizes(size or (_FULL_SIZES if full else _DEFAULT_SIZES))
    ways = _ways(peers, full=full)
    folder = results.machine_folder(_RESULTS)
    works = _works(sizes, only, full=full)
    results.made_of()  # the commit before anything is measured
    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with ExitStack() as stack:
        progress = stack.enter_context(Progress(*columns, console=console, transient=True))
        task = progress.add_task("")

        def report(text: str) -> None:
            progress.update(task, description=text)
            if not console.is_terminal:
                console.print(text)

        engines = stack.enter_context(Engines(report))
        for one in works:
            resources = Resources(one.cores or cores, memory_gib, limit_gib)
            wanted = 1 if quick else min(runs, _max_runs(one))
            able = [way for way in ways if way.takes(one.work)]
            engines.use(resources)
            measured = compare(one.work, able, wanted, engines, report, patience_s)
            found = results.entry(one, measured, resources)
            entries = results.with_entry(results.load(folder), one.name, found)
            results.save(folder, entries)
            plot.save(folder, entries)
            console.print(_shown(one, found))
    console.print(f"benchmarks/results/{folder.name}")


def _max_runs(one: Planned) -> int:
    """Large works vary less, and take long."""
    return 5 if one.work.dataset.records <= 1_000_000 else 3


def _sizes(text: str) -> list[int]:
    try:
        return [size_number(one.strip()) for one in text.split(",")]
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _works(sizes: Sequence[int], only: str, *, full: bool) -> list[Planned]:
    every = list(planned(sizes, full=full))
    works = [one for one in every if only in one.name]
    if not works:
        names = "\n".join(one.name for one in every)
        raise typer.BadParameter(f"{only!r} is in the name of no work of these sizes:\n{names}")
    return works


def _ways(names: str, *, full: bool) -> list[Way]:
    if not names:
        return [way for name, way in WAYS.items() if full or name not in _LONG]
    wanted = [name.strip() for name in names.split(",")]
    unknown = sorted(set(wanted) - set(WAYS))
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} must be one of {', '.join(WAYS)}")
    named = [WAYS[name] for name in wanted]
    return [*_ALWAYS, *(way for way in named if way not in _ALWAYS)]


def _shown(one: Planned, entry: results.Entry) -> Table:
    table = Table(title=one.name, title_justify="left")
    for column in ("way", "median s", "min", "max", "to floor", "to ours", "peak MiB", "others"):
        table.add_column(column)
    for way, figures in entry["ways"].items():
        if "median_s" not in figures:
            table.add_row(way, figures["failure"])
            continue
        names = ("median_s", "min_s", "max_s", "to_floor", "to_ours", "peak_mib", "others_cores")
        table.add_row(way, *(str(figures[name]) for name in names))
    return table


if __name__ == "__main__":
    app()
