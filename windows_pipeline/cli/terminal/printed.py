"""What the command line prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date
from time import monotonic
from typing import TYPE_CHECKING, Literal

from rich.text import Text

from windows_pipeline.cli.terminal.console import CONSOLE, ERRORS, PlainConsole, coloured
from windows_pipeline.cli.terminal.progress import Status
from windows_pipeline.text.counts import counted
from windows_pipeline.text.references import without_values
from windows_pipeline.text.values import printable

if TYPE_CHECKING:  # importing them takes seconds, and `say` is wanted at once
    from windows_pipeline.checks.run import CheckResult
    from windows_pipeline.config import Pipeline
    from windows_pipeline.jobs import JobResult
    from windows_pipeline.jobs.quarantine import QuarantinedFile
    from windows_pipeline.sources.bad_files import BadFileError
    from windows_pipeline.sources.file_changes import ChangedFile
    from windows_pipeline.storage.waiting_days import WaitingDays
    from windows_pipeline.streaming import BatchResult

_MOST_NAMES = 20
_OF_CHANGED_RECORDS = frozenset(
    {"final_never_changed", "alerts_never_changed", "values_are_those_of_records"}
)
"""The rules that fail where records were changed after their windows were published."""
_STYLES = {"error": "red", "warning": "yellow", "note": "cyan", "log": "cyan"}


def print_jobs(
    results: Iterable[tuple[str, JobResult]],
    pipeline: Pipeline,
    again: Callable[[Sequence[date]], str],
    done: list[tuple[str, JobResult]],
    correct: str = "",
) -> None:
    """Prints each job's result as the job ends.

    Args:
        results: The name of each job's first table, and the job's result.
        pipeline: The pipeline.
        again: The command that does a job's days again.
        done: Gets the results.
        correct: How to change final windows, where the output says that at its end.
    """
    for name, result in results:
        done.append((name, result))
        rows = ", ".join(f"{table} {sum(rows.values()):,}" for table, rows in result.rows.items())
        CONSOLE.print(f"{name}: {'published' if result.published else 'NOT published'}; {rows}")
        print_checks((name, found) for found in result.checks if not found.passed or found.excused)
        if not result.published:
            from windows_pipeline.checks.next_steps import failing_days, once_blocked

            days = sorted(result.days)
            then = once_blocked(pipeline, again(days), result.checks, correct)
            CONSOLE.print(f"  {then(failing_days(result.checks, days)[0])}")


def print_checks(
    results: Iterable[tuple[str, CheckResult]], console: PlainConsole = CONSOLE
) -> None:
    """Prints the results of checks; for a failed check, three of the failing rows."""
    from windows_pipeline.storage.arrival_units import days_text

    for name, result in results:
        failure = ("warning", "yellow") if result.check.is_warning else ("FAILED", "red")
        mark = ("passed", "green") if result.passed else failure
        console.print(Text.assemble(printable(f"{name} {result.check.name}: "), mark))
        if result.excused:
            days = days_text(sorted(result.excused))
            console.print(f"  not judged on {days}, of too few records (limits.least_records)")
        if not result.passed:
            console.print(
                f"  must hold: {result.check.description}; not so in "
                f"{counted(result.failing_rows, 'row')}, such as"
            )
            for row in result.sample[:3]:
                console.print(f"  {row}")


def print_published(
    pipeline: Pipeline, results: Sequence[tuple[str, CheckResult]], correct: str = ""
) -> date | None:
    """Prints what to do where published rows differ from what their records give.

    Args:
        pipeline: The pipeline.
        results: The failed checks, each with its table.
        correct: How to change final windows, where the output says that at its end.

    Returns:
        The first day whose rows differ.
    """
    from windows_pipeline.checks.next_steps import failing_days, once_published

    failed = [found for _, found in results if found.check.name in _OF_CHANGED_RECORDS]
    first = next(iter(failing_days(failed, ())), None)
    if first is not None:
        CONSOLE.print(f"{pipeline.name}: {first}: {once_published(pipeline, correct)(first)}")
    return first


def print_waiting(
    pipeline: str,
    waiting: WaitingDays,
    refused: Collection[str] = (),
    differs: date | None = None,
) -> list[str]:
    """Prints which days lack results, and the commands that compute the days.

    Args:
        pipeline: The pipeline's name.
        waiting: The days.
        refused: The definitions whose final windows a run has just refused to change.
        differs: The first day whose published rows differ, which a correction begins with.

    Returns:
        What is left to do, in short.
    """
    from windows_pipeline.checks.next_steps import to_correct
    from windows_pipeline.storage.arrival_units import days_text

    left: list[str] = []
    # A correction is of all definitions, so it has one first day.
    first, refusals = differs or date.max, set[bool]()
    for name, days in waiting.lacking.items():
        is_refused = name in refused
        why = ", as final windows would change" if is_refused else ""
        what = f"{pipeline} {name}: {days_text(days)}: ingested and not computed to the end"
        CONSOLE.print(f"{what}{why}")
        left.append(f"{name} is not computed to the end for {days_text(days)}")
        first = min(first, days[0])
        refusals.add(is_refused)
    correct = to_correct(pipeline, first)
    if False in refusals:
        resume = f"{pipeline}: if no run is active, resume with: windows-pipeline run {pipeline}"
        refused = f". If the run refuses to change final windows, {correct}"
        CONSOLE.print(f"{resume}{'' if True in refusals else refused}")
    if True in refusals:
        CONSOLE.print(f"{pipeline}: to change final windows, {correct}")
    if waiting.blocked:
        CONSOLE.print(
            f"{pipeline}: {days_text(waiting.blocked)}: blocked by a missing day: no window closes "
            f"past {waiting.missing}. Land it, then: windows-pipeline run {pipeline}"
        )
        left.append(f"{days_text(waiting.blocked)} blocked by the missing day {waiting.missing}")
    return left


def print_bad_files(pipeline: str, bad: Sequence[BadFileError], ingested: set[date]) -> None:
    """Prints which files are bad, and how to ingest their days.

    Args:
        pipeline: The pipeline's name.
        bad: The errors of the files.
        ingested: The days that were ingested, before the files were bad.
    """
    for error in bad:
        say("error", str(error))
    days = {day for error in bad for day in error.days}
    if missing := sorted(days - ingested):
        say(
            "error",
            f"{pipeline}: {', '.join(map(str, missing))}: not ingested, as a file is bad; nothing "
            "closes past a missing day. Fix or remove the file, then: windows-pipeline run "
            f"{pipeline}",
        )
    for day in sorted(days & ingested):
        say(
            "error",
            f"{pipeline}: {day}: not ingested again, as a file is bad; the day stays as it was. "
            "Fix or remove the file, then: "
            f"windows-pipeline run {pipeline} --from {day} --to {day}",
        )


def print_bad_files_of_stream(pipeline: str, bad: BadFileError) -> None:
    """Prints which files are bad, and how to resume their stream."""
    for error in bad.all:
        say("error", str(error))
    say(
        "error",
        f"{pipeline}: the files' micro-batch is not ingested, and the stream has stopped before "
        f"it. Fix or remove each file, then: windows-pipeline stream {pipeline}",
    )


def print_quarantined(pipeline: str, files: Sequence[QuarantinedFile], *, by_days: bool) -> None:
    """Prints which bad files were left out, and how to ingest them once they are fixed."""
    for file in files[:_MOST_NAMES]:
        say("warning", f"{file.file}: left out: {file.cause}; {file.fix}")
    if len(files) > _MOST_NAMES:
        say(
            "warning", f"and {counted(len(files) - _MOST_NAMES, 'more file')}, in quarantined_files"
        )
    for day in sorted({file.arrival_unit for file in files if by_days})[:_MOST_NAMES]:
        say(
            "warning",
            f"once fixed, ingest it: windows-pipeline run {pipeline} --from {day} --to {day}",
        )


def print_skipped(pipeline: str, skipped: Sequence[str]) -> None:
    """Prints the entries of the source's folder that are not ingested."""
    if not skipped:
        return
    CONSOLE.print(f"{pipeline}: skipped {len(skipped):,}:")
    for text in skipped[:_MOST_NAMES]:
        CONSOLE.print(f"  {text}")
    if len(skipped) > _MOST_NAMES:
        CONSOLE.print(f"  and {len(skipped) - _MOST_NAMES:,} more")


