"""Which evaluations of days Dagster stores, and the summary of each check after them.

A day that fails or warns is stored, and its pass once it is mended; a day that passes as before is
not. The summary has no partition, and fails while any day stands failed. Dagster takes the
evaluation that is stored last for the state of the check, so the check's page, the list of checks
and the graph agree.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import dagster as dg

from windows_pipeline.compat.check_targets import standing_failed
from windows_pipeline.text.counts import counted

DAYS_FAILED, FAILED_DAYS = "days_failed", "failed_days"
"""The metadata of a summary: the number of days that stand failed, and the newest of these."""
_SHOWN = 20
"""The most failed days that a summary lists."""
_WARN = dg.AssetCheckSeverity.WARN

Evaluations = list[dg.AssetCheckEvaluation]


def days_and_summaries(
    instance: dg.DagsterInstance,
    found: Mapping[dg.AssetCheckKey, Mapping[str, dg.AssetCheckEvaluation]],
    planned: Collection[dg.AssetCheckKey],
) -> tuple[Evaluations, Evaluations]:
    """The evaluations to store of days, and the summary of each check.

    Args:
        instance: The instance, which has the evaluations of earlier runs.
        found: The evaluations of the run's days, by check and day.
        planned: The checks for which Dagster waits for an evaluation of each day.
    """
    of_days, summaries = [], []
    for check, stood in standing_failed(instance, found).items():
        days = found[check]
        of_days += [
            one for day, one in days.items() if not one.passed or day in stood or check in planned
        ]
        stands = {day: one for day, one in stood.items() if day not in days}
        stands |= {day: one for day, one in days.items() if not one.passed}
        summaries.append(_summary(check, stands, days[max(days)]))
    return of_days, summaries


def _summary(
    check: dg.AssetCheckKey,
    stands: Mapping[str, dg.AssetCheckEvaluation | None],
    newest: dg.AssetCheckEvaluation,
) -> dg.AssetCheckEvaluation:
    """The state of a check over all days; it has what its newest failed day shows.

    Args:
        check: The check.
        stands: The days that stand failed, with their evaluations as far as they were read; else
            with a summary or None.
        newest: The newest day of the run, which the summary shows if no day stands failed.
    """
    days = sorted(stands, reverse=True)
    known = [one for day in days if (one := stands[day]) is not None]
    shown = next((one for one in known if one.partition is not None), newest)
    is_warning = known and all(one.severity == _WARN for one in known)
    severity = _WARN if is_warning or not days else dg.AssetCheckSeverity.ERROR
    metadata: dict[str, dg.MetadataValue] = {DAYS_FAILED: dg.MetadataValue.int(len(days))}
    description = f"no day stands failed; {newest.description}"
    if days:
        stand = f"{counted(len(days), 'day')} {'stands' if len(days) == 1 else 'stand'}"
        state = "with a warning" if severity == _WARN else "failed"
        description = f"{stand} {state}; {shown.description}"
        rows = [dg.TableRecord({"day": day, "found": _said(stands[day])}) for day in days[:_SHOWN]]
        schema = dg.TableSchema([dg.TableColumn("day"), dg.TableColumn("found")])
        metadata[FAILED_DAYS] = dg.MetadataValue.table(rows, schema)
    # Dagster plots numbers over the evaluations, so those of a day stand with the day alone.
    texts = (
        (name, value)
        for name, value in shown.metadata.items()
        if not isinstance(value, dg.IntMetadataValue | dg.TimestampMetadataValue)
    )
    return dg.AssetCheckEvaluation(
        asset_key=check.asset_key,
        check_name=check.name,
        passed=not days,
        description=description,
        metadata={**metadata, **dict(texts)},
        severity=severity,
        # A day's own evaluation blocks its run; this one would block the runs of other days.
        blocking=False,
    )


def _said(one: dg.AssetCheckEvaluation | None) -> str:
    return "" if one is None or one.partition is None else str(one.description).partition(": ")[2]
