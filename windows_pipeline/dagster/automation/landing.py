"""The sensor that runs landed days once they are complete."""

# No deferred annotations here: Dagster reads the annotations of the functions that it calls.

import time
from collections.abc import Collection, Mapping
from datetime import date
from hashlib import sha256
from typing import NamedTuple

import dagster as dg
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from windows_pipeline.config import Pipeline
from windows_pipeline.dagster.automation.days_to_run import (
    LandedDays,
    landed_days_of,
    requested,
)
from windows_pipeline.dagster.automation.open_runs import at_work
from windows_pipeline.query.tables.changed_days import changed_since_ingested
from windows_pipeline.query.tables.local import UnreadableTableError
from windows_pipeline.settings import Settings
from windows_pipeline.sources.landing import FolderState
from windows_pipeline.windows.durations import duration_text

_LEAST_SECONDS = 60
"""The least time between two ticks."""
_MOST_DAYS = 31
"""The most new days whose folders a tick lists; also the most days of a run."""
_WATCHED_DAYS = 7
"""The number of newest published days whose folders a tick lists, to see what changed."""


class Waiting(BaseModel):
    """An incomplete day: its folder's digest, and since when it is unchanged, in s since 1970."""

    model_config = ConfigDict(frozen=True)

    digest: str
    since: float


class Cursor(BaseModel):
    """The state that a tick passes to the next one, by day.

    Attributes:
        waiting: The days that are not published.
        requested: The digests of the folders for which a run was requested, of days that are not
            published.
        unchanged: The digests of the folders of published days that had not changed since
            ingestion.
    """

    model_config = ConfigDict(frozen=True)

    waiting: dict[date, Waiting] = Field(default_factory=dict)
    requested: dict[date, str] = Field(default_factory=dict)
    unchanged: dict[date, str] = Field(default_factory=dict)


class Found(NamedTuple):
    """The result of a tick for new days.

    Attributes:
        days: The days to run, without a gap; none if there is nothing to run.
        reasons: Why other days are not run, in sentences.
        cursor: The next tick's cursor, without `unchanged`.
    """

    days: list[date]
    reasons: list[str]
    cursor: Cursor


