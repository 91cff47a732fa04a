"""Finds the files of a sample: one file, a folder of files, or a folder of day folders."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path

from windows_pipeline.text.day_names import day_of

_FORMATS = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_COMPRESSED = ".gz"
_KNOWN = "CSV (.csv), JSON lines (.jsonl, .ndjson, .json) or Parquet (.parquet)"


@dataclass(frozen=True, slots=True)
class SampleFile:
    """A file of a sample.

    Attributes:
        path: Where the file is.
        day: The arrival day of its folder; None where it is in no day folder.
        size_bytes: Its size, compressed or not.
    """

    path: Path
    day: date | None
    size_bytes: int

    @property
    def is_compressed(self) -> bool:
        """Whether the file's name says that it is compressed by gzip."""
        return self.path.suffix == _COMPRESSED


@dataclass(frozen=True, slots=True)
class SampleFiles:
    """The files of a sample, all of one format.

    Attributes:
        root: The file or folder that the user named.
        format: `csv`, `jsonl` or `parquet`.
        files: The files in the order of arrival: by day, then by name.
        days: The day folders, whether they hold files or not; empty where there are none.
        skipped: Names in the folder that are not read, with the reason.
    """

    root: Path
    format: str
    files: tuple[SampleFile, ...]
    days: tuple[date, ...] = ()
    skipped: tuple[str, ...] = ()

    @property
    def size_bytes(self) -> int:
        """The size of all files."""
        return sum(file.size_bytes for file in self.files)


def find_files(root: Path) -> SampleFiles:
    """Finds the files of a sample.

    Links, folders within a folder of files, and names that begin with ``_`` or ``.`` are skipped,
    as a pipeline skips them.

    Raises:
        FileNotFoundError: Nothing has that path.
        ValueError: There is no file of a known format, or files have several formats.
    """
    if not root.exists():
        raise FileNotFoundError(
            f"--from {root}: must be a file or a folder, but does not exist; correct the path"
        )
    if root.is_file():
        file = SampleFile(root, None, root.stat().st_size)
        return SampleFiles(root, _one_format(root, [file]), (file,))
    if not root.is_dir():
        raise ValueError(
            f"--from {root}: must be a file or a folder, but is neither; copy it there"
        )
    entries = sorted(root.iterdir(), key=lambda entry: entry.name)
    day_folders = {day: entry for entry in entries if is_day(entry) and (day := day_of(entry.name))}
    if not day_folders:
        files, skipped = _files_in(entries, None)
        return SampleFiles(root, _one_format(root, files), tuple(files), (), tuple(skipped))
    found: list[SampleFile] = []
    skipped = [f"{entry.name}: not a day folder" for entry in entries if not day_of(entry.name)]
    for day, folder in day_folders.items():
        within, ignored = _files_in(sorted(folder.iterdir(), key=lambda entry: entry.name), day)
        found += within
        skipped += ignored
    known = _one_format(root, found)
    return SampleFiles(root, known, tuple(found), tuple(day_folders), tuple(skipped))


def _files_in(entries: list[Path], day: date | None) -> tuple[list[SampleFile], list[str]]:
    """Returns the files among a folder's entries, and what is skipped."""
    files, skipped = [], []
    for entry in entries:
        shown = entry.name if day is None else f"{day}/{entry.name}"
        if entry.is_symlink():
            skipped.append(f"{shown}: a link, which is not followed")
        elif entry.name.startswith(("_", ".")):
            skipped.append(f"{shown}: its name begins with _ or .")
        elif not entry.is_file():
            skipped.append(f"{shown}: not a file")
        else:
            files.append(SampleFile(entry, day, entry.stat().st_size))
    return files, skipped


def _one_format(root: Path, files: list[SampleFile]) -> str:
    """Returns the format that all files have.

    Raises:
        ValueError: There is no file, or their formats are unknown or several.
    """
    if not files:
        raise ValueError(
            f"--from {root}: must hold files of {_KNOWN}, or day folders such as 2013-03-08 with "
            "such files, and holds none; name the folder that holds them"
        )
    formats: dict[str, Path] = {}
    for file in files:
        found = _format_of(file.path)
        if found is None:
            raise ValueError(
                f"{file.path}: must be {_KNOWN}, text also with .gz, and its name says something "
                "else; convert or rename it, or move it away"
            )
        formats.setdefault(found, file.path)
    if len(formats) > 1:
        examples = ", ".join(f"{path.name} is {name}" for name, path in formats.items())
        raise ValueError(
            f"--from {root}: all files must have one format, and {examples}; name one file, or "
            "move those of the other format away"
        )
    return next(iter(formats))


def _format_of(path: Path) -> str | None:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == _COMPRESSED:
        inner = _FORMATS.get(suffixes[-2]) if len(suffixes) > 1 else None
        return None if inner == "parquet" else inner
    return _FORMATS.get(suffixes[-1]) if suffixes else None


def is_day(entry: Path) -> bool:
    """Whether an entry of a folder is the folder of a day, and no link."""
    return day_of(entry.name) is not None and entry.is_dir() and not entry.is_symlink()
