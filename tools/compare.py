"""Compares the tables that two versions of the code make: `python -m tools.compare BEFORE`.

BEFORE is a checkout, or a revision of git, which is checked out for a while. Each part does the
same with the code before and with this checkout's, by the command line, in a folder of the same
path. In parts named `next_*` the code before begins on both sides, and the other code goes on.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import duckdb
import typer
import yaml
from deltalake import DeltaTable

from demo.prepare_flights import prepare
from tests.support import kinds
from windows_pipeline.settings import SETTINGS_VARIABLE, load_settings

_ROOT = Path(__file__).parent.parent
_MOST_ROWS = 3
_PATIENCE_S = 600
_APART = {
    "arrival_log.stream": "a random id of the stream",
    "at": "in logs of deliveries: when a message was sent",
    "message": "in logs of deliveries: a random id",
    "run": "in logs of failures: when the command began",
}
"""What differs between two runs of the same code, with the reason."""
_CALLS = """
import json, sys
from windows_pipeline.cli.main import main
from windows_pipeline.compat.spark_session import start_session
for call in json.loads(sys.argv[1]):
    sys.argv = ["windows-pipeline", *call]
    try:
        main(start_session)
    except SystemExit as ended:
        print("status", ended.code or 0, flush=True)
"""
"""Runs commands in one process, so that one JVM for all of them starts once."""
_SMALL: dict[str, Any] = {"warehouse": "warehouse"}
_LARGE = {"warehouse": "warehouse^", "small_batches": {}, "keep_plans": True}
"""Few records are computed as many are, by compiled plans, in a folder that only Spark writes.

Nothing is sent, as `notify` reads its log of deliveries without Spark.
"""
_ROW_KINDS: dict[str, dict[str, object]] = {
    "around": {"kind": "slide_rows", "preceding": "10 ms", "following": "4 ms"},
    "visits": {"kind": "session_rows", "gap": "4 ms"},
    "fours": {"kind": "count", "size": 4, "advance": 2},
}


_FIRST, _SECOND, _THIRD = map(str, kinds.DAYS)


@dataclass
class Side:
    """A project, the checkout whose code works on it now, and the commands' exit statuses."""

    folder: Path
    code: Path
    settings: Mapping[str, Any]
    statuses: list[str] = field(default_factory=list)

    def start(self, *calls: str, apart: bool = False) -> subprocess.Popen[bytes]:
        """Starts a process that runs commands one after the other; maybe in a group of its own."""
        found = yaml.safe_load((self.code / "settings.yaml").read_text()) | self.settings
        found |= {"pipelines": "pipelines", "landing": ".", "dagster_home": None}
        (self.folder / "settings.yaml").write_text(yaml.safe_dump(found))
        environment = {**os.environ, "PYTHONPATH": str(self.code)}
        environment.pop(SETTINGS_VARIABLE, None)
        command = [sys.executable, "-c", _CALLS, json.dumps([one.split(" ") for one in calls])]
        with (self.folder / "output").open("wb") as output:
            return subprocess.Popen(  # noqa: S603  our own program
                command,
                cwd=self.folder,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0 if apart else None,
            )

    def failed(self, what: str) -> RuntimeError:
        """An error with the last lines that the process printed."""
        text = (self.folder / "output").read_text()
        return RuntimeError(f"{what}, by the code of {self.code}:\n{text[-2_000:]}")


Step = Callable[[Side], object]


def call(*calls: str) -> Step:
    """Runs commands in one process."""

    def step(side: Side) -> None:
        side.start(*calls).wait()
        lines = (side.folder / "output").read_text().splitlines()
        statuses = [line[-1] for line in lines if line.startswith("status ")]
        side.statuses += [f"{one}: {status}" for one, status in zip(calls, statuses, strict=False)]
        if len(statuses) < len(calls) or max(statuses) > "1":
            raise side.failed(f"a command failed: {side.statuses}")

    return step