def print_changed(pipeline: str, changed: Sequence[ChangedFile]) -> None:
    """Prints which landed files have changed since they were ingested."""
    if changed:
        files = counted(len(changed), "file")
        CONSOLE.print(f"{pipeline}: {files} changed since the day was ingested:")
    for file in changed[:_MOST_NAMES]:
        CONSOLE.print(f"  {file.day}/{file.name} {file.change}")
    if len(changed) > _MOST_NAMES:
        CONSOLE.print(f"  and {len(changed) - _MOST_NAMES:,} more")
    for day in sorted({file.day for file in changed})[:_MOST_NAMES]:
        CONSOLE.print(
            f"  to ingest it again: windows-pipeline run {pipeline} --from {day} --to {day}"
        )


def print_without_records(files: Sequence[tuple[str, int]]) -> None:
    """Prints which files have bytes but gave no record."""
    for name, size_bytes in files[:_MOST_NAMES]:
        say("warning", f"{name}: no record in {size_bytes:,} bytes; land the file's records")
    if len(files) > _MOST_NAMES:
        say("warning", f"and {counted(len(files) - _MOST_NAMES, 'more file')} without a record")


def print_records(pipeline: str, accepted: int, rejected: int, late: Mapping[str, int]) -> None:
    """Prints how many records were accepted, rejected, and late for each window definition."""
    of_windows = "".join(f"; {name}: {count:,} late" for name, count in late.items())
    CONSOLE.print(
        f"{pipeline}: {counted(accepted, 'record')} accepted, {rejected:,} rejected{of_windows}"
    )


