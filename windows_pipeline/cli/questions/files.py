"""`check --files`: compares files with their digests, without Spark; `--repair` repairs tables."""

from __future__ import annotations

import sys
from itertools import groupby
from typing import TYPE_CHECKING

import typer

from windows_pipeline.checks.files import FilesResult, Finding, Fix, check_pipeline_files
from windows_pipeline.cli.failures import end_failed, failed_rules, rules_of_jobs
from windows_pipeline.cli.session import begin, session
from windows_pipeline.cli.terminal.console import CONSOLE
from windows_pipeline.cli.terminal.printed import print_jobs
from windows_pipeline.compat.delta_rs import supports_folder
from windows_pipeline.config import Pipeline
from windows_pipeline.settings import Settings
from windows_pipeline.storage.catalog import stream_checkpoint
from windows_pipeline.storage.files.stream_checkpoint import PUT_BACK, way_out
from windows_pipeline.storage.writer_lock import writing
from windows_pipeline.text.counts import counted

if TYPE_CHECKING:
    from windows_pipeline.jobs.days.repair import RepairPlan

_MOST_FINDINGS = 20


def check_files(
    context: typer.Context, settings: Settings, pipeline: Pipeline, *, repair: bool, yes: bool
) -> None:
    """Checks the files of a pipeline's tables, and repairs them if asked to.

    Args:
        context: The command's context; only a repair starts Spark with it.
        settings: Where the tables lie.
        pipeline: The pipeline.
        repair: Whether to say what a repair would do, and to do it after a yes.
        yes: Whether the answer is yes.

    Raises:
        typer.Exit: With status 1 if anything is still damaged, or a check of recomputed rows
            failed.
        ValueError: The tables lie in an object store.
    """
    warehouse = settings.warehouse
    if not warehouse.startswith("/") or not supports_folder(warehouse):
        raise ValueError(
            f"--files compares tables in a local folder, and the warehouse is {warehouse}; an "
            "object store keeps checksums of its own"
        )
    found = check_pipeline_files(pipeline, warehouse)
    _print(pipeline, warehouse, found)
    if not found.findings:
        return
    failed: list[str] = []
    if repair:
        plan = _agreed_plan(pipeline, settings, found.findings, yes=yes)
        if plan is not None:
            with writing(pipeline, warehouse):
                failed = _carry_out(context, settings, pipeline, plan)
            found = check_pipeline_files(pipeline, warehouse)
            _print(pipeline, warehouse, found)
    tables = ", ".join(dict.fromkeys(finding.table for finding in found.findings))
    end_failed([*([f"damaged: {tables}"] if tables else []), *failed])


def _print(pipeline: Pipeline, warehouse: str, found: FilesResult) -> None:
    sources_first = any(finding.fix is Fix.SOURCE for finding in found.findings)
    for table, group in groupby(found.findings, key=lambda finding: finding.table):
        of_table = list(group)
        CONSOLE.print(f"{table}: damaged")
        for finding in of_table[:_MOST_FINDINGS]:
            CONSOLE.print(
                f"  {finding.file}: {finding.what}" if finding.file else f"  {finding.what}"
            )
        if len(of_table) > _MOST_FINDINGS:
            CONSOLE.print(f"  and {len(of_table) - _MOST_FINDINGS:,} more")
        for fix in dict.fromkeys(finding.fix for finding in of_table):
            if fix is Fix.COMMIT:
                files = [one.file for one in of_table if one.fix is fix and one.file]
                text = way_out(stream_checkpoint(pipeline, warehouse), files)
            else:
                text = _fix_text(fix, pipeline, sources_first=sources_first)
            CONSOLE.print(f"  to fix it: {text}", soft_wrap=True)
    CONSOLE.print(
        f"{pipeline.name}: {counted(found.compared, 'file')} of "
        f"{counted(found.tables, 'table')} are as they were written; "
        f"{counted(len(found.findings), 'finding')}"
    )
    if found.new:
        CONSOLE.print(
            f"  {found.new:,} data files had no digest; all can be read, and have digests now"
        )


def _fix_text(fix: Fix, pipeline: Pipeline, *, sources_first: bool) -> str:
    name = pipeline.name
    start_over = (
        f"start over from the landed files: windows-pipeline rebuild {name} --from raw_events"
        if pipeline.source.by_days
        else "start over: delete the pipeline's folder of tables, then: "
        f"windows-pipeline stream {name}"
    )
    again = f"windows-pipeline {'run' if pipeline.source.by_days else 'stream'} {name}"
    repair = f"windows-pipeline check {name} --files --repair"
    texts = {
        Fix.REPAIR: f"{'fix the tables of the source, then: ' * sources_first}{repair}",
        Fix.SOURCE: f"put the files back from a backup, or {start_over}",
        Fix.BACKUP: "put the file back from a backup; no other table has these rows",
        Fix.STREAM: PUT_BACK,
        Fix.DELETE: "delete the file; readers then list the log",
        Fix.RUN: f"if nothing is running, a run was stopped; resume with: {again}",
    }
    return texts[fix]


def _agreed_plan(
    pipeline: Pipeline, settings: Settings, findings: list[Finding], *, yes: bool
) -> RepairPlan | None:
    """Prints what a repair would do; returns it if the user agrees and anything can be done."""
    # Needs Spark's modules, whose import takes a second.
    from windows_pipeline.jobs.days.repair import RepairRefusedError, plan_repair

    try:
        plan = plan_repair(pipeline, settings, findings)
    except RepairRefusedError as error:
        CONSOLE.print(f"no repair: {error}")
        return None
    if plan.is_empty:
        CONSOLE.print("no repair: no damaged table can be recomputed from other tables")
        return None
    CONSOLE.print("the repair:")
    for line in plan.lines(pipeline):
        CONSOLE.print(f"  {line}")
    if yes or (sys.stdin.isatty() and typer.confirm("Do it?")):
        return plan
    CONSOLE.print("nothing was written; to do it: --repair --yes")
    return None


def _carry_out(
    context: typer.Context, settings: Settings, pipeline: Pipeline, plan: RepairPlan
) -> list[str]:
    """Carries out the plan; returns which rules fail."""
    status = begin(context, f"{pipeline.name}: starting Spark")
    from windows_pipeline.jobs.days.repair import run_repair
    from windows_pipeline.storage.table import DefinitionChangedError

    spark = session(context, settings)
    try:
        results = run_repair(spark, pipeline, settings, plan, status.update)
        again = f"windows-pipeline check {pipeline.name} --files --repair"
        return failed_rules(rules_of_jobs(print_jobs(results, pipeline, lambda _: again)))
    except DefinitionChangedError as error:
        step = "raw_events" if pipeline.source.by_days else "keyed_windows"
        raise DefinitionChangedError(
            f"{error}. As files are damaged, too: windows-pipeline rebuild {pipeline.name} "
            f"--from {step}"
        ) from error
