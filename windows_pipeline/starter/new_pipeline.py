"""Makes a pipeline from a sample in steps; the user may override what a step finds."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Self

from windows_pipeline.config.source import Source
from windows_pipeline.settings import Settings
from windows_pipeline.starter.arrival_order import ArrivedRecords, ordered_sample
from windows_pipeline.starter.files import find_files
from windows_pipeline.starter.instants import DAY_US
from windows_pipeline.starter.landing import fill_gaps, land, require_free
from windows_pipeline.starter.pipeline_file import (
    Draft,
    pipeline_text,
    refused_columns,
    require_known_zone,
    require_new_name,
)
from windows_pipeline.starter.proposal import Kind, Proposal, keyed_times, propose
from windows_pipeline.starter.roles import (
    EVENT_TIME,
    LINES,
    Choice,
    as_times,
    guess_arrival,
    guess_event_time,
    guess_key,
    guess_value,
)
from windows_pipeline.starter.sample import read_sample
from windows_pipeline.starter.types import SHARE_THAT_FITS, SampleColumn, guess_columns
from windows_pipeline.starter.verdict import Rejection, Verdict
from windows_pipeline.text.instants import EPOCH_DAY
from windows_pipeline.text.locations import resolve
from windows_pipeline.text.problems import listed, nearest

Judge = Callable[[Source, Path, Sequence[date]], Verdict]
"""Reads some days of a folder as a run does."""
_OLD = timedelta(days=7)
"""A sample whose newest record is older than this is a sample of the past."""
_CHOSEN = "as you chose"


@dataclass(frozen=True, slots=True)
class Created:
    """The files that were written.

    Attributes:
        file: The pipeline's file.
        folder: The folder of day folders.
        days: The days with a folder.
        empty: The days whose folders are new and empty.
        was_copied: Whether the day folders are a copy of the sample.
    """

    file: Path
    folder: Path
    days: tuple[date, ...]
    empty: tuple[date, ...]
    was_copied: bool


class NewPipeline:
    """Builds a pipeline from a sample, step by step, in the order of the methods.

    As a context manager it removes what it has landed, unless the pipeline is created.

    Attributes:
        files: The files of the sample.
        sample: Their records, or a share of them.
        columns: The columns of the sample, with the types to declare.
        zone: The zone of times that name no offset; None for UTC.
        left_out: Columns that a pipeline cannot declare, with the reason; after `choose_key`.
        key: The key.
        event_time: The event time.
        arrival: The arrival.
        arrived: The records in the order of arrival; after `choose_arrival`.
        proposal: The windows; after `choose_windows`.
    """

    zone: str | None = None
    key: Choice
    event_time: Choice
    arrival: Choice
    arrived: ArrivedRecords
    proposal: Proposal

    def __init__(self, name: str, root: Path, settings: Settings) -> None:
        """Reads the sample.

        Raises:
            FileNotFoundError: The sample does not exist.
            ValueError: The name is taken or not valid, or the sample cannot be read.
        """
        self._name = name
        self._settings = settings
        self._file = require_new_name(name, settings.pipelines)
        self.files = find_files(root)
        self._require_free_paths()
        self.sample = read_sample(self.files)
        self.columns = dict(guess_columns(self.sample.columns, self.sample.natives))
        self.left_out: dict[str, str] = {}
        self._landed: Path | None = None

    def __enter__(self) -> Self:
        """Begins."""
        return self

    def __exit__(self, *_: object) -> None:
        """Removes a copy of the sample for which there is no pipeline."""
        if self._landed is not None:
            shutil.rmtree(self._landed, ignore_errors=True)

    @property
    def local_times(self) -> list[str]:
        """The columns whose times name no offset."""
        return [name for name, column in self.columns.items() if column.is_local]

    def choose_zone(self, chosen: str) -> None:
        """Takes the zone of times that name no offset; UTC unless it is chosen.

        Raises:
            ValueError: There is no such zone.
        """
        require_known_zone(chosen)
        self.zone = None if chosen == "UTC" else chosen
        for name in self.local_times:
            self.columns[name] = self.columns[name].as_type("timestamp", self.zone)

    def choose_event_time(self, chosen: str | None = None) -> Choice:
        """Takes the chosen column for the event time, or the likeliest one.

        Raises:
            ValueError: There is no such column, or it holds no times.
        """
        if chosen is None:
            self.event_time = guess_event_time(self.columns)
        else:
            self.event_time = Choice(self._known("--event-time", chosen), _CHOSEN)
        self._read_as_times("--event-time", self.event_time.name)
        return self.event_time

    def choose_arrival(self, chosen: str | None = None) -> Choice:
        """Takes the chosen arrival, or the likeliest one: a column, `lines` or `event_time`.

        Raises:
            ValueError: There is no such column, or it holds no times.
        """
        event_time = self.event_time.name
        if chosen is None:
            self.arrival = guess_arrival(self.columns, event_time)
        elif chosen in (LINES, EVENT_TIME) and chosen not in self.columns:
            self.arrival = Choice(chosen, _CHOSEN)
        elif chosen == event_time:
            self.arrival = Choice(EVENT_TIME, _CHOSEN)
        else:
            self.arrival = Choice(self._known("--arrival", chosen), _CHOSEN)
            self._read_as_times("--arrival", chosen)
        column = None if self.arrival.name == LINES else self.columns[self._arrival_column]
        self.arrived = ordered_sample(self.sample, self.columns[event_time], column)
        return self.arrival

    def choose_key(self, chosen: str | None = None) -> Choice:
        """Takes the chosen key, or the likeliest one.

        Raises:
            ValueError: There is no such column, or it cannot be the key.
        """
        others = {name: column for name, column in self.columns.items() if name not in self._times}
        if chosen is None:
            self.key = guess_key(others)
        else:
            self.key = Choice(self._known("--key", chosen), _CHOSEN)
            kind = self.columns[chosen].type
            if kind not in ("string", "bigint", "date", "timestamp") or chosen in self._times:
                # A number with a point, or true and false, is a key as text.
                if chosen in self._times:
                    raise ValueError(
                        f"--key {chosen}: must be another column than the event time and the "
                        "arrival; name one whose values occur again and again"
                    )
                self.columns[chosen] = self._as_text(chosen)
        self._leave_out_refused()
        return self.key

    def choose_windows(
        self, kind: Kind = "sliding", size_ms: int | None = None, grace_ms: int | None = None
    ) -> Proposal:
        """Proposes windows, and keeps what the user has chosen."""
        name = guess_value(self._declared(), {*self._times, self.key.name})
        value = None if name is None else self.columns[name]
        times = keyed_times(self.arrived, self.columns[self.key.name], value)
        self.proposal = propose(
            times,
            value,
            self.arrived.lateness_ms,
            kind=kind,
            size_ms=size_ms,
            chosen_grace_ms=grace_ms,
        )
        return self.proposal

    def accept(self, judge: Judge) -> tuple[Verdict, list[Rejection]]:
        """Lands the sample, and has the reader of a run judge it.

        A type counts only if that reader accepts it: a column without a time's role becomes text if
        more than 1 % of the records are rejected for its type.

        Returns:
            What the reader says at last, and the rejections for which columns have become text.

        Raises:
            ValueError: The reader accepts no record.
        """
        folder, days = self._land(), self.files.days or (self._day,)
        refused: list[Rejection] = []
        while True:
            verdict = judge(self._source(), folder, days)
            few = verdict.judged * (1 - SHARE_THAT_FITS)
            wrong = {each.column: each for each in verdict.rejections if each.count > few}
            texts = [name for name in self.columns if name in wrong and name not in self._times]
            if not texts:
                break
            self.columns |= {name: self._as_text(name) for name in texts}
            refused += [wrong[name] for name in texts]
        if not verdict.accepted:
            first = verdict.rejections[0]
            raise ValueError(
                f"--from {self.files.root}: a run must accept some record, but rejects all "
                f"{verdict.judged:,}, such as {first.example[:80]!r} ({first.reason}); name other "
                "columns, or write the records as docs/landed-files.md says"
            )
        return verdict, refused

    def create(self) -> Created:
        """Writes the pipeline's file, and gives the landed sample its name.

        Raises:
            ValueError: The folder or the file exists, or a record's day cannot be found.
        """
        path = self._path_of_days() or self._new_path
        folder = self._land()
        days, empty = fill_gaps(folder)
        text = pipeline_text(self._draft(path, days))
        was_copied = self._landed is not None
        if self._landed is not None:
            folder = self._landed = self._landed.rename(self._target)
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("x", encoding="utf-8") as file:
            file.write(text)
        self._landed = None
        return Created(self._file, folder, days, empty, was_copied)

    def _land(self) -> Path:
        """Returns the folder of day folders, which is a hidden copy unless the sample lies well."""
        if self._path_of_days() is not None:
            return self.files.root
        if self._landed is None:
            self._landed = land(self.files, self._target, self._day)
        return self._landed

    @property
    def _new_path(self) -> str:
        return f"data/{self._name}"

    @property
    def _target(self) -> Path:
        return Path(resolve(self._new_path, self._settings.landing))

    @property
    def _day(self) -> date:
        """The arrival day of the sample: that of its latest time, which is not to come.

        Raises:
            ValueError: No time can be read.
        """
        if self.files.days:
            return self.files.days[-1]
        column = self.columns[self._arrival_column]
        # A time after tomorrow is a mistake, for which a run rejects the record.
        end_us = ((datetime.now(UTC).date() - EPOCH_DAY).days + 2) * DAY_US
        latest = self.sample.latest_us(column.name, column.type, column.zone, end_us)
        if latest is None:
            raise ValueError(
                f"--from {self.files.root}: some record must have a time in {column.name!r} that "
                "is not to come, but none has; name another column with --event-time or --arrival"
            )
        return EPOCH_DAY + timedelta(days=latest // DAY_US)

    @property
    def _arrival_column(self) -> str:
        """The column of times by which records arrive: with `lines` that of the event time."""
        by_column = self.arrival.name not in (LINES, EVENT_TIME)
        return self.arrival.name if by_column else self.event_time.name

    def _source(self) -> Source:
        """The source, as the pipeline's file will declare it."""
        columns = {
            name: {"type": column.type} | ({"zone": column.zone} if column.zone else {})
            for name, column in self._declared().items()
            if column.has_values
        }
        roles = {"key": self.key.name, "event_time": self.event_time.name}
        form = {"delimiter": self.sample.delimiter} if self.files.format == "csv" else {}
        return Source.model_validate(
            {
                "path": str(self._target),
                "format": self.files.format,
                "columns": columns,
                "arrival": self.arrival.name,
                **roles,
                **form,
            }
        )

    @property
    def _times(self) -> set[str]:
        return {self.event_time.name, self._arrival_column}

    def _declared(self) -> dict[str, SampleColumn]:
        return {name: found for name, found in self.columns.items() if name not in self.left_out}

    def _known(self, option: str, name: str) -> str:
        if name not in self.columns:
            fix = nearest(name, self.columns, f"use one of {listed(self.columns)}")
            raise ValueError(f"{option}: {name!r} is not a column of the sample; {fix}")
        return name

    def _read_as_times(self, option: str, name: str) -> None:
        """Gives a column with a time's role a type that has times of day."""
        column = self.columns[name]
        if column.type == "date":
            self.columns[name] = column.as_type("timestamp", self.zone)
        elif column.times is None:
            self.columns[name] = as_times(option, column, self.zone)

    def _as_text(self, name: str) -> SampleColumn:
        column = self.columns[name]
        return replace(column, type="string", times=None, unfit=0)

    def _leave_out_refused(self) -> None:
        """Leaves out the columns that a pipeline cannot declare.

        Raises:
            ValueError: A column with a role cannot be declared.
        """
        roles = {"key": self.key.name, "event_time": self.event_time.name}
        roles["arrival"] = self.arrival.name
        self.left_out = dict.fromkeys(self.sample.repeated, "is twice in the header")
        while refused := refused_columns(
            {name: column.type for name, column in self._declared().items()}, roles
        ):
            self.left_out |= refused
        for role, name in roles.items():
            if name in self.left_out:
                option = f"--{role.replace('_', '-')}"
                raise ValueError(
                    f"{option}: {name!r} {self.left_out[name]}; rename the column in the files, or "
                    f"name another one: {option} COLUMN"
                )

    def _require_free_paths(self) -> None:
        """Requires that the sample can be landed, before anybody answers questions.

        Raises:
            ValueError: The settings' landing is not a local folder, or the folder to make exists.
        """
        landing = self._settings.landing
        if "://" in landing:
            raise ValueError(
                f"landing: {landing} in settings.yaml is no local folder, so no sample can be "
                "copied there; run this with settings whose landing is local"
            )
        if self._path_of_days() is None:
            require_free(self._target, Path(landing))

    def _path_of_days(self) -> str | None:
        """Returns the path of day folders that lie below the landing already; None otherwise."""
        landing = Path(self._settings.landing).resolve()
        root = self.files.root.resolve()
        if not self.files.days or not root.is_relative_to(landing):
            return None
        return root.relative_to(landing).as_posix()

    def _draft(self, path: str, days: tuple[date, ...]) -> Draft:
        last = days[-1]
        is_old = last < datetime.now(UTC).date() - _OLD
        return Draft(
            name=self._name,
            path=path,
            format=self.files.format,
            delimiter=self.sample.delimiter,
            columns=self._declared(),
            left_out=self.left_out,
            key=self.key.name,
            event_time=self.event_time.name,
            arrival=self.arrival.name,
            start=days[0],
            end=last if is_old else None,
            last=last,
            proposal=self.proposal,
        )
