"""Reads pipelines from YAML files, and turns every mistake into one line with its fix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, get_args, get_origin

from pydantic import BaseModel, ValidationError

from windows_pipeline.aggregates import UserModules
from windows_pipeline.config.columns.long_form import LONG_FORM, SHORT_FORM
from windows_pipeline.config.model import Pipeline
from windows_pipeline.config.windows.firing_trigger import EMPTY
from windows_pipeline.config.windows.kinds import KINDS, unknown_kind
from windows_pipeline.text.limits import shown
from windows_pipeline.text.problems import ConfigError, FieldPath, FieldProblems, nearest
from windows_pipeline.text.references import refers
from windows_pipeline.text.yaml_text import ANY, Document, is_below, read_yaml

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


_EXAMPLES = {
    **dict.fromkeys(("time_difference", "size", "advance", "gap", "grace"), "1 hour"),
    "start": "2026-01-31",
    "when": "record_count >= 10",
    "mostly": "0.95",
    "column": "carrier",
    "severity": "record_count",
    "where": "amount > 0",
    "key": "carrier",
    "event_time": "departed_at",
    "type": "string",
    "as": "concat(first, second)",
    "from": "$.card.country",
    "zone": "America/New_York",
    "since": "2026-01-31",
    "function": "my_module:warn",
}
_TEXTS = {
    **dict.fromkeys(
        ("bool_type", "bool_parsing"), "must be true or false; write either, without quotes"
    ),
    **dict.fromkeys(
        ("int_type", "int_parsing", "int_from_float", "greater_than"),
        "is not a whole number above zero; write such a number, as 1000",
    ),
    **dict.fromkeys(
        ("list_type", "tuple_type"), "is not a list; write one in brackets, as in [a, b]"
    ),
}
"""What is wrong, with the fix, by pydantic's type of error."""
_NAME = re.compile(r"[A-Za-z]\w*")
_EXAMPLES_OF_NAMES = {"aggregates": "avg(column)", "frames": "{preceding: 1 hour}"}
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
    "process": "function: my_module:warn",
    "frames": "name: {preceding: 1 hour}",
    "limits": "rejected: 50 %",
    "checks": "name: ...",
    "rows": "least: 1",
    "distinct": "column: carrier",
    "notify": "name: ...",
    "webhook": "url: ${env:NAME}",
    "email": "host: ...",
    "topic": "servers: ...",
    "rate_limit": "messages: 20",
    "quiet": "hours: 22:00-06:00",
}
_SECRETS = (
    ("source", "kafka", "options"),
    ("notify", ANY, "webhook", "url"),
    ("notify", ANY, "email", "user"),
    ("notify", ANY, "email", "password"),
    ("notify", ANY, "topic", "options"),
)
"""Passwords may be below these fields; no error shows a value there."""
_MAY_REFER = (
    ("source", "path"),
    ("source", "kafka", "servers"),
    ("source", "kafka", "topic"),
    *_SECRETS,
    *(("notify", ANY, "email", name) for name in ("host", "from", "to")),
    *(("notify", ANY, "topic", name) for name in ("servers", "name")),
)
"""The fields whose texts may refer to the environment: the addresses of records and of people."""
_SENTENCE = re.compile(r"there is |in ['\"]|['\"/]|\S+\(|every |percentage: ")
"""Matches the text of a problem that is a whole sentence, as in "there is no column 'x'"."""
_MOST_SHOWN = 400
"""How many characters of a value an error shows."""
_MOST_SHOWN_OF_LISTS = 60
"""How many characters of a misplaced list or mapping an error shows."""


def load_pipeline(path: Path | str, modules: Iterable[Path] = ()) -> Pipeline:
    """Reads and validates one pipeline.

    Args:
        path: The pipeline's file.
        modules: The files of the modules whose code the pipeline may name: `modules` of the
            settings. A module that it names runs.

    Raises:
        ConfigError: The file has mistakes. The message has one line for each: the file, the
            line, the field, the value, what is wrong and the fix.
    """
    document = read_yaml(Path(path), hidden=_SECRETS)
    _refuse_references(document)
    try:
        pipeline = Pipeline.model_validate(document.data, context=UserModules(tuple(modules)))
    except ValidationError as error:
        for details in error.errors():
            _report(document, {**details, "loc": _location(details["loc"])})
    document.require_no_problems()
    return pipeline.with_declaration(document.file, document.lines)