def landing_sensor(pipeline: Pipeline, settings: Settings) -> dg.SensorDefinition:
    """The sensor of a pipeline whose days are ingested whole.

    A tick requests the job that materializes every asset, for the days that are complete: their
    folder has a file `_SUCCESS`, or nothing changed in it for the time that the pipeline's file
    names. Days before them must be published or complete, too, because a missing day blocks all
    later days. While a run of the job is open, or a command writes the pipeline's tables,
    the tick does nothing.

    A published day is not run again. If its files changed since, the tick says so.
    """
    declared = pipeline.schedule.on_landing
    enabled = dg.DefaultSensorStatus.RUNNING, dg.DefaultSensorStatus.STOPPED
    job = f"{pipeline.name}_all"

    @dg.sensor(
        name=f"{pipeline.name}_landing",
        job_name=job,
        minimum_interval_seconds=_LEAST_SECONDS,
        default_status=enabled[0 if declared.enabled else 1],
        description=f"Computes landed days of {pipeline.name} once they are complete. Switch on "
        f"this sensor, or the schedule {pipeline.name}_daily to compute them at one time of day.",
    )
    def complete_days(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        busy = at_work(context.instance, pipeline, settings, job)
        if busy is not None:
            return dg.SkipReason(busy)
        try:
            return _tick(context, pipeline, settings)
        except FileNotFoundError as error:
            return dg.SkipReason(str(error))

    return complete_days


def _tick(
    context: dg.SensorEvaluationContext, pipeline: Pipeline, settings: Settings
) -> dg.SensorResult | dg.SkipReason:
    landed = landed_days_of(context.instance, pipeline, settings, _MOST_DAYS)
    if landed.ingesting:
        return dg.SkipReason(f"a run of {landed.ingesting[0]} is not finished")
    cursor = _read(context)
    states = landed.folder.states(landed.unpublished)
    found = complete(landed, states, cursor, pipeline.schedule.on_landing.quiet, time.time())
    changed, unchanged = _changes(pipeline, landed, cursor)
    for sentence in changed:
        context.log.warning(sentence)
    following = found.cursor.model_copy(update={"unchanged": unchanged})
    text = following.model_dump_json(exclude_defaults=True)
    if found.days:
        return dg.SensorResult([requested(found.days, _digest(found.days, states))], cursor=text)
    reasons = [*found.reasons, *changed] or ["every landed day is published"]
    return dg.SensorResult(skip_reason="; ".join(reasons), cursor=text)


def complete(
    landed: LandedDays,
    states: Mapping[date, FolderState],
    before: Cursor,
    quiet_ms: int | None,
    now: float,
) -> Found:
    """Decides which days to run.

    Args:
        landed: The landed days.
        states: The folders' states, for the days that are not published.
        before: The state that the previous tick passed on.
        quiet_ms: How long a folder must be unchanged to be complete; None if only `_SUCCESS`
            counts.
        now: The time of the tick, in s since 1970.
    """
    waiting = {
        day: Waiting(digest=state.digest, since=now)
        if day not in before.waiting or before.waiting[day].digest != state.digest
        else before.waiting[day]
        for day, state in states.items()
    }
    days: list[date] = []
    incomplete = None
    for day in landed.to_run:
        if day in states and not states[day].is_marked:
            unchanged_ms = (now - waiting[day].since) * 1000
            if quiet_ms is None or unchanged_ms < quiet_ms:
                incomplete = day
                break
        days.append(day)
    reasons = []
    if incomplete is not None:
        reasons.append(f"{incomplete} is not complete: {_lacks(quiet_ms)}")
    if landed.missing is not None:
        reasons.append(landed.gap)
    asked = {day: digest for day, digest in before.requested.items() if day in states}
    candidates = [day for day in days if day in states]
    again = [day for day in candidates if asked.get(day) == states[day].digest]
    if candidates and len(again) == len(candidates):
        reasons.insert(
            0,
            f"{again[0]} was run, is not published, and its files are as they were; see why its "
            "run ended, and re-execute the run. A changed file or another complete day starts "
            "a new run",
        )
        days = []
    elif not candidates:
        days = []
    else:
        asked |= {day: states[day].digest for day in candidates}
    return Found(days, reasons, Cursor(waiting=waiting, requested=asked))


def _lacks(quiet_ms: int | None) -> str:
    if quiet_ms is None:
        return "its folder has no file _SUCCESS"
    return (
        f"its folder has no file _SUCCESS, and must not change for {duration_text(quiet_ms)} "
        "from one tick to another"
    )


def _changes(
    pipeline: Pipeline, landed: LandedDays, cursor: Cursor
) -> tuple[list[str], dict[date, str]]:
    """Sentences on published days that changed, and the digests of days that did not."""
    watched = sorted(landed.published.intersection(landed.days))[-_WATCHED_DAYS:]
    digests = {day: state.digest for day, state in landed.folder.states(watched).items()}
    other = [day for day, digest in digests.items() if cursor.unchanged.get(day) != digest]
    if not other:
        return [], digests
    try:
        found = changed_since_ingested(landed.tables, landed.folder, other)
    except UnreadableTableError:  # so it is unknown which files were ingested
        return [], {}
    firsts = {file.day: file for file in reversed(found)}
    texts = [
        f"{day} changed after it was published ({file.name} {file.change}) and is not run again. "
        f"To ingest it again: windows-pipeline run {pipeline.name} --from {day} --to {day}. Where "
        f"that would change final windows: windows-pipeline correct {pipeline.name} --from {day} "
        "--cause TEXT"
        for day, file in sorted(firsts.items())
    ]
    return texts, {day: digest for day, digest in digests.items() if day not in firsts}


def _read(context: dg.SensorEvaluationContext) -> Cursor:
    if not context.cursor:
        return Cursor()
    try:
        return Cursor.model_validate_json(context.cursor)
    except ValidationError:
        context.log.warning("the cursor must be one of this sensor, but is not; it begins again")
        return Cursor()


def _digest(days: Collection[date], states: Mapping[date, FolderState]) -> str:
    """A digest of the contents of the days' folders."""
    digests = "".join(states[day].digest for day in sorted(days) if day in states)
    return sha256(digests.encode()).hexdigest()[:16]
