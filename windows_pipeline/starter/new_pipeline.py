"""Makes a pipeline from a sample in steps; the user may override what a step finds."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from windows_pipeline.settings import Settings
from windows_pipeline.starter.arrival_order import ArrivedRecords, ordered_sample
from windows_pipeline.starter.day_folders import ArrivalDay, CopiedDays, copy_by_day, fill_gaps
from windows_pipeline.starter.files import find_files
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
from windows_pipeline.starter.sample import Share, read_sample
from windows_pipeline.starter.types import SampleColumn, guess_columns
from windows_pipeline.text.locations import resolve
from windows_pipeline.text.problems import listed, nearest

_OLD = timedelta(days=7)
"""A sample whose newest record is older than this is a sample of the past."""
_CHOSEN = "as you chose"


@dataclass(frozen=True, slots=True)
class Created:
    """The files that were written.

    Attributes:
        file: The pipeline's file.
        landed: The day folders.
        was_copied: Whether the day folders are a copy of the sample.
    """

    file: Path
    landed: CopiedDays
    was_copied: bool


class NewPipeline:
    """Builds a pipeline from a sample, step by step, in the order of the methods.

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

    def __init__(
        self, name: str, root: Path, settings: Settings, share: Share | None = None
    ) -> None:
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
        self.sample = read_sample(self.files, share)
        self.columns = dict(guess_columns(self.sample.columns, self.sample.natives))
        self.left_out: dict[str, str] = {}

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
        column = self.columns.get(self.arrival.name) if self.arrival.name != EVENT_TIME else None
        self.arrived = ordered_sample(
            self.sample,
            self.columns[event_time],
            self.arrival.name,
            column,
            has_days=bool(self.files.days),
        )
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

    def create(self) -> Created:
        """Lands the sample in day folders, and writes the pipeline's file.

        Raises:
            ValueError: The folder or the file exists, or a record's day cannot be found.
        """
        path = self._path_of_days()
        if path is not None:
            landed = CopiedDays(self.files.root, *fill_gaps(self.files.root))
            self._write(path, landed)
            return Created(self._file, landed, was_copied=False)
        path = f"data/{self._name}"
        landing = Path(self._settings.landing)
        target = Path(resolve(path, self._settings.landing))
        landed = copy_by_day(self.files, target, landing, self._day_column())
        try:
            self._write(path, landed)
        except BaseException:
            shutil.rmtree(landed.folder)
            raise
        return Created(self._file, landed, was_copied=True)

    def _write(self, path: str, landed: CopiedDays) -> None:
        text = pipeline_text(self._draft(path, landed.days))
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("x", encoding="utf-8") as file:
            file.write(text)

    @property
    def _times(self) -> set[str]:
        names = {self.event_time.name}
        return names if self.arrival.name in (LINES, EVENT_TIME) else names | {self.arrival.name}

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
        return SampleColumn(name, "string", column.texts, column.example, column.nulls)

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
        target = Path(resolve(f"data/{self._name}", landing))
        if self._path_of_days() is None and target.exists():
            raise ValueError(
                f"{target}: the folder exists, and is not overwritten; use another name, move it, "
                "or if it holds day folders: --from with this folder"
            )

    def _path_of_days(self) -> str | None:
        """Returns the path of day folders that lie below the landing already; None otherwise."""
        landing = Path(self._settings.landing).resolve()
        root = self.files.root.resolve()
        if not self.files.days or not root.is_relative_to(landing):
            return None
        return root.relative_to(landing).as_posix()

    def _day_column(self) -> ArrivalDay:
        by_column = self.arrival.name not in (LINES, EVENT_TIME)
        name = self.arrival.name if by_column else self.event_time.name
        column = self.columns[name]
        return ArrivalDay(name, column.type, self.arrival.name == LINES, column.zone)

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