def each(*commands: str) -> Step:
    """Runs commands, each for both pipelines that `land_kinds` declares."""
    return call(*(one.replace("NAME", name) for name in ("kinds", "rows") for one in commands))


def kill(command: str, table: str) -> Step:
    """Starts a command, and kills it once it has committed rows to a table."""

    def step(side: Side) -> None:
        def commits() -> int:
            return len([*side.folder.glob(f"warehouse/{table}/_delta_log/*.json")])

        enough = max(commits(), 1) + 1  # the first commit of a table creates it
        process = side.start(command, apart=True)
        give_up_at = time.monotonic() + _PATIENCE_S
        try:
            while commits() < enough:
                if process.poll() is not None or time.monotonic() > give_up_at:
                    raise side.failed(f"{command} must write {table}, and did not")
                time.sleep(0.01)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    return step


def move(name: str, to: str) -> Step:
    """Takes a landed day away, or lands it."""
    return lambda side: (side.folder / name).rename(side.folder / to)


def land_kinds(**source: object) -> Step:
    """Lands three days of two files; declares windows of every kind, by time and by rows."""

    def step(side: Side) -> None:
        half = kinds.RECORDS_A_DAY // 2
        pieces = [range(half), range(half, kinds.RECORDS_A_DAY)]
        kinds.declare(load_settings(_ROOT), side.folder, pieces, **source)
        file = side.folder / "pipelines" / "kinds.yaml"
        shared = {"grace": "6 ms", "aggregates": {"total": "sum(whole)"}, "alerts": kinds.BUSY}
        windows = {name: {**fields, **shared} for name, fields in _ROW_KINDS.items()}
        declared = json.loads(file.read_text()) | {"name": "rows", "windows": windows}
        file.with_name("rows.yaml").write_text(json.dumps(declared))

    return step


def land_again(side: Side) -> None:
    """Changes values in the files of the second day, as somebody does who lands them again."""
    for file in (side.folder / "data" / _SECOND).iterdir():
        file.write_text(file.read_text().replace('"whole": 3', '"whole": 8'))
        os.utime(file, (2_000_000_000, 2_000_000_000))


def raise_grace(side: Side) -> None:
    """Raises the grace of every definition."""
    for file in (side.folder / "pipelines").iterdir():
        declared = json.loads(file.read_text())
        for windows in declared["windows"].values():
            windows["grace"] = "9 ms"
        file.write_text(json.dumps(declared))


def land_flights(last: str) -> Step:
    """Lands the demo's flights until a day."""

    def step(side: Side) -> None:
        landed = side.folder / "data" / "flights"
        prepare(landed)
        for file in landed.glob("*/*"):
            os.utime(file, (1_500_000_000, 1_500_000_000))
            if file.parent.name > last:
                shutil.rmtree(file.parent)
        shutil.copytree(_ROOT / "pipelines", side.folder / "pipelines")

    return step


@dataclass(frozen=True)
class Part:
    """Steps, how many of them the code before does on both sides, and settings."""

    steps: Sequence[Step]
    of_before: int = 0
    settings: Mapping[str, Any] = field(default_factory=lambda: _SMALL)


def parts(last: str) -> dict[str, Part]:
    """What there is to compare, by name; flights until a day."""
    stream = {"stream": True, "max_per_batch": 1}
    first_days = [f"2013-01-0{day}" for day in (1, 2, 3)]
    whole = each(f"run NAME --from {_FIRST} --to {_THIRD}")
    send = each("notify NAME --all", "notify NAME --all")
    follow = [each("stream NAME"), send]
    again = [
        land_again,
        each(
            f"run NAME --from {_SECOND} --to {_SECOND}",
            f"correct NAME --from {_SECOND} --cause again",
            "check NAME",
        ),
    ]
    grace = [raise_grace, each(f"correct NAME --from {_FIRST} --cause grace", "check NAME")]
    killed = [
        kill("stream kinds", "kinds/raw_events"),
        kill("stream kinds", "kinds/slides/final_windows"),
    ]
    held, landed = f"held-{_THIRD}", f"data/{_THIRD}"
    begun = [land_kinds(), move(landed, held), each("run NAME"), send]
    followed = [land_kinds(**stream), move(landed, held), *follow]
    arrived = move(held, landed)
    flights = [f"run flights --from {day} --to {day}" for day in first_days]
    return {
        "year": Part([land_flights(last), call(f"run flights --from {first_days[0]} --to {last}")]),
        "days": Part([land_flights(first_days[-1]), call(*flights)]),
        "large": Part([land_kinds(), whole, *again], settings=_LARGE),
        "kinds": Part([land_kinds(), whole, send, *again, *grace, send]),
        "stream": Part([land_kinds(**stream), *killed, *follow]),
        "next_day": Part([*begun, arrived, each("run NAME"), send, *again, send], len(begun)),
        "next_stream": Part([*followed, arrived, *follow, *grace, send], len(followed)),
    }


