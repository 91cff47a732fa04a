"""The folder of a source's landed files: a folder per arrival day, each listed once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from pyarrow import fs

from windows_pipeline.config import Source
from windows_pipeline.sources.bad_files import (
    BadFileError,
    changed_while_read,
    in_a_line,
    require_none,
)
from windows_pipeline.sources.file_checks import LandedFile, require_may_be_empty, require_name
from windows_pipeline.text.day_names import day_of
from windows_pipeline.text.locations import resolve

_CHUNK_BYTES = 1 << 20
_LISTING_THREADS = 16
"""An object store takes tens of milliseconds per listing, so folders are listed in parallel."""


@dataclass(frozen=True)
class _Root:
    filesystem: fs.FileSystem
    path: str
    """The path for Arrow's file system, without a scheme."""
    uri: str
    """The path for Spark."""


class _Entry(NamedTuple):
    """A file or folder of a listing.

    `is_text` says whether the name is UTF-8; if not, `base_name` has escapes for the other bytes.
    """

    base_name: str
    path: str
    type: fs.FileType
    size: int
    mtime_ns: int | None
    is_text: bool = True


class FileState(NamedTuple):
    """The state of a landed file.

    Attributes:
        day: The arrival day of the file's folder.
        name: The file's name.
        size_bytes: The file's size.
        written_ms: When the file was last written, in ms since 1970; None if that is not known.
        is_text: Whether the name is UTF-8; if not, `name` has escapes for the other bytes.
    """

    day: date
    name: str
    size_bytes: int
    written_ms: int | None
    is_text: bool = True

    def __str__(self) -> str:
        """The file's name in errors."""
        return in_a_line(f"{self.day}/{self.name}")


class FolderState(NamedTuple):
    """The state of a day's folder.

    Attributes:
        is_marked: Whether it has a file `_SUCCESS`, which says that the day is complete.
        digest: A text that changes with the name, size or time of writing of any entry of the
            folder, including entries that are not read.
    """

    is_marked: bool
    digest: str