def print_failed(pipeline: str, failed: Mapping[str, int]) -> None:
    """Prints in how many closed windows of each definition an aggregate can't be computed."""
    for name, count in failed.items():
        say(
            "warning",
            f"{pipeline} {name}: closed windows with an aggregate that can't be computed: "
            f"{count:,}; the aggregate is null there, and {pipeline}/{name}/failed_windows has "
            "the reasons",
        )


class PrintedBatches:
    """Prints a run's micro-batches as they finish, and counts their records.

    Attributes:
        number: How many came so far.
        accepted: How many of their records were accepted.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        """Starts a run of a pipeline; the pipeline's limits decide whether the run went wrong."""
        self._pipeline = pipeline
        self._began = monotonic()
        self.number = self.accepted = self._rejected = 0
        self._late: Counter[str] = Counter()
        self._any_undecided = False
        self._named: set[str] = set()
        self._any_empty = False

    def add(self, result: BatchResult) -> None:
        """Prints a micro-batch."""
        self.number += 1
        self.accepted += result.accepted
        self._rejected += result.rejected
        self._late.update(result.late)
        days = ", ".join(map(str, result.arrival_units)) or "no day"
        late = "".join(f", {count:,} late for {name}" for name, count in result.late.items())
        CONSOLE.print(
            f"micro-batch {result.batch}: {days}; {counted(result.accepted, 'record')} accepted, "
            f"{result.rejected:,} rejected{late}; after {monotonic() - self._began:.1f} s"
        )
        if result.passed_over:
            CONSOLE.print(
                f"  skipped: {counted(result.passed_over, 'file')}: links, or not right in the "
                "folder of one of the pipeline's days"
            )
        if result.ambiguous:
            say(
                "warning",
                f"{counted(result.ambiguous, 'record')} with a local time that occurs twice, as "
                "clocks are put back; see `ambiguous` of the source's columns",
            )
        print_failed(self._pipeline.name, result.failed)
        self._any_undecided = self._any_undecided or bool(result.undecided)
        print_quarantined(self._pipeline.name, result.quarantined, by_days=False)
        print_without_records(result.without_records)
        self._any_empty = self._any_empty or bool(result.without_records)
        later = (
            self._pipeline.source.columns_after(max(result.arrival_units))
            if result.arrival_units
            else set()
        )
        without_value = [name for name in result.without_value if name not in later]
        for name in without_value:
            if name not in self._named:
                CONSOLE.print(
                    f"  warning: no record of this run has a value in column {name!r} so far; the "
                    "source may call the column by another name"
                )
        self._named.update(without_value)
        for text in self.beyond_limits:
            CONSOLE.print(f"  warning: so far {text}")

    @property
    def wrong(self) -> list[str]:
        """A file without a record, windows without an answer of a rule, exceeded limits."""
        return [
            *["a file has no record"][: self._any_empty],
            *["an alert rule can't be evaluated in a window"][: self._any_undecided],
            *self.beyond_limits,
        ]

    @property
    def beyond_limits(self) -> list[str]:
        """A text for each of the pipeline's limits that the run's records exceed."""
        limits, all_records = self._pipeline.limits, self.accepted + self._rejected
        shares = [("rejected", self._rejected, all_records, limits.rejected)]
        shares += [
            (f"late for {name}", count, self.accepted, limits.late)
            for name, count in self._late.items()
        ]
        are_all = self.accepted == 0
        return [
            f"{count:,} of {total:,} records are {fate}; the limit is {limit:.4g} %"
            for fate, count, total, limit in shares
            if count
            and (are_all or (total >= limits.least_records and count * 100 > limit * total))
        ]


def say(kind: Literal["error", "warning", "note", "log"], text: str) -> None:
    """Prints an error, a warning, a note or where the log lies to standard error."""
    line = coloured(f"{kind}:", _STYLES[kind], f" {without_values(text)}")
    with Status.hidden():
        ERRORS.print(line, soft_wrap=True)
