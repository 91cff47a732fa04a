"""The check of an asset in Dagster that has all rules of its table, by day."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date

import dagster as dg

from windows_pipeline.checks.next_steps import NextStep
from windows_pipeline.checks.run import Check, CheckResult
from windows_pipeline.storage.arrival_units import days_text
from windows_pipeline.text.counts import counted
from windows_pipeline.text.markdown import code, plain, table

RULES = "rules"
"""The name of the check of all rules of a table."""

FAILED_RULES = "failed_rules"
"""The metadata that names the rules that do not hold, with commas between them."""

NEXT = "next"
"""The metadata that says what to do about them."""
_SEE = "The check `rules` of each table shows the rows of each day, and says what to do"


def rules_spec(
    asset: dg.AssetKey, checks: Sequence[Check], *, blocks: bool = True
) -> dg.AssetCheckSpec:
    """The check of all rules of a table.

    It is no blocking check of Dagster's, as most rules block nothing: a step that publishes nothing
    fails itself.

    Args:
        asset: The table's asset.
        checks: The rules, at least one.
        blocks: Whether rules may keep a run from publishing.
    """
    rules = table(
        ("rule", "what must hold", "if not"),
        (
            (code(check.name), plain(check.description), _effect(check, blocks=blocks))
            for check in checks
        ),
    )
    return dg.AssetCheckSpec(
        RULES,
        asset=asset,
        description=rules,
    )


def rules_evaluations(
    asset: dg.AssetKey, results: Sequence[CheckResult], days: Sequence[date], next_step: NextStep
) -> Iterator[dg.AssetCheckEvaluation]:
    """The evaluations of a table's rules, one for each day.

    A rule fails on the days of its failing rows; a rule whose failing rows have no day fails on
    all of them.

    Args:
        asset: The table's asset.
        results: What the rules found.
        days: The days.
        next_step: What to do about a day on which a rule fails.
    """
    for day in days:
        failed = [found for found in results if _failing(found, day)]
        names = ", ".join(found.check.name for found in failed)
        metadata: dict[str, dg.MetadataValue] = {}
        if failed:
            metadata[FAILED_RULES] = dg.MetadataValue.text(names)
            metadata[NEXT] = dg.MetadataValue.text(next_step(day))
        metadata["rules"] = dg.MetadataValue.md(_rules_of(results, day))
        summary = f"{names} failed" if failed else f"all {len(results)} rules hold"
        is_error = any(not found.check.is_warning for found in failed)
        yield dg.AssetCheckEvaluation(
            asset_key=asset,
            check_name=RULES,
            passed=not failed,
            description=f"{day}: {summary}",
            metadata={**metadata, **day_numbers(results, day), **_failing_rows(failed)},
            severity=dg.AssetCheckSeverity.ERROR if is_error else dg.AssetCheckSeverity.WARN,
            partition=day.isoformat(),
        )


OfTable = tuple[str, CheckResult]
"""What a rule found, with the name of its table."""


def broken(results: Iterable[OfTable]) -> list[OfTable]:
    """The rules that do not hold; those that only warn are left out."""
    return [one for one in results if not one[1].passed and not one[1].check.is_warning]


def failure_of(rules: Iterable[OfTable], then: str = _SEE) -> dg.Failure:
    """The failure of a run in which rules do not hold: it names them, and has failing rows.

    Args:
        rules: The rules.
        then: What to do.
    """
    failed = list(rules)
    texts = []
    for name, found in failed:
        days = sorted(found.failing_by_arrival_unit)
        on = f" on {days_text(days)}" if days else ""
        rows = counted(found.failing_rows, "row")
        texts.append(f"{name}: {found.check.name} failed{on} ({rows}): {found.check.description}")
    metadata = _failing_rows([found for _, found in failed])
    return dg.Failure(f"{'; '.join(texts)}. {then}", metadata=metadata)


def _failing_rows(failed: Sequence[CheckResult]) -> dict[str, dg.MetadataValue]:
    """The number of failing rows of each rule that does not hold, and a sample of them."""
    numbers = {
        f"{found.check.name}_failing_rows": dg.MetadataValue.int(found.failing_rows)
        for found in failed
    }
    return numbers | {
        f"{found.check.name}_sample": dg.MetadataValue.table(
            [dg.TableRecord(row) for row in found.sample],
            dg.TableSchema([dg.TableColumn(name) for name in found.sample[0]]),
        )
        for found in failed
        if found.sample
    }


def _rules_of(results: Sequence[CheckResult], day: date) -> str:
    """The rules as a table in Markdown, those that fail first."""
    in_order = sorted(results, key=lambda found: not _failing(found, day))
    return table(
        ("rule", "result", "failing rows", "what must hold"),
        (
            (
                code(found.check.name),
                _outcome(found, day),
                f"{_failing(found, day):,}",
                plain(found.check.description),
            )
            for found in in_order
        ),
    )


def _outcome(found: CheckResult, day: date) -> str:
    if not _failing(found, day):
        return "⚪ not judged" if day in found.excused else "🟢 holds"
    return "🟡 **warning**" if found.check.is_warning else "🔴 **fails**"


def _failing(found: CheckResult, day: date) -> int:
    """The number of failing rows of a day; all of them if the rows have no day."""
    if not found.failing_by_arrival_unit:
        return found.failing_rows
    return found.failing_by_arrival_unit.get(day, 0)


def day_numbers(results: Sequence[CheckResult], day: date) -> dict[str, dg.MetadataValue]:
    """The numbers that the rules of a day compare, such as its ingested and counted records."""
    return dict(
        _number(name, number)
        for found in results
        for name, number in found.numbers.get(day, {}).items()
    )


def _number(name: str, number: int) -> tuple[str, dg.MetadataValue]:
    """A number as metadata; a column `_NAME_ms` is the instant NAME."""
    if name.startswith("_") and name.endswith("_ms"):
        instant = name.removeprefix("_").removesuffix("_ms")
        return instant, dg.MetadataValue.timestamp(number / 1_000)
    return name, dg.MetadataValue.int(number)


def _effect(check: Check, *, blocks: bool) -> str:
    if check.is_warning:
        return "a warning"
    return "nothing is published" if check.blocking and blocks else "an error"
