"""`python -m tests.conformance FILE.jsonl ...`: the engine against golden cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Annotated

import typer

from tests.conformance.cases import AnyCase, agreements, read_cases
from tests.conformance.run import compare
from windows_pipeline.compat.spark_session import start_session
from windows_pipeline.settings import load_settings

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    files: Annotated[list[Path], typer.Argument(help="Files of cases, one JSON object per line.")],
    agreed_with: Annotated[
        list[Path] | None,
        typer.Option(
            help="Files of contract cases: skips the cases of an engine that disagrees with these."
        ),
    ] = None,
) -> None:
    """Runs the cases through the Spark engine, prints each difference and the score by engine.

    The last line is 'N passed, N failed'. The exit status is 1 if any case failed.
    """
    agreed = set().union(*(agreements(path) for path in agreed_with or []))
    read = {path: _only_agreed(read_cases(path), agreed) for path in files}
    cases = dict(enumerate(case for of_file in read.values() for case in of_file))
    spark = start_session(load_settings(Path.cwd()))
    found, apart = compare(spark, cases)
    for line in (line for number in cases for line in found[number]):
        typer.echo(line)
    for number, same in apart.items():
        for name in (name for name, is_same in same.items() if not is_same):
            typer.echo(f"{cases[number].id}: {name} of {cases[number].engine} are not ours")
    failed = {number for number, lines in found.items() if lines}
    files_of_cases = [path for path, of_file in read.items() for _ in of_file]
    engines = [case.engine for case in cases.values()]
    for line in [*_scores(files_of_cases, failed), *_scores(engines, failed)]:
        typer.echo(line)
    fields = [(number, name) for number, same in apart.items() for name in same]
    names = [f"{cases[number].engine}, {name}" for number, name in fields]
    differing = {at for at, (number, name) in enumerate(fields) if not apart[number][name]}
    for line in _scores(names, differing):
        typer.echo(line)
    typer.echo(f"{len(cases) - len(failed)} passed, {len(failed)} failed")
    if failed:
        raise SystemExit(1)


def _scores(names: Sequence[object], failed: AbstractSet[int]) -> list[str]:
    """Counts the passed cases of each name; `names` has the name of every case, by its number."""
    passed = Counter(name for number, name in enumerate(names) if number not in failed)
    return [f"{name}: {passed[name]} of {total} passed" for name, total in Counter(names).items()]


def _only_agreed(cases: list[AnyCase], agreed: set[tuple[str, str]]) -> list[AnyCase]:
    """Leaves out the cases without agreement, of engines for which agreements are known."""
    engines = {engine for engine, _ in agreed}
    return [
        case for case in cases if case.engine not in engines or (case.engine, case.id) in agreed
    ]


if __name__ == "__main__":
    app()