def _refuse_references(document: Document) -> None:
    """Refuses references to the environment in fields that decide rows or names (rule H1)."""
    for path, text in document.texts.items():
        may_refer = any(is_below(path, root) for root in _MAY_REFER)
        if refers(text) and not may_refer and path not in document.faulty:
            allowed = ", ".join(".".join(root) for root in _MAY_REFER)
            reason = (
                "refers to the environment, but a pipeline's results and notifications must depend "
                "on its file alone, not on a machine (rule H1)"
            )
            fix = f"write the value itself; references may stand in {allowed}"
            document.refuse(path, f"{shown(text, _MOST_SHOWN)} {reason}; {fix}")


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of reading several files: each file has either a pipeline or problems.

    Attributes:
        pipelines: The pipelines, by the files that declare them.
        problems: The mistakes of the other files, by file; lines as in `ConfigError`.
    """

    pipelines: dict[Path, Pipeline]
    problems: dict[Path, tuple[str, ...]]

    @property
    def all_problems(self) -> list[str]:
        """The problems of all files."""
        return [problem for problems in self.problems.values() for problem in problems]


def load_files(files: Iterable[Path], modules: Iterable[Path] = ()) -> Loaded:
    """Reads pipelines from files; a mistake in one file does not affect the other pipelines.

    Where several files use one pipeline name, each of them has a problem instead of a pipeline.

    Args:
        files: The files.
        modules: See `load_pipeline`.
    """
    of_users = tuple(modules)
    loaded = Loaded({}, {})
    distinct_files = list(dict.fromkeys(files))
    for file in distinct_files:
        try:
            loaded.pipelines[file] = load_pipeline(file, of_users)
        except ConfigError as error:
            loaded.problems[file] = error.problems
    by_name: dict[str, list[Path]] = {}
    for file, pipeline in loaded.pipelines.items():
        by_name.setdefault(pipeline.name, []).append(file)
    for name, same_name in by_name.items():
        if len(same_name) > 1:
            for file in same_name:
                del loaded.pipelines[file]
                others = ", ".join(str(other) for other in same_name if other != file)
                text = (
                    f"name: {name!r} is also the name of the pipeline in {others}; "
                    "rename one of them"
                )
                line = read_yaml(file, hidden=_SECRETS).line(("name",))
                loaded.problems[file] = (f"{file}:{line}: {text}",)
    problems = {file: loaded.problems[file] for file in distinct_files if file in loaded.problems}
    return Loaded(loaded.pipelines, problems)


def load_folder(folder: Path | str, modules: Iterable[Path] = ()) -> Loaded:
    """Reads all pipelines of a folder (``*.yaml``, ``*.yml``), in the order of file names.

    Args:
        folder: The folder.
        modules: See `load_pipeline`.

    Raises:
        ConfigError: The folder does not exist, or cannot be read.
    """
    return load_files(pipeline_files(folder), modules)


def load_pipelines(folder: Path | str, modules: Iterable[Path] = ()) -> list[Pipeline]:
    """Reads all pipelines of a folder, all of whose files must be right.

    Args:
        folder: The folder.
        modules: See `load_pipeline`.

    Raises:
        ConfigError: The folder does not exist, or a file has a mistake; the message has the
            mistakes of all files.
    """
    loaded = load_folder(folder, modules)
    if loaded.problems:
        raise ConfigError(loaded.all_problems)
    return list(loaded.pipelines.values())


def pipeline_files(folder: Path | str) -> list[Path]:
    """Lists the pipeline files of a folder (``*.yaml``, ``*.yml``), in the order of their names.

    Raises:
        ConfigError: The folder does not exist, or cannot be read.
    """
    folder = Path(folder)
    try:
        if not folder.is_dir():
            text = "is not a folder; create it, with one YAML file for each pipeline"
            raise ConfigError([f"{folder}: {text}"])
        return sorted(file for file in folder.iterdir() if file.suffix in (".yaml", ".yml"))
    except OSError as error:
        text = f"cannot be read ({error.strerror}); check the path and its permissions"
        raise ConfigError([f"{folder}: {text}"]) from None


def _location(parts: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """Returns a field's path without pydantic's name of a column's form, which no file has."""
    is_column = parts[:2] == ("source", "columns") and len(parts) > 3
    if is_column and parts[3] in (SHORT_FORM, LONG_FORM):
        return (*parts[:3], *parts[4:])
    return parts


def _report(document: Document, details: ErrorDetails) -> None:
    """Adds a mistake that pydantic found to the document's problems."""
    parts = [str(part) for part in details["loc"] if part != "[key]"]
    # Below windows pydantic puts the kind into the path; the file has no such level.
    kind = parts.pop(2) if parts[0] == "windows" and len(parts) > 3 and parts[2] in KINDS else ""
    path = tuple(parts)
    if path in document.faulty:
        return
    cause = details.get("ctx", {}).get("error")
    if isinstance(cause, FieldProblems):
        for problem in cause.problems:
            if (*path, *problem.path) not in document.faulty:
                of_field = (*path, *problem.path)
                _report_value(document, of_field, problem.value, problem.text, problem.text)
    elif details["type"] == "missing":
        parent = ".".join(path[:-1]) or "the file"
        own = KINDS[kind].examples.get(path[-1]) if kind else None
        example = _example(path) if own is None else f"'{path[-1]}: {own}'"
        document.report(path, f"is missing; write {example} in {parent}")
    elif details["type"] == "extra_forbidden":
        document.report(path, f"{shown(path[-1])} is not a field here; {_known(path, kind)}")
    elif details["type"] == "union_tag_not_found":
        document.report((*path, "kind"), f"is missing; write 'kind: ...' in {'.'.join(path)}")
    elif details["type"] == "union_tag_invalid":
        unknown = details["input"]["kind"]
        _report_value(document, (*path, "kind"), unknown, unknown_kind(unknown))
    elif "[key]" in details["loc"]:
        document.report(path, f"{shown(path[-1])} {_text(details)}")
    else:
        _report_value(document, path, details["input"], _text(details))


