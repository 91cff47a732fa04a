"""Reads pipelines from their YAML files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError

from windows_pipeline.config.firing_trigger import EMPTY, FiringTrigger
from windows_pipeline.config.kinds import KINDS, unknown_kind
from windows_pipeline.config.model import Partitions, Pipeline, Source, Topic
from windows_pipeline.config.window_kinds import Rule
from windows_pipeline.text.limits import shown
from windows_pipeline.text.problems import ConfigError, FieldPath, FieldProblems, nearest
from windows_pipeline.text.yaml_text import Document, read_yaml

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


_EXAMPLES = {
    **dict.fromkeys(("time_difference", "size", "advance", "gap", "grace"), "1 hour"),
    "start": "2026-01-31",
    "when": "record_count >= 10",
    "severity": "record_count",
}
_EXAMPLES_BELOW = {
    "source": "path: ...",
    "kafka": "servers: ...",
    "options": "name: value",
    "columns": "name: type",
    "partitions": "start: 2026-01-31",
    "aggregates": "name: avg(column)",
    "windows": "name: ...",
    "alerts": "name: ...",
    "trigger": "early_every: 15 minutes",
    "limits": "rejected: 50 %",
}
_SECRETS = ("source", "kafka", "options")
"""Passwords are among these; no error shows what stands below."""
_MOST_SHOWN = 400
"""So much of a value is shown."""
_MOST_SHOWN_OF_LISTS = 60
"""So much of a list or mapping is shown that stands where none can."""


def load_pipeline(path: Path | str) -> Pipeline:
    """Reads and validates one pipeline.

    Raises:
        ConfigError: All that is wrong in the file, each problem on a line of its own with
            the file, the line, the field, the value and the cure.
    """
    document = read_yaml(Path(path), hidden=[_SECRETS])
    try:
        pipeline = Pipeline.model_validate(document.data)
    except ValidationError as error:
        for details in error.errors():
            _report(document, details)
    if document.problems:
        raise ConfigError(sorted(set(document.problems), key=document.problems.index))
    return pipeline


@dataclass(frozen=True, slots=True)
class Loaded:
    """What became of some pipeline files: each is in one of the two.

    Attributes:
        pipelines: The pipelines, by the files that declare them.
        problems: What is wrong in the other files, by file, as `ConfigError` has it.
    """

    pipelines: dict[Path, Pipeline]
    problems: dict[Path, tuple[str, ...]]

    @property
    def all_problems(self) -> list[str]:
        """The problems of all files."""
        return [problem for problems in self.problems.values() for problem in problems]


def load_files(files: Iterable[Path]) -> Loaded:
    """Reads pipelines from files; a file with a mistake leaves the others' pipelines as they are.

    Of several files that name one pipeline none counts.
    """
    loaded = Loaded({}, {})
    each = list(dict.fromkeys(files))
    for file in each:
        try:
            loaded.pipelines[file] = load_pipeline(file)
        except ConfigError as error:
            loaded.problems[file] = error.problems
    by_name: dict[str, list[Path]] = {}
    for file, pipeline in loaded.pipelines.items():
        by_name.setdefault(pipeline.name, []).append(file)
    for name, alike in by_name.items():
        if len(alike) > 1:
            for file in alike:
                del loaded.pipelines[file]
                others = ", ".join(str(other) for other in alike if other != file)
                text = f"name: {name!r} is the name of the pipeline in {others} too; rename one"
                line = read_yaml(file, hidden=[_SECRETS]).line(("name",))
                loaded.problems[file] = (f"{file}:{line}: {text}",)
    problems = {file: loaded.problems[file] for file in each if file in loaded.problems}
    return Loaded(loaded.pipelines, problems)


def load_folder(folder: Path | str) -> Loaded:
    """Reads all pipelines of a folder (``*.yaml``, ``*.yml``), in the order of file names.

    Raises:
        ConfigError: The folder is not there.
    """
    return load_files(pipeline_files(folder))


def load_pipelines(folder: Path | str) -> list[Pipeline]:
    """Reads all pipelines of a folder, and refuses all where one file is wrong.

    Raises:
        ConfigError: The folder is not there, or the problems of all files.
    """
    loaded = load_folder(folder)
    if loaded.problems:
        raise ConfigError(loaded.all_problems)
    return list(loaded.pipelines.values())


def pipeline_files(folder: Path | str) -> list[Path]:
    """The pipeline files of a folder, in the order of their names.

    Raises:
        ConfigError: The folder is not there, or cannot be read.
    """
    folder = Path(folder)
    try:
        if not folder.is_dir():
            raise ConfigError([f"{folder}: is no folder; make it, with one YAML file a pipeline"])
        return sorted(file for file in folder.iterdir() if file.suffix in (".yaml", ".yml"))
    except OSError as error:
        raise ConfigError([f"{folder}: can't be read ({error.strerror}); check it"]) from None


def _report(document: Document, details: ErrorDetails) -> None:
    """Adds what pydantic found to the document's problems."""
    place = [str(part) for part in details["loc"] if part != "[key]"]
    # Below windows pydantic names the kind, too.
    kind = place.pop(2) if place[0] == "windows" and len(place) > 3 and place[2] in KINDS else ""
    path = tuple(place)
    if path in document.faulty:
        return
    cause = details.get("ctx", {}).get("error")
    if isinstance(cause, FieldProblems):
        for problem in cause.problems:
            _report_value(document, (*path, *problem.path), problem.value, problem.text)
    elif details["type"] == "missing":
        parent = ".".join(path[:-1]) or "the file"
        document.report(path, f"is missing; write {_example(path)} in {parent}")
    elif details["type"] == "extra_forbidden":
        known = _model(path[:-1], kind).model_fields
        cure = nearest(path[-1], known, f"remove it; the fields are {', '.join(known)}")
        document.report(path, f"{shown(path[-1])} is no field here; {cure}")
    elif details["type"] == "union_tag_not_found":
        document.report((*path, "kind"), f"is missing; write 'kind: ...' in {'.'.join(path)}")
    elif details["type"] == "union_tag_invalid":
        given = details["input"]["kind"]
        _report_value(document, (*path, "kind"), given, unknown_kind(given))
    elif "[key]" in details["loc"]:
        document.report(path, f"{shown(path[-1])} {_text(details)}")
    else:
        _report_value(document, path, details["input"], _text(details))


