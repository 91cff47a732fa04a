"""Makes a pipeline from a sample in steps; the user may override what a step finds."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Self

from windows_pipeline.config.source import EVENT_TIME, LINES, ROLE_TYPES, Source
from windows_pipeline.settings import Settings
from windows_pipeline.starter.arrival_order import ArrivedRecords, ordered_sample
from windows_pipeline.starter.files import find_files
from windows_pipeline.starter.landing import land, require_free
from windows_pipeline.starter.pipeline_file import (
    pipeline_text,
    refused_columns,
    require_known_zone,
    require_new_name,
)
from windows_pipeline.starter.proposal import Proposal, propose
from windows_pipeline.starter.roles import (
    Choice,
    as_times,
    guess_arrival,
    guess_event_time,
    guess_key,
    guess_value,
)
from windows_pipeline.starter.sample import Verdict, read_sample
from windows_pipeline.starter.types import (
    SHARE_THAT_FITS,
    SampleColumn,
    guess_type,
    with_common_signs,
)
from windows_pipeline.text.instants import EPOCH_DAY
from windows_pipeline.text.locations import resolve
from windows_pipeline.text.problems import listed, nearest

Judge = Callable[[Source, Path, Sequence[date]], Verdict]
"""Reads some days of a folder as a run does."""
_OLD = timedelta(days=7)
"""A sample whose newest record is older than this is a sample of the past."""
_DAY_US = 86_400_000_000
_CHOSEN = "as you chose"
_WRONG_TYPE = "wrong_type: "


def column_of(reason: str | None) -> str | None:
    """The column whose type a value does not fit, by the reason of a rejection; None for others."""
    if reason is None or not reason.startswith(_WRONG_TYPE):
        return None
    return reason.removeprefix(_WRONG_TYPE).split(":")[0]


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
        days: The arrival days of the sample; after `accept`.
        folder: The folder of day folders, which `create` makes unless the sample has some.
        file: The pipeline's file, which `create` writes.
    """

    zone: str | None = None
    key: Choice
    event_time: Choice
    arrival: Choice
    arrived: ArrivedRecords
    proposal: Proposal
    days: tuple[date, ...]

    def __init__(self, name: str, root: Path, settings: Settings) -> None:
        """Reads the sample.

        Raises:
            FileNotFoundError: The sample does not exist.
            ValueError: The name is taken or not valid, or the sample cannot be read.
        """
        self._name = name
        self.file = require_new_name(name, settings.pipelines)
        self.files = find_files(root)
        self._path = self._free_path(settings.landing)
        self.folder = Path(resolve(self._path, settings.landing))
        self.sample = read_sample(self.files)
        self.columns = with_common_signs(
            {
                column: guess_type(column, texts, self.sample.natives.get(column))
                for column, texts in self.sample.columns.items()
            }
        )
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

    @property
    def missing_days(self) -> list[date]:
        """The days without a folder, from the first to the last that has one."""
        span = range(self.days[0].toordinal(), self.days[-1].toordinal())
        return [
            date.fromordinal(day) for day in sorted({*span} - {*map(date.toordinal, self.days)})
        ]

    def choose_zone(self, chosen: str) -> None:
        """Takes the zone of times that name no offset; UTC unless it is chosen.

        Raises:
            ValueError: There is no such zone.
        """
        require_known_zone(chosen)
        self.zone = None if chosen == "UTC" else chosen
        for name in self.local_times:
            self.columns[name] = self.columns[name].as_type("timestamp", self.zone)

    def choose_event_time(self, chosen: str | None = None) -> None:
        """Takes the chosen column for the event time, or the likeliest one.

        Raises:
            ValueError: There is no such column, or it holds no times.
        """
        if chosen is None:
            self.event_time = guess_event_time(self.columns)
        else:
            self.event_time = Choice(self._known("--event-time", chosen), _CHOSEN)
        self._read_as_times("--event-time", self.event_time.name)

    def choose_arrival(self, chosen: str | None = None) -> None:
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

    def choose_key(self, chosen: str | None = None) -> None:
        """Takes the chosen key, or the likeliest one.

        Raises:
            ValueError: There is no such column, or it cannot be the key.
        """
        others = {name: column for name, column in self.columns.items() if name not in self._times}
        if chosen is None:
            self.key = guess_key(others)
        elif chosen in self._times:
            raise ValueError(
                f"--key {chosen}: must be another column than the event time and the arrival; name "
                "one whose values occur again and again"
            )
        else:
            self.key = Choice(self._known("--key", chosen), _CHOSEN)
            if self.columns[chosen].type not in ROLE_TYPES["key"]:
                # A number with a point, or true and false, is a key as text.
                self.columns[chosen] = self.columns[chosen].as_type("string")
        self._leave_out_refused()

    def choose_windows(self, size_ms: int | None = None, grace_ms: int | None = None) -> None:
        """Proposes windows, and keeps what the user has chosen."""
        name = guess_value(self._declared(), {*self._times, self.key.name})
        value = None if name is None else self.columns[name]
        key = self.columns[self.key.name]
        self.proposal = propose(self.arrived, key, value, size_ms, grace_ms)

    def accept(self, judge: Judge) -> tuple[Verdict, Verdict]:
        """Lands the sample, and has the reader of a run judge it.

        A type counts only if that reader accepts it: a column without a time's role becomes text if
        more than 1 % of the records are rejected for its type.

        Returns:
            What the reader says at last, and the rejections for which columns have become text.

        Raises:
            ValueError: The reader accepts no record.
        """
        folder = self._land()
        refused: Verdict = {}
        while True:
            verdict = judge(Source.model_validate(self._source()), folder, self.days)
            judged = sum(count for count, _ in verdict.values())
            texts = {
                column: reason
                for reason, (count, _) in verdict.items()
                if (column := column_of(reason)) is not None
                and column not in self._times
                and count > judged * (1 - SHARE_THAT_FITS)
            }
            if not texts:
                break
            for column, reason in texts.items():
                self.columns[column] = self.columns[column].as_type("string")
                refused[reason] = verdict[reason]
        if None not in verdict:
            reason, (_, example) = next(iter(verdict.items()))
            raise ValueError(
                f"--from {self.files.root}: a run must accept some record, but rejects all "
                f"{judged:,}, such as {example[:80]!r} ({reason}); name other columns, or write "
                "the records as docs/landed-files.md says"
            )
        return verdict, refused

    def create(self) -> None:
        """Writes the pipeline's file, and gives the landed sample its name.

        Raises:
            ValueError: The folder or the file exists.
        """
        text = pipeline_text(
            self._name,
            self._source(),
            self._declared(),
            self.left_out,
            (self.days[0], self.days[-1]),
            self.proposal,
            has_ended=self.days[-1] < datetime.now(UTC).date() - _OLD,
        )
        if self._landed is not None:
            self._landed = self._landed.rename(self.folder)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("x", encoding="utf-8") as file:
            file.write(text)
        self._landed = None

    def _land(self) -> Path:
        """Returns the folder of day folders, which is a hidden copy unless the sample has some."""
        if self.files.days:
            self.days = self.files.days
            return self.folder
        self.days = (self._day_of_latest(),)
        self._landed = land(self.files, self.folder, self.days[0])
        return self._landed

    def _day_of_latest(self) -> date:
        """The day of the sample's latest time that is not to come.

        Raises:
            ValueError: No time can be read.
        """
        column = self.columns[self._arrival_column]
        # A time after tomorrow is a mistake, for which a run rejects the record.
        end_us = ((datetime.now(UTC).date() - EPOCH_DAY).days + 2) * _DAY_US
        latest = self.sample.latest_us(column, end_us)
        if latest is None:
            raise ValueError(
                f"--from {self.files.root}: some record must have a time in {column.name!r} that "
                "is not to come, but none has; name another column with --event-time or --arrival"
            )
        return EPOCH_DAY + timedelta(days=latest // _DAY_US)

    @property
    def _arrival_column(self) -> str:
        """The column of times by which records arrive: with `lines` that of the event time."""
        by_column = self.arrival.name not in (LINES, EVENT_TIME)
        return self.arrival.name if by_column else self.event_time.name

    @property
    def _times(self) -> set[str]:
        return {self.event_time.name, self._arrival_column}

    @property
    def _roles(self) -> dict[str, str]:
        return {
            "key": self.key.name,
            "event_time": self.event_time.name,
            "arrival": self.arrival.name,
        }

    def _source(self) -> dict[str, Any]:
        """The source, as the pipeline's file declares it."""
        columns = {
            name: column.declared for name, column in self._declared().items() if column.has_values
        }
        form = {"delimiter": self.sample.delimiter} if self.files.format == "csv" else {}
        format_ = self.files.format
        return {"path": self._path, "format": format_, "columns": columns, **self._roles, **form}

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

    def _leave_out_refused(self) -> None:
        """Leaves out the columns that a pipeline cannot declare.

        Raises:
            ValueError: A column with a role cannot be declared.
        """
        self.left_out = dict.fromkeys(self.sample.repeated, "is twice in the header")
        while refused := refused_columns(
            self._source()
            | {"columns": {name: column.type for name, column in self._declared().items()}}
        ):
            self.left_out |= refused
        for role, name in self._roles.items():
            if name in self.left_out:
                option = f"--{role.replace('_', '-')}"
                raise ValueError(
                    f"{option}: {name!r} {self.left_out[name]}; rename the column in the files, or "
                    f"name another one: {option} COLUMN"
                )

    def _free_path(self, landing: str) -> str:
        """Returns the folder of day folders, as the pipeline's file writes it.

        Raises:
            ValueError: The settings' landing is not a local folder, or the folder to make exists.
        """
        if self.files.days:
            root, base = self.files.root.resolve(), Path(landing).resolve()
            return root.relative_to(base).as_posix() if root.is_relative_to(base) else str(root)
        if "://" in landing:
            raise ValueError(
                f"landing: {landing} in settings.yaml is no local folder, so no sample can be "
                "copied there; run this with settings whose landing is local"
            )
        path = f"data/{self._name}"
        require_free(Path(resolve(path, landing)), Path(landing))
        return path
