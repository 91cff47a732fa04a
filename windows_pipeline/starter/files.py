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
COMPRESSED = ".gz"
_KNOWN = "CSV (.csv), JSON lines (.jsonl, .ndjson, .json) or Parquet (.parquet)"


@dataclass(frozen=True, slots=True)
class SampleFiles:
    """The files of a sample, all of one format.

    Attributes:
        root: The file or folder that the user named.
        format: `csv`, `jsonl` or `parquet`.
        files: The files in the order of arrival: by day, then by name.
        days: The day folders, whether they hold files or not; empty where there are none.
        skipped: What the folders hold that a pipeline does not read.
    """

    root: Path
    format: str
    files: tuple[Path, ...]
    days: tuple[date, ...] = ()
    skipped: tuple[str, ...] = ()

    def day_of(self, file: Path) -> date | None:
        """The arrival day of a file's folder; None where there are no day folders."""
        return day_of(file.parent.name) if self.days else None


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
    if not root.is_dir():
        return SampleFiles(root, _one_format(root, [root]), (root,))
    entries = sorted(root.iterdir(), key=lambda entry: entry.name)
    folders = [entry for entry in entries if _is_day(entry)]
    if folders:
        skipped = [entry for entry in entries if entry not in folders]
        entries = [file for folder in folders for file in sorted(folder.iterdir())]
    else:
        skipped = []
    files = [entry for entry in entries if _is_read(entry)]
    skipped += [entry for entry in entries if entry not in files]
    return SampleFiles(
        root,
        _one_format(root, files),
        tuple(files),
        tuple(date.fromisoformat(folder.name) for folder in folders),
        tuple(entry.relative_to(root).as_posix() for entry in skipped),
    )


def _is_day(entry: Path) -> bool:
    return day_of(entry.name) is not None and entry.is_dir() and not entry.is_symlink()


def _is_read(entry: Path) -> bool:
    return entry.is_file() and not entry.is_symlink() and not entry.name.startswith(("_", "."))


def _one_format(root: Path, files: list[Path]) -> str:
    """Returns the format that all files have.

    Raises:
        ValueError: There is no file, or their formats are unknown or several.
    """
    formats: dict[str | None, Path] = {}
    for file in files:
        formats.setdefault(_format_of(file), file)
    found = next(iter(formats), None)
    if found is None or len(formats) > 1:
        examples = (f"{file.name} ({name or 'unknown'})" for name, file in formats.items())
        raise ValueError(
            f"--from {root}: must hold files of one format: {_KNOWN}, text also with .gz; or day "
            "folders such as 2013-03-08 with such files. "
            f"It holds {', '.join(examples) or 'none'}; name the file or folder to read, or "
            "convert, rename or move away the others"
        )
    return found


def _format_of(path: Path) -> str | None:
    name = path.name.lower()
    inner = _FORMATS.get(Path(name.removesuffix(COMPRESSED)).suffix)
    return None if inner == "parquet" and name.endswith(COMPRESSED) else inner