def run(part: Part, before: Path, work: Path) -> list[Side]:
    """Does a part on both sides; both have the same path while they work."""
    sides = []
    for name, code in (("before", before), ("after", _ROOT)):
        side = Side(work / "project", before, part.settings)
        side.folder.mkdir()
        for number, step in enumerate(part.steps):
            side.code = before if number < part.of_before else code
            step(side)
        side.folder = side.folder.rename(work / name)
        warehouse = side.folder / part.settings["warehouse"]
        warehouse.rename(side.folder / "warehouse")
        sides.append(side)
    return sides


@dataclass(frozen=True)
class Comparison:
    """Compares the folders of two sides, but for what differs on purpose.

    Attributes:
        apart: Why a table, a column or `table.column` is not compared.
        renamed: The new name of a table or column, by its old one.
    """

    apart: Mapping[str, str]
    renamed: Mapping[str, str]

    def tables(self, folder: Path, renamed: Mapping[str, str]) -> dict[str, Any]:
        """The rows of each table, by its new name, with the columns by their new names."""
        found = {}
        for log in sorted(folder.glob("warehouse/**/_delta_log")):
            names = log.parent.relative_to(folder / "warehouse").parts
            rows = DeltaTable(log.parent).to_pyarrow_table()
            rows = rows.rename_columns([renamed.get(one, one) for one in rows.column_names])
            table = renamed.get(names[-1], names[-1])
            apart = [one for one in rows.column_names if {one, f"{table}.{one}"} & {*self.apart}]
            if table not in self.apart:
                columns = sorted(set(rows.column_names) - set(apart))
                found["/".join([*names[:-1], table])] = rows.select(columns)
        return found

    def differing(self, before: Path, after: Path) -> Iterator[str]:
        """Prints the number of rows of each table; yields what differs."""
        old, new = self.tables(before, self.renamed), self.tables(after, {})
        if not any(new[name].num_rows for name in new if name.endswith("/final_windows")):
            yield "no final window has a row"
        for name in sorted(old.keys() | new.keys()):
            if name not in old or name not in new:
                yield f"{name}: only {'after' if name in new else 'before'}"
                continue
            say(f"  {name}: {old[name].num_rows:,} rows before, {new[name].num_rows:,} after")
            if not old[name].schema.equals(new[name].schema):
                yield f"{name}: {old[name].schema} before, {new[name].schema} after"
            else:
                yield from (f"{name}: {text}" for text in differing_rows(old[name], new[name]))
        sent, sent_now = self.sent(before), self.sent(after)
        say(f"  sent and delivered: {sent.total()} lines before, {sent_now.total()} after")
        yield from (f"only before: {text}" for text in [*(sent - sent_now)][:_MOST_ROWS])
        yield from (f"only after: {text}" for text in [*(sent_now - sent)][:_MOST_ROWS])
        yield from (f"twice: {text}" for text, times in sent_now.items() if times > 1)

    def sent(self, folder: Path) -> Counter[str]:
        """The events that messages have, and the lines of the logs of deliveries."""
        events = [
            (file, event)
            for file in folder.glob("warehouse/*/*.jsonl")
            for line in map(json.loads, file.read_text().splitlines())
            for event in line.get("events", [line])
        ]
        failures = {event["id"] for _, event in events if event.get("event") == "failed"}
        found: Counter[str] = Counter()
        for file, event in events:
            kept = {name: event[name] for name in sorted({*event} - {*self.apart})}
            if kept.get("id") in failures:  # when the command began is in the id
                kept = {**kept, "id": "of a failure", "since": None}
            found[f"{file.parent.name}/{file.name} {json.dumps(kept)}"] += 1
        return found


