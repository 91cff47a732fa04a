"""What a table of every pipeline is: its rows, columns, key, files, and the step that fills it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from windows_pipeline.config import Pipeline, Source, Windows
from windows_pipeline.config.definition import Part, table_definition
from windows_pipeline.steps import Step
from windows_pipeline.storage.catalog.columns import Columns

KEY = "key"
"""The key's column; readers skip files by the parts of a struct."""


@dataclass(frozen=True)
class TableOwner:
    """What a table is of: a window definition of a pipeline, or the pipeline's source.

    Attributes:
        pipeline: The pipeline.
        windows_name: The definition's name; None for the source.
    """

    pipeline: Pipeline
    windows_name: str | None = None

    @property
    def name(self) -> str:
        """The folder of its tables: `flights/hourly`."""
        name = self.pipeline.name
        return name if self.windows_name is None else f"{name}/{self.windows_name}"

    @property
    def windows(self) -> Windows:
        """The definition."""
        return self.pipeline.windows[self.windows_name or ""]

    @cached_property
    def source(self) -> Source:
        """The source, with the key of the definition."""
        source = self.pipeline.source
        return source if self.windows_name is None else self.windows.keyed(source)


@dataclass(frozen=True)
class TableSpec:
    """What a table of a pipeline is.

    Attributes:
        name: Its name for people: `flights/hourly/final_windows`.
        description: What a row is.
        location: Its folder or URI.
        columns: Its columns; `arrival_unit` is among them.
        sorted_by: The columns that sort the rows of a file, unless a micro-batch appended the
            file. Files have statistics of these columns only, so that readers skip files by them.
        definition: The part of the pipeline's definition that its rows follow.
        key: The columns that identify a row; none where rows may be equal.
        is_written: Whether the pipeline writes it, as it is declared now.
        partitioned: Whether each arrival unit has files of its own, so that runs of different
            arrival units do not conflict. The arrival units of a small table, which is read whole,
            share files.
        change_feed: Whether Delta keeps a change data feed of it.
        has_whole_days: Whether a micro-batch writes all rows that its arrival units have so far,
            which replace those of earlier micro-batches.
    """

    name: str
    description: str
    location: str
    columns: Columns
    sorted_by: tuple[str, ...]
    definition: dict[str, str]
    key: tuple[str, ...] = ()
    is_written: bool = True
    partitioned: bool = True
    change_feed: bool = False
    has_whole_days: bool = False

    @property
    def short_name(self) -> str:
        """Its name within its pipeline or definition: `final_windows`."""
        return self.name.rpartition("/")[2]

    @property
    def what_fills(self) -> str:
        """The commands that fill the table, of which the pipeline has one."""
        pipeline = self.name.partition("/")[0]
        return (
            f"windows-pipeline run {pipeline}, or of a stream: windows-pipeline stream {pipeline}"
        )


def _nothing(_: TableOwner) -> tuple[str, ...]:
    return ()


def _always(_: TableOwner) -> bool:
    return True


@dataclass(frozen=True)
class TableKind:
    """A table that every pipeline or definition has, or may have.

    Attributes:
        name: Its name. It begins with an underscore where the table is no result, but says what
            is ingested or computed.
        step: The step that fills it; None for a table that is no result.
        description: What a row is.
        columns: Its columns.
        key: The columns that identify a row; none where rows may be equal.
        follows: The parts of a definition that only some tables follow, this one among them.
        sorted_by: The columns that sort the rows of a file; `KEY` for the key.
        is_written: Whether a pipeline writes it, as it is declared now.
        partitioned: See `TableSpec`, as for the others.
        change_feed: See there.
        has_whole_days: See there.
    """

    name: str
    step: Step | None
    description: str
    columns: Callable[[TableOwner], Columns]
    key: Callable[[TableOwner], tuple[str, ...]] = _nothing
    follows: tuple[Part, ...] = ()
    sorted_by: tuple[str, ...] = ()
    is_written: Callable[[TableOwner], bool] = _always
    partitioned: bool = True
    change_feed: bool = False
    has_whole_days: bool = False

    @property
    def is_always_written(self) -> bool:
        """Whether it is a result that every pipeline or definition writes."""
        return self.step is not None and self.is_written is _always

    def of(self, owner: TableOwner, warehouse: str) -> TableSpec:
        """The table of a definition or a source, below a warehouse."""
        name = f"{owner.name}/{self.name}"
        definition = {}
        if self.step is not None:
            definition = table_definition(owner.pipeline, owner.windows_name, self.follows)
        return TableSpec(
            name,
            self.description,
            f"{warehouse}/{name}",
            self.columns(owner),
            tuple(
                part
                for column in self.sorted_by
                for part in (_parts_of_key(owner.source) if column == KEY else (column,))
            ),
            definition,
            self.key(owner),
            self.is_written(owner),
            partitioned=self.partitioned,
            change_feed=self.change_feed,
            has_whole_days=self.has_whole_days,
        )


def _parts_of_key(source: Source) -> tuple[str, ...]:
    if isinstance(source.key, str):
        return ("key",)
    return tuple(f"key.{name}" for name in source.key)
