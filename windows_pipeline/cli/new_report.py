"""What `new` prints: the columns, their roles, how late records are, and what comes next."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.table import Table

from windows_pipeline.cli.terminal.console import PlainConsole
from windows_pipeline.starter.arrival_order import grace_ms, histogram
from windows_pipeline.starter.new_pipeline import NewPipeline, column_of
from windows_pipeline.starter.sample import Verdict
from windows_pipeline.text.counts import counted
from windows_pipeline.windows.durations import duration_text

_BAR = 40
_LONGEST_EXAMPLE = 40
_LONGEST_RECORD = 100
_NO_TEXT = "\N{REPLACEMENT CHARACTER}"
_MOST_NAMES = 10


def print_sample(console: PlainConsole, made: NewPipeline) -> None:
    """Prints how much was read, and a table of the columns with their guessed types."""
    sample, files = made.sample, made.files
    share = " (the first ones)" if sample.is_share else ""
    of = counted(len(files.files), "file")
    console.print(
        f"{files.root}: {of} of {files.format}; {counted(sample.record_count, 'record')} looked at"
        f"{share}"
    )
    if files.skipped:
        more = ", ..." if len(files.skipped) > _MOST_NAMES else ""
        console.print(f"skipped: {', '.join(files.skipped[:_MOST_NAMES])}{more}")
    grid = Table(box=box.SIMPLE)
    longest = max(map(len, made.columns))
    for title, least in (
        ("column", min(longest, _BAR)),
        ("type", 4),
        ("no value", 8),
        ("example", 7),
    ):
        grid.add_column(title, overflow="ellipsis", no_wrap=True, min_width=least)
    for column in made.columns.values():
        nulls = f"{column.texts.null_count:,}" if column.texts.null_count else ""
        example = column.example[:_LONGEST_EXAMPLE]
        grid.add_row(column.name, column.described_type, nulls, example)
    console.print(grid)
    noted = [column for column in made.columns.values() if column.note]
    for column in noted:
        console.print(f"{column.name}: {column.note}")
    if noted:
        console.print()
    if made.local_times and made.zone is None:
        console.print(
            f"times without an offset are read as UTC: {', '.join(made.local_times)}; if they are "
            "local times, name their zone, as in --zone Europe/Berlin"
        )
        console.print()


def print_roles(console: PlainConsole, made: NewPipeline) -> None:
    """Prints the roles with their reasons, and the columns that are left out."""
    choices = {"key": made.key, "event time": made.event_time, "arrival": made.arrival}
    longest = max(len(choice.name) for choice in choices.values())
    for role, choice in choices.items():
        console.print(f"{role:<10}  {choice.name:<{longest}}  {choice.reason}")
    for name, reason in made.left_out.items():
        console.print(f"left out: {name!r} {reason}; rename it in the files to use it")
    console.print()


def print_lateness(console: PlainConsole, made: NewPipeline) -> None:
    """Prints how many records come how late, and the grace that 99 % of them need."""
    lateness = made.arrived.lateness_ms
    console.print("lateness: how far a record's event time lies behind the largest before it")
    bins = histogram(lateness)
    most = max((count for _, count in bins), default=0)
    for bound, count in bins:
        label = "in order" if bound == 0 else f"up to {duration_text(bound)}"
        bar = "#" * max(round(_BAR * count / most), 1) if count else ""
        console.print(f"  {label:<18}{count:>9,}  {bar}")
    needed = duration_text(grace_ms(lateness))
    console.print(f"a grace of {needed} is enough for 99 % of the records")
    console.print()


def print_accepted(console: PlainConsole, verdict: Verdict, refused: Verdict) -> None:
    """Prints what the reader of a run accepts, and what it rejects, with the reasons."""
    judged = sum(count for count, _ in verdict.values())
    accepted, _ = verdict.get(None, (0, ""))
    console.print(f"a run accepts {accepted:,} of {counted(judged, 'record')} of the sample")
    for reason, of in refused.items():
        said = _rejection(reason, *of)
        console.print(f"{column_of(reason)} is text, as a run reads no other type: {said}")
    rejected = {reason: of for reason, of in verdict.items() if reason is not None}
    for reason, of in rejected.items():
        console.print(f"rejected: {_rejection(reason, *of)}")
    if any(_NO_TEXT in example for _, example in rejected.values()):
        console.print(
            "some records hold bytes that are no UTF-8: convert the files, or of CSV name the "
            "encoding in the pipeline's source, such as 'encoding: latin-1'"
        )
    console.print()


def _rejection(reason: str | None, count: int, example: str) -> str:
    shown = repr(example.strip()[:_LONGEST_RECORD])
    return f"{counted(count, 'record')} ({reason}), such as {shown}"


def print_windows(console: PlainConsole, made: NewPipeline) -> None:
    """Prints the windows and the alert rules, with their results in the sample."""
    found = made.proposal
    console.print(
        f"windows: sliding, {duration_text(found.size_ms)}, "
        f"grace {duration_text(found.grace_ms)}{', silences too' if found.emit_empty else ''}"
    )
    of = counted(found.closed or found.total, "window")
    for rule in found.rules:
        console.print(
            f"alert {rule.name}: {rule.when}; it fires for about {rule.broken:,} of {of} of the "
            "sample"
        )
    if found.closed == 0:
        console.print(
            "no window of the sample closes: stream time must pass a window's end by the grace. "
            "Take a shorter --size or --grace, or a longer sample, to see results"
        )
    console.print()


def print_created(console: PlainConsole, name: str, made: NewPipeline) -> None:
    """Prints what was written, and the next commands."""
    days, folder = made.days, _below_here(made.folder)
    span = str(days[0]) if len(days) == 1 else f"{days[0]} to {days[-1]}"
    verb = "is in" if made.files.days else "copied into"
    console.print(f"the sample {verb} {folder}: {counted(len(days), 'day folder')}, {span}")
    missing = made.missing_days
    if missing:
        shown = ", ".join(map(str, missing[:_MOST_NAMES]))
        more = ", ..." if len(missing) > _MOST_NAMES else ""
        console.print(
            f"{counted(len(missing), 'day')} between them without a folder ({shown}{more}), which "
            "would block the days after it; if no record came on a day, make its folder: "
            f"mkdir {folder / str(missing[0])}"
        )
    console.print(f"wrote {_below_here(made.file)}; look through it, then:")
    console.print()
    console.print(f"  windows-pipeline run {name}")
    console.print(f"  windows-pipeline alerts {name}")
    in_clone = Path("tools/ui.py").is_file()  # which `make ui` runs
    console.print("  make ui" if in_clone else '  DAGSTER_HOME="$PWD/.dagster_home" dagster dev')


def _below_here(path: Path) -> Path:
    """A path as users would type it: relative where it lies below the working directory."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
