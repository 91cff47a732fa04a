"""The JSON Schema of pipeline files, for editors."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from tools.reference.models import default_of, meaning, sections, summary, written_name

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_LEFT_OUT = ("title", "discriminator", "propertyNames")
_DATA = ("default", "examples", "enum", "const")
_NAMES = ("properties", "patternProperties", "$defs")


def schema_of(root: type[BaseModel]) -> dict[str, Any]:
    """Returns the schema of a model's files, with the meaning of each field."""
    schema = root.model_json_schema()
    models = {section.model.__name__: section.model for section in sections(root)}
    _describe(schema, root)
    for name, definition in schema["$defs"].items():
        _describe(definition, models[name])
    plain: dict[str, Any] = _plain(schema)
    return {"$schema": _DIALECT, **plain}


def _describe(definition: dict[str, Any], model: type[BaseModel]) -> None:
    """Replaces pydantic's descriptions of a model and its fields by those for a file's author."""
    definition["description"] = summary(model)
    for name, info in model.model_fields.items():
        field = definition["properties"][written_name(name, info)]
        field["description"] = meaning(model, name)
        field.pop("default", None)
        default = default_of(info)
        if default is not None:
            field["default"] = default


def _plain(node: Any, *, has_names: bool = False) -> Any:
    """Drops entries that only repeat names, and closes mappings whose names have a pattern.

    Args:
        node: A part of the schema.
        has_names: Whether the keys of the node are names of fields or models.
    """
    if isinstance(node, list):
        return [_plain(each) for each in node]
    if not isinstance(node, dict):
        return node
    kept = {}
    for name, value in node.items():
        if has_names or name not in _LEFT_OUT:
            is_data = not has_names and name in _DATA
            kept[name] = (
                value if is_data else _plain(value, has_names=not has_names and name in _NAMES)
            )
    if not has_names and "patternProperties" in kept:
        kept["additionalProperties"] = False
    return kept