def differing_rows(before: Any, after: Any) -> Iterator[str]:
    """The first rows that only one table has, in any order; as text, in which all bits differ."""
    with duckdb.connect() as database:
        database.register("before", before).register("after", after)
        for one, other in (("before", "after"), ("after", "before")):
            text = (
                f"SELECT text FROM (SELECT {one} AS r, {one}::VARCHAR AS text FROM {one} "  # noqa: S608
                f"EXCEPT ALL SELECT {other}, {other}::VARCHAR FROM {other}) LIMIT {_MOST_ROWS}"
            )
            yield from (f"only {one}: {row}" for (row,) in database.execute(text).fetchall())


@contextmanager
def checked_out(before: str) -> Iterator[Path]:
    """The folder of a checkout, or a worktree of a revision while the block runs."""
    if Path(before, "settings.yaml").is_file():
        yield Path(before).resolve()
        return
    git = ["git", "-C", str(_ROOT), "worktree"]
    with TemporaryDirectory() as folder:
        tree = f"{folder}/tree"
        subprocess.run([*git, "add", "--quiet", "--detach", tree, before], check=True)  # noqa: S603
        try:
            yield Path(tree)
        finally:
            subprocess.run([*git, "remove", "--force", tree], check=True)  # noqa: S603


def say(*lines: str) -> None:
    """Prints lines."""
    for line in lines:
        typer.echo(line)


def _pairs(texts: Sequence[str] | None, option: str) -> dict[str, str]:
    pairs = dict(text.partition("=")[::2] for text in texts or ())
    if not all(pairs.values()):
        raise typer.BadParameter(f"{option} must be NAME=TEXT, and has no text after '='")
    return pairs


def main(
    before: Annotated[str, typer.Argument(help="A checkout's folder, or a revision of git.")],
    only: Annotated[str, typer.Option(help="Parts, as in 'kinds,stream'; all by default.")] = "",
    apart: Annotated[
        list[str] | None, typer.Option(help="TABLE, COLUMN or TABLE.COLUMN=REASON.")
    ] = None,
    renamed: Annotated[
        list[str] | None, typer.Option(help="OLD=NEW, of a table or a column.")
    ] = None,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="A month in place of the year.")] = False,
) -> None:
    """Exit status 1 where the code before and the code of this checkout differ in a row."""
    every = parts("2013-01-31" if quick else "2014-01-01")
    names = only.split(",") if only else [*every]
    if not every.keys() >= {*names}:
        raise typer.BadParameter(f"--only must name parts of {', '.join(every)}")
    comparison = Comparison(_APART | _pairs(apart, "--apart"), _pairs(renamed, "--renamed"))
    for name, reason in comparison.apart.items():
        say(f"not compared: {name} ({reason})")
    different = []
    with ExitStack() as stack:
        checkout = stack.enter_context(checked_out(before))
        for name in names:
            say(f"{name} ...")
            old, new = run(every[name], checkout, Path(stack.enter_context(TemporaryDirectory())))
            found = [*comparison.differing(old.folder, new.folder)]
            if old.statuses != new.statuses:
                found.append(f"exit statuses: {old.statuses} before, {new.statuses} after")
            say(*(f"  DIFFERENT {text}" for text in found))
            different += [name] * bool(found)
    say(f"DIFFERENT: {', '.join(different)}" if different else "equal")
    raise typer.Exit(bool(different))


if __name__ == "__main__":
    typer.run(main)