def _known(path: FieldPath, kind: str) -> str:
    """Says what to write in place of a field that does not exist."""
    if not _NAME.fullmatch(path[-1]):
        return "if it is a part of the text before it, put that text in quotes; or remove it"
    fields = _model(path[:-1], kind).model_fields
    known = [field.alias or name for name, field in fields.items()]
    return nearest(path[-1], known, f"remove it; the fields are {', '.join(known)}")


def _report_value(
    document: Document, path: FieldPath, value: object, text: str, of_secret: str | None = None
) -> None:
    """Adds the problem of a value; `of_secret` is the text for a value that is not shown."""
    if value is None and path not in document.texts:
        document.report(path, text)
        return
    if document.hides(path, value):
        of_secret = of_secret or _of_secret(document, path, text)
        document.report(path, f"{of_secret}; the value is not shown")
        return
    # YAML has read `1:30`, say, as a number: the error shows what the file says.
    written = value if isinstance(value, str) else document.texts.get(path, value)
    most = _MOST_SHOWN_OF_LISTS if isinstance(value, (list, dict)) else _MOST_SHOWN
    document.report(path, f"{shown(written, most)}{_joint(text)} {text}")


def _joint(text: str) -> str:
    """Returns a colon if the text of a problem is a whole sentence; otherwise nothing."""
    return ":" if _SENTENCE.match(text) else ""


def _of_secret(document: Document, path: FieldPath, text: str) -> str:
    """Returns what pydantic finds wrong with a value that may be, or hold, a secret."""
    return "must be text in quotes" if document.is_below_hidden(path[:-1]) else text


def _text(details: ErrorDetails) -> str:
    """Says in the file's terms what pydantic found wrong, and the fix."""
    if details["type"] == EMPTY:
        return details["msg"]
    if details["input"] is None:
        return f"has no value; write {_example(details['loc'])}"
    match details["type"]:
        case "value_error":
            return str(details["ctx"]["error"])
        case "literal_error":
            return f"is not a known value; use {details['ctx']['expected']}"
        case "string_type":
            if isinstance(details["input"], (list, dict)):
                return "is not text; write text, without brackets"
            return "is not text; put it in quotes"
        case kind if kind in _TEXTS:
            return _TEXTS[kind]
        case "model_type" | "dict_type" | "model_attributes_type":
            return _no_mapping(details)
        case _:
            return f"is not valid; {details['msg'].lower()}"


def _no_mapping(details: ErrorDetails) -> str:
    wanted = _example(details["loc"])
    if isinstance(details["input"], list):
        return f"is a list; write {wanted}, without '- ' and brackets"
    return f"is not a mapping; write {wanted}"


def _example(path: Sequence[object]) -> str:
    """Returns an example of the lines that a field needs."""
    match [str(part) for part in path]:
        case ["source", "columns", name] | ["windows", _, *_, "process", "columns", name]:
            return f"'{name}: string'"
        case ["windows", _, *_, ("aggregates" | "frames") as field, name]:
            return f"'{name}: {_EXAMPLES_OF_NAMES[field]}'"
        case ["windows", _, *_, "alerts", name]:
            return f"'{name}:' with 'when: ...' and 'severity: ...' lines under it"
        case ["checks", name] | ["windows", _, *_, "checks", name]:
            return f"'{name}:' with 'that: ...' or another rule under it"
        case ["notify", name]:
            return f"'{name}:' with 'webhook: ...' or another way under it"
        case ["windows", name]:
            return f"'{name}:' with 'kind: ...' and more 'name: value' lines under it"
        case ["source", "kafka", "topic"]:
            return "'topic: ...'"
        case [*_, name] if name in _EXAMPLES_BELOW:
            return f"'{name}:' with '{_EXAMPLES_BELOW[name]}' lines under it"
        case [*_, name]:
            return f"'{name}: {_EXAMPLES.get(name, '...')}'"
        case _:
            return "'name: value' lines"


def _model(path: FieldPath, kind: str) -> type[BaseModel]:
    """Returns the model of the mapping at a path; that of windows depends on their kind."""
    model: type[BaseModel] = Pipeline
    names = iter(path)
    for name in names:
        annotation = model.model_fields[name].annotation
        models = list(_models_in(annotation))
        model = models[0] if len(models) == 1 else KINDS[kind]
        if _is_named(annotation):
            next(names, None)
    return model


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    """The models of the values that a field may have."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def _is_named(annotation: object) -> bool:
    """Whether a field holds values by names that the file chooses."""
    return get_origin(annotation) is dict or any(map(_is_named, get_args(annotation)))