def _report_value(document: Document, path: FieldPath, value: object, text: str) -> None:
    if value is None and path not in document.texts:
        document.report(path, text)
        return
    if document.hides(path, value):
        document.report(path, _without_secrets(document, path, text))
        return
    # A value that the file writes otherwise is shown as the file has it.
    written = value if isinstance(value, str) else document.texts.get(path, value)
    most = _MOST_SHOWN_OF_LISTS if isinstance(value, (list, dict)) else _MOST_SHOWN
    document.report(path, f"{shown(written, most)} {text}")


def _without_secrets(document: Document, path: FieldPath, text: str) -> str:
    """What is wrong where the value may be, or hold, a secret."""
    wanted = "must be text in quotes" if document.is_below_hidden(path[:-1]) else text
    return f"{wanted}; the value is not shown"


def _text(details: ErrorDetails) -> str:
    """What is wrong and the cure, in the file's terms."""
    if details["type"] == EMPTY:
        return details["msg"]
    if details["input"] is None:
        return f"has no value; write {_example(details['loc'])}"
    match details["type"]:
        case "value_error":
            return str(details["ctx"]["error"])
        case "literal_error":
            return f"is not known; use {details['ctx']['expected']}"
        case "string_type":
            if isinstance(details["input"], (list, dict)):
                return "is no text; write one, without brackets"
            return "is no text; put it in quotes"
        case "bool_type" | "bool_parsing":
            return "is neither true nor false; write one of them, without quotes"
        case "int_type" | "int_parsing" | "int_from_float" | "greater_than":
            return "is no whole number above zero; write one, such as 1000"
        case "model_type" | "dict_type" | "model_attributes_type":
            return _no_mapping(details)
        case _:
            return f"is not valid; {details['msg'].lower()}"


def _no_mapping(details: ErrorDetails) -> str:
    wanted = _example(details["loc"])
    if isinstance(details["input"], list):
        return f"is a list; write {wanted}, without '- ' and brackets"
    return f"is no mapping; write {wanted}"


def _example(path: Sequence[object]) -> str:
    """What a field that needs a value may be."""
    match [str(part) for part in path]:
        case ["source", "columns", name]:
            return f"'{name}: string'"
        case ["windows", _, *_, "aggregates", name]:
            return f"'{name}: avg(column)'"
        case ["windows", _, *_, "alerts", name]:
            return f"'{name}:' with 'when: ...' and 'severity: ...' lines under it"
        case ["windows", name]:
            return f"'{name}:' with 'kind: ...' and more 'name: value' lines under it"
        case [*_, name] if name in _EXAMPLES_BELOW:
            return f"'{name}:' with '{_EXAMPLES_BELOW[name]}' lines under it"
        case [*_, name]:
            return f"'{name}: {_EXAMPLES.get(name, '...')}'"
        case _:
            return "'name: value' lines"


def _model(path: FieldPath, kind: str) -> type[BaseModel]:
    """The model of the mapping at a path; below windows it hangs on their kind."""
    match path:
        case ("source",):
            return Source
        case ("source", "kafka"):
            return Topic
        case ("partitions",):
            return Partitions
        case ("windows", _):
            return KINDS[kind]
        case ("windows", _, "alerts", _):
            return Rule
        case ("windows", _, "trigger"):
            return FiringTrigger
        case _:
            return Pipeline