class LandingFolder:
    """A folder of day folders `YYYY-MM-DD/`.

    Every folder is listed once, when it is asked for first, so that all who ask see the same
    files; `require_unchanged` lists days again. What lands later is in a `LandingFolder` that is
    made later.
    """

    def __init__(self, path: str) -> None:
        """Takes the folder.

        Args:
            path: A local path, or a URI such as ``s3://bucket/folder``.
        """
        self.path = path
        self._root = _root(path)
        self._listed: dict[date, Sequence[_Entry]] = {}

    @cached_property
    def days(self) -> list[date]:
        """The days that have a folder, in order; other names are ignored.

        Raises:
            FileNotFoundError: The folder does not exist.
        """
        return sorted(
            day
            for entry in self._entries
            if (day := day_of(entry.base_name)) is not None
            and _why_skipped(self._root, entry, day) is None
        )

    def files(self, days: Iterable[date]) -> list[FileState]:
        """The state of all files that landed on some days, by day and name.

        Links, folders, and files whose names start with ``_`` or ``.`` are left out; see
        `skipped`.

        Raises:
            FileNotFoundError: A day has no folder.
        """
        return [
            FileState(
                day,
                entry.base_name,
                entry.size,
                None if entry.mtime_ns is None else entry.mtime_ns // 1_000_000,
                entry.is_text,
            )
            for day, entry in self._read(days)
        ]

    def bytes_of(self, days: Iterable[date]) -> dict[date, int]:
        """The total size of the files of each day; days without files are left out.

        Raises:
            FileNotFoundError: A day has no folder.
        """
        sizes: dict[date, int] = {}
        for day, entry in self._read(days):
            sizes[day] = sizes.get(day, 0) + entry.size
        return sizes

    def skipped(self, days: Iterable[date]) -> list[str]:
        """Lists the entries that are not read: among the day folders, and in some of these folders.

        A file `_SUCCESS` in a day's folder is not listed, as it says that the day is complete.

        Returns:
            A sorted list of texts such as ``2013-01-02/_part: its name begins with _ or .``.

        Raises:
            FileNotFoundError: The folder does not exist.
        """
        skipped = [
            f"{entry.base_name}: {why}"
            for entry in self._entries
            if (why := _why_skipped(self._root, entry, day_of(entry.base_name)))
        ]
        for day, entries in self._of_days(days):
            found = (
                (entry, _why_skipped(self._root, entry, None, within=day)) for entry in entries
            )
            skipped += [
                f"{day}/{entry.base_name}: {why}"
                for entry, why in found
                if why and not _is_mark(entry)
            ]
        return sorted(skipped)

    def states(self, days: Iterable[date]) -> dict[date, FolderState]:
        """The state of the folders of some days.

        Raises:
            FileNotFoundError: A day has no folder.
        """
        return {
            day: FolderState(
                any(_is_mark(entry) for entry in entries),
                _digest((entry.base_name, entry.size, entry.mtime_ns) for entry in entries),
            )
            for day, entries in self._of_days(days)
        }

    def require_unchanged(self, files: Sequence[FileState]) -> None:
        """Lists the days of files again, and requires that the files are as they were listed.

        Raises:
            BadFileError: Files were deleted or changed; the error names all of them.
            FileNotFoundError: A day has no folder any more.
        """
        days = {file.day for file in files}
        for day in days:
            self._listed.pop(day, None)
        now = {(file.day, file.name): file for file in self.files(days)}
        bad = []
        for file in files:
            found = now.get((file.day, file.name))
            if found != file:
                how = "deleted or renamed" if found is None else "changed"
                bad.append(changed_while_read(str(file), how))
        require_none(bad)

    def require_listed(self, kind: str) -> None:
        """Requires that a stream misses no bad file: Spark silently skips some bad files.

        Args:
            kind: The format of the files.

        Raises:
            BadFileError: Files have names that are not UTF-8 or hold a colon, or have no byte
                though they are compressed or Parquet.
            FileNotFoundError: The folder does not exist.
        """
        bad = []
        for day, entry in self._read(self.days):
            try:
                require_name(day, entry.base_name, is_text=entry.is_text)
                if not entry.size:
                    require_may_be_empty(day, entry.base_name, kind)
            except BadFileError as error:
                bad.append(error)
        require_none(bad)

    def is_blank(self, day: date, name: str) -> bool:
        """Whether a landed text file holds only blanks and line breaks."""
        path = f"{self._root.path}/{day}/{name}"
        with self._root.filesystem.open_input_stream(path) as stream:
            while more := stream.read(_CHUNK_BYTES):
                if more.strip():
                    return False
        return True

    def links_among(self, files: Iterable[tuple[date, str]]) -> set[tuple[date, str]]:
        """The files, by day and name, that are links or lie in a folder that is a link."""
        of, root = self._root, self._root.path
        linked = {day for day in {day for day, _ in files} if _is_link(of, f"{root}/{day}")}
        return {
            (day, name)
            for day, name in files
            if day in linked or _is_link(of, f"{root}/{day}/{name}")
        }

    @property
    def filesystem(self) -> fs.FileSystem:
        """The file system that holds the files."""
        return self._root.filesystem

    def landed(self, file: FileState) -> LandedFile:
        """The file, with its paths for Arrow and for Spark."""
        return _file(self._root, file)

    @cached_property
    def _entries(self) -> list[_Entry]:
        """What lies in the folder."""
        root = self._root
        if root.filesystem.get_file_info(root.path).type != fs.FileType.Directory:
            raise FileNotFoundError(
                f"{self.path}: there is no such folder; land the files in "
                f"{self.path}/YYYY-MM-DD/, or correct source.path"
            )
        return _listed(root, root.path)

    def _read(self, days: Iterable[date]) -> list[tuple[date, _Entry]]:
        """The files of some days that will be read, by day and name."""
        return [
            (day, entry)
            for day, entries in self._of_days(days)
            for entry in entries
            if _why_skipped(self._root, entry, None, within=day) is None
        ]

    def _of_days(self, days: Iterable[date]) -> list[tuple[date, Sequence[_Entry]]]:
        """All files and folders in the folders of some days, by day and name."""
        wanted = sorted(set(days))
        new = [day for day in wanted if day not in self._listed]
        with ThreadPoolExecutor(_LISTING_THREADS) as threads:
            self._listed |= zip(new, threads.map(self._of_day, new), strict=True)
        return [(day, self._listed[day]) for day in wanted]

    def _of_day(self, day: date) -> Sequence[_Entry]:
        folder = f"{self._root.path}/{day}"
        if _is_link(self._root, folder):
            raise FileNotFoundError(
                f"{self.path}/{day}: must be a folder, but is a link; land the files themselves"
            )
        try:
            entries = _listed(self._root, folder)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise FileNotFoundError(
                f"{self.path}/{day}: there is no such folder; land the day's files, "
                "or an empty folder for a day without events"
            ) from error
        return sorted(entries, key=lambda entry: entry.base_name)


