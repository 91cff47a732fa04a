"""Looks at a few landed records for columns whose declared type cannot be right."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow.compute as pc

from windows_pipeline.config.source import Source
from windows_pipeline.epochs import EPOCHS, WHOLE_DIGITS, advice
from windows_pipeline.starter.files import SampleFiles, find_files, is_day
from windows_pipeline.starter.sample import UTF_8, Sample, read_sample
from windows_pipeline.text.counts import counted
from windows_pipeline.text.limits import shown
from windows_pipeline.text.locations import resolve
from windows_pipeline.text.yaml_text import read_yaml

_MOST_RECORDS = 2_000
_MOSTLY = 0.5
_MOST_DAYS = 10
"""How many days to look at, as days without events are empty."""


def column_warnings(file: Path, source: Source, landing: str) -> list[str]:
    """Warns of declared columns that do not fit the newest landed records.

    Names each column of type `timestamp` or `date` that mostly holds numbers since 1970, and each
    column that no record of a sample has. If this machine cannot read the files, there is no
    warning.

    Args:
        file: The pipeline's file, for the line.
        source: The pipeline's source, read from that file.
        landing: The folder or URI of the settings that relative paths start at.
    """
    location = None if source.path is None else resolve(source.required_path, landing)
    if location is None or "://" in location or not source.is_landed:
        return []
    newest = _newest_files(Path(location))
    if newest is None or newest[1].format != source.format:
        return []
    day, files = newest
    try:
        sample = read_sample(files, _MOST_RECORDS, source.encoding or UTF_8)
    except (OSError, ValueError):
        return []  # a run reports files that it cannot read
    document = read_yaml(file)
    return [
        f"{file}:{document.line(('source', 'columns', name))}: source.columns.{name}: {text}"
        for name in source.columns_on(date.fromisoformat(day))
        # A sample has the top fields of records, not nested ones.
        if len(path := source.paths[name]) == 1
        and (text := _problem(sample, path[0], source.read_types[name], day)) is not None
    ]


def _newest_files(folder: Path) -> tuple[str, SampleFiles] | None:
    """Returns the newest day that has files, and the files; None where there are none."""
    try:
        names = sorted((entry.name for entry in folder.iterdir() if is_day(entry)), reverse=True)
    except OSError:
        return None
    for name in names[:_MOST_DAYS]:
        try:
            return name, find_files(folder / name)
        except (OSError, ValueError):
            continue  # a day without events, or with files that a run reports
    return None


def _problem(sample: Sample, name: str, kind: str, day: str) -> str | None:
    texts = sample.columns.get(name)
    if texts is None or texts.null_count == len(texts):
        names = ", ".join(shown(column) for column in list(sample.columns)[:20])
        return (
            f"has no value in {counted(sample.record_count, 'record')} of {day}, whose columns are "
            f"{names}; correct the name, or take the column out"
        )
    if kind not in ("timestamp", "date") or name in sample.natives:
        return None
    found = pc.extract_regex(texts, WHOLE_DIGITS.replace("(", "(?P<digits>", 1))
    digits = pc.utf8_length(pc.struct_field(found, "digits"))
    for epoch_kind, epoch in EPOCHS.items():
        fits = pc.fill_null(pc.equal(digits, epoch.digits), fill_value=False)
        if pc.sum(fits).as_py() > _MOSTLY * (len(texts) - texts.null_count):
            example = texts.filter(fits)[0].as_py()
            return f"is {kind}, and {shown(example)} of {day} {advice(epoch_kind)}"
    return None
