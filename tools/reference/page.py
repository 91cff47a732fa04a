"""The reference page: a table of fields for each mapping, and a table of types."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from tools.reference.models import (
    ANY_NAME,
    Section,
    default_of,
    meaning,
    sections,
    summary,
    written_name,
)
from tools.reference.types import named_types, refusals

_HEAD = f"""# Reference of pipeline files

Every field of a pipeline's file, where `{ANY_NAME}` stands for a name of your own.
[pipelines.md](../pipelines.md) explains the fields in the order of use. `python -m tools.reference`
generates this page and the [JSON Schema](#json-schema) from the models in
`windows_pipeline/config`.

The error for an unknown field offers the nearest name, the error for a missing field an example,
and the error for a value that is not of its [type](#types) has the line, the value and the fix.
Fields that do not fit each other, or the source's columns, are errors, too:
[Mistakes](../pipelines.md#mistakes).
"""
_TAIL = """## JSON Schema

`windows_pipeline/config/pipeline.schema.json`, also in the wheel, lets an editor complete and check
pipeline files: names, types and missing fields, but not rules between fields. For editors with the
YAML language server, such as VS Code with the extension YAML, write in the project's settings:

```json
{"yaml.schemas": {"windows_pipeline/config/pipeline.schema.json": "pipelines/*.yaml"}}
```

Where the wheel is installed into `.venv`, the file is below `.venv/lib/python3.11/site-packages/`.
A file that `windows-pipeline new` writes names no schema: its path differs from machine to machine.
"""


def page_of(
    root: type[BaseModel], schema: dict[str, Any], examples: Mapping[str, str] | None = None
) -> str:
    """Returns the page of a model's files, as Markdown.

    Args:
        root: The model.
        schema: Its schema.
        examples: What a file says of fields whose types have no example, as YAML: by the names of
            model and field (`Source.path`), or of a field in many models (`column`).
    """
    return _Page(root, schema, examples or {}).text()


class _Page:
    """The page, with the sections and schemas that its parts refer to."""

    def __init__(
        self, root: type[BaseModel], schema: dict[str, Any], examples: Mapping[str, str]
    ) -> None:
        self._examples = examples
        self._sections = {section.model.__name__: section for section in sections(root)}
        self._definitions = {**schema["$defs"], root.__name__: schema}

    def text(self) -> str:
        parts = [_HEAD, *map(self._part, self._sections.values()), self._types(), _TAIL]
        return "\n".join(parts)

    def _part(self, section: Section) -> str:
        lines = [f"## {_title(section)}", "", _cell(summary(section.model)), ""]
        if section.inherits is not None:
            base = self._sections[section.inherits.__name__]
            also = "Besides these, it" if section.fields else "It"
            lines += [f"{also} has the fields of {_link(base)}.", ""]
        if section.fields:
            lines += [
                "| field | type | default | meaning | example |",
                "| --- | --- | --- | --- | --- |",
            ]
            lines += [
                self._row(section, name, info)
                for name, info in section.fields.items()
                if section.inherits is None or not _is_kind(info)
            ]
            lines.append("")
        return "\n".join(lines)

    def _row(self, section: Section, name: str, info: FieldInfo) -> str:
        written = written_name(name, info)
        schema = self._schema(section.model, written)
        cells = (
            f"`{written}`",
            self._type(schema),
            _default(info),
            _cell(meaning(section.model, name)),
            self._example(section.model, written, schema),
        )
        return f"| {' | '.join(cells)} |"

    def _example(self, model: type[BaseModel], name: str, schema: dict[str, Any]) -> str:
        names = (f"{model.__name__}.{name}", name)
        known = next((self._examples[each] for each in names if each in self._examples), None)
        value = _example_of(schema) if known is None else known
        return "" if value is None else f"`{name}: {_value(value)}`"

    def _schema(self, model: type[BaseModel], name: str) -> dict[str, Any]:
        """The schema of a field; for a base model, which has no schema itself, that of a kind."""
        for other in self._sections.values():
            if issubclass(other.model, model) and other.model.__name__ in self._definitions:
                found: dict[str, Any] = self._definitions[other.model.__name__]["properties"][name]
                if other.model is model or "const" not in found:
                    return found
                return {"enum": list(self._kinds(model, name))}
        raise LookupError(f"{model.__name__}.{name} must be in the schema")

    def _kinds(self, model: type[BaseModel], name: str) -> Iterator[str]:
        """The values of a field that has another single value in each kind of a model."""
        for other in self._sections.values():
            if issubclass(other.model, model):
                field = self._definitions.get(other.model.__name__, {})
                yield from [field["properties"][name]["const"]] if field else []

    def _type(self, schema: dict[str, Any]) -> str:
        match schema:
            case {"$ref": reference}:
                return _link(self._sections[reference.rsplit("/", 1)[1]])
            case {"$comment": name}:
                return f"[{name}](#types)"
            case {"const": value}:
                return f"`{value}`"
            case {"enum": values}:
                return _any_of([f"`{value}`" for value in values])
            case {"anyOf": options} | {"oneOf": options}:
                return self._one_of([each for each in options if each != {"type": "null"}])
            case {"patternProperties": fields}:
                (value,) = fields.values()
                return f"names, each with {self._type(value)}"
            case {"additionalProperties": dict() as value}:
                return f"names, each with {self._type(value)}"
            case {"items": value}:
                return f"list of {self._type(value)}"
            case _:
                return _plain_type(schema.get("type", []))

    def _one_of(self, options: Sequence[dict[str, Any]]) -> str:
        bases = {self._base(each) for each in options}
        base = bases.pop() if len(bases) == 1 and len(options) > 1 else None
        if base is not None:
            return _link(self._sections[base])
        return _any_of([self._type(each) for each in options])

    def _base(self, schema: dict[str, Any]) -> str | None:
        name = schema.get("$ref", "").rsplit("/", 1)[-1]
        inherits = self._sections[name].inherits if name in self._sections else None
        return None if inherits is None else inherits.__name__

    def _types(self) -> str:
        lines = ["## Types", "", "| type | example | is refused |", "| --- | --- | --- |"]
        every = [
            kind
            for section in self._sections.values()
            for info in section.fields.values()
            for kind in named_types(info)
        ]
        # Of several types with the same name, only the first is listed.
        found = {kind.name: kind for kind in reversed(every)}
        for name, kind in sorted(found.items()):
            refused = "<br>".join(_cell(text) for text in refusals(kind.annotation))
            lines.append(f"| {name} | `{_value(kind.example)}` | {refused} |")
        return "\n".join([*lines, ""])


_PLAIN_TYPES = {
    "string": "text",
    "boolean": "`true` or `false`",
    "integer": "whole number",
    "number": "number",
    "object": "mapping",
    "array": "list",
}


def _plain_type(kinds: str | list[str]) -> str:
    names = [kinds] if isinstance(kinds, str) else kinds
    return _any_of([_PLAIN_TYPES[name] for name in names]) if names else "any value"


def _title(section: Section) -> str:
    path = ".".join(section.path) or "The file"
    kinds = [
        f"{name}: {get_args(info.annotation)[0]}"
        for name, info in section.fields.items()
        if _is_kind(info)
    ]
    return f"{path}, {kinds[0]}" if kinds else path


def _is_kind(info: FieldInfo) -> bool:
    """Whether a field has a single value, by which a mapping belongs to one of several models."""
    is_literal = get_origin(info.annotation) is Literal
    return is_literal and len(get_args(info.annotation)) == 1 and info.is_required()


def _link(section: Section) -> str:
    title = _title(section)
    anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
    return f"[{title}](#{anchor})"


def _any_of(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    default = default_of(info)
    return "" if default is None or isinstance(default, (dict, list)) else f"`{_value(default)}`"


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _example_of(schema: dict[str, Any]) -> object:
    match schema:
        case {"examples": [first, *_]}:
            return first
        case {"const": value}:
            return value
        case {"enum": values}:
            others = [value for value in values if value != schema.get("default")]
            return others[0]
        case {"type": "boolean"}:
            return not schema.get("default", False)
        case {"type": "integer"}:
            return 1000
        case {"anyOf": [first, *_]}:
            return _example_of(first)
        case _:
            return None