def _listed(root: _Root, folder: str) -> list[_Entry]:
    """The entries of a folder. Python lists those with names that are not UTF-8, as Arrow fails."""
    infos = root.filesystem.get_file_info(fs.FileSelector(folder))
    try:
        return list(map(_entry, infos))
    except UnicodeDecodeError:  # of a local file system, whose names are bytes
        names = os.listdir(os.fsencode(folder))  # noqa: PTH208  a Path holds no bytes
    texts: list[str] = []
    others: list[str] = []
    for name in names:
        try:
            texts.append(f"{folder}/{name.decode()}")
        except UnicodeDecodeError:
            others.append(name.decode(errors="backslashreplace"))
    return [
        *map(_entry, root.filesystem.get_file_info(texts)),
        *(_Entry(name, "", fs.FileType.File, 0, None, is_text=False) for name in others),
    ]


def _entry(info: fs.FileInfo) -> _Entry:
    return _Entry(info.base_name, info.path, info.type, info.size, info.mtime_ns)


def _why_skipped(
    root: _Root, entry: _Entry, day: date | None, *, within: date | None = None
) -> str | None:
    """Why a file or folder is not read; None if it is read.

    `day` is the day that the name says; `within` is the day of the folder that holds it, or None
    in the folder of day folders.
    """
    name = entry.base_name
    if _is_link(root, entry.path):
        return "a link, which is not followed"
    if within is None:
        if day is None:
            return "not a day's folder, whose name is YYYY-MM-DD"
        return None if entry.type == fs.FileType.Directory else "a file, not a day's folder"
    if name.startswith(("_", ".")):
        return "its name begins with _ or ."
    if entry.type == fs.FileType.Directory:
        return "a folder within a day's folder"
    return None if entry.type == fs.FileType.File else "no regular file"


def _is_link(root: _Root, path: str) -> bool:
    return isinstance(root.filesystem, fs.LocalFileSystem) and Path(path).is_symlink()


def _is_mark(entry: _Entry) -> bool:
    return entry.base_name == "_SUCCESS" and entry.type == fs.FileType.File


def _digest(entries: Iterable[tuple[str, int, int | None]]) -> str:
    return sha256(repr(list(entries)).encode(errors="backslashreplace")).hexdigest()[:16]


def _root(path: str) -> _Root:
    if "://" not in path:
        absolute = Path(path).absolute()
        return _Root(fs.LocalFileSystem(), absolute.as_posix(), f"file://{absolute.as_posix()}")
    # Hadoop's scheme for S3 is s3a, Arrow's is s3.
    filesystem, inner = fs.FileSystem.from_uri(re.sub(r"^s3[an]://", "s3://", path))
    return _Root(filesystem, inner.rstrip("/"), path.rstrip("/"))


def _file(root: _Root, file: FileState) -> LandedFile:
    path, uri = (f"{of_root}/{file.day}/{file.name}" for of_root in (root.path, root.uri))
    return LandedFile(file.day, file.name, path, uri, file.size_bytes, file.is_text)


def landing_of(source: Source, landing: str) -> LandingFolder:
    """The folder of a source's landed files, which lies in the folder that settings name."""
    return LandingFolder(resolve(source.required_path, landing))
