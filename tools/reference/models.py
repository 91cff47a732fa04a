"""What the models say: which there are, where each field is declared, and what it means."""

from __future__ import annotations

import builtins
import inspect
import re
import typing
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

ANY_NAME = "NAME"
"""Stands for a name that the file's author chooses, in the path of a field."""
_ATTRIBUTE = re.compile(r"(\w+): (.*)")
_UNIT = re.compile(r",( in)? ms\b")


@dataclass(frozen=True)
class Section:
    """The fields that a model adds, at the first path where a file may have them.

    Attributes:
        model: The model.
        path: The path of the mapping in the file; empty for the file itself.
        fields: The fields that no model of `inherits` has.
        inherits: The model whose section has the other fields; None for none.
    """

    model: type[BaseModel]
    path: tuple[str, ...]
    fields: dict[str, FieldInfo]
    inherits: type[BaseModel] | None


def sections(root: type[BaseModel]) -> list[Section]:
    """Returns a section for each model below a model, and for the common base of several kinds."""
    found: dict[type[BaseModel], Section] = {}
    _collect(root, (), found)
    return list(found.values())


def _collect(
    model: type[BaseModel], path: tuple[str, ...], found: dict[type[BaseModel], Section]
) -> None:
    if model in found:
        return
    known = next((base for base in model.__mro__[1:] if base in found), None)
    inherited = set() if known is None else set(known.model_fields)
    fields = {
        name: info
        for name, info in model.model_fields.items()
        if name not in inherited or _is_narrower(info, known, name)
    }
    found[model] = Section(model, path, fields, known)
    for name, info in fields.items():
        for suffix, models in _models_in(info.annotation):
            inner_path = (*path, written_name(name, info), *suffix)
            for each in _with_base(models):
                _collect(each, inner_path, found)


def _is_narrower(info: FieldInfo, base: type[BaseModel] | None, name: str) -> bool:
    """Whether a model says more of a field than the model that it inherits the field from."""
    if base is None:
        return True
    of_base = base.model_fields[name]
    return (info.annotation, info.default) != (of_base.annotation, of_base.default)


def _with_base(models: list[type[BaseModel]]) -> list[type[BaseModel]]:
    """Puts the nearest common base of several models before them."""
    if len(models) < 2:
        return models
    common = next(
        base
        for base in models[0].__mro__
        if issubclass(base, BaseModel) and all(issubclass(each, base) for each in models)
    )
    return [common, *models] if common.model_fields else models


_Place = tuple[tuple[str, ...], list[type[BaseModel]]]
"""What follows a field's name in the path of models, and the models."""


def _models_in(annotation: Any) -> list[_Place]:
    """Returns the models in a field's type, with their paths; those of a union together."""
    arguments = get_args(annotation)
    match get_origin(annotation):
        case None:
            is_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
            return [((), [annotation])] if is_model else []
        case typing.Annotated:
            return _models_in(arguments[0])
        case builtins.dict:
            return [((ANY_NAME, *suffix), models) for suffix, models in _models_in(arguments[1])]
        case _:
            paths: dict[tuple[str, ...], list[type[BaseModel]]] = {}
            for argument in arguments:
                for suffix, models in _models_in(argument):
                    paths.setdefault(suffix, []).extend(models)
            return list(paths.items())


def written_name(name: str, info: FieldInfo) -> str:
    """Returns a field's name in a file, which may be a word that Python keeps for itself."""
    return info.alias or name


def meaning(model: type[BaseModel], name: str) -> str:
    """Returns what a field means, of the docstring of the model or of the nearest base.

    Raises:
        LookupError: No docstring has the field among its attributes.
    """
    for base in model.__mro__:
        text = _attributes(base).get(name)
        if text is not None:
            return _for_readers_of_files(text)
    raise LookupError(
        f"{model.__name__}.{name} must have a line under 'Attributes:' of the model's docstring, "
        "which the reference page shows; write one"
    )


def summary(model: type[BaseModel]) -> str:
    """Returns the first paragraph of a model's docstring."""
    return " ".join(_doc(model).split("\n\n")[0].split())


def default_of(info: FieldInfo) -> object:
    """Returns a field's default as a file writes it; None where a field has none."""
    default = info.get_default(call_default_factory=True, validated_data={})
    if default is PydanticUndefined or default is None:
        return None
    annotated: Any = info.annotation
    for entry in info.metadata:
        annotated = Annotated[annotated, entry]
    return TypeAdapter(annotated).dump_python(default, mode="json")


def _doc(model: type) -> str:
    return inspect.cleandoc(model.__dict__.get("__doc__") or "")


def _attributes(model: type) -> dict[str, str]:
    """Reads the section 'Attributes:' of a model's own docstring."""
    _, _, section = _doc(model).partition("\nAttributes:\n")
    found: dict[str, str] = {}
    name = ""
    for line in section.splitlines():
        if line and not line.startswith(" "):
            break
        entry = _ATTRIBUTE.fullmatch(line.removeprefix("    "))
        if entry and not line.startswith("     "):
            name = entry[1]
            found[name] = entry[2]
        elif line.strip():
            found[name] += f" {line.strip()}"
    return found


def _for_readers_of_files(text: str) -> str:
    """Says of a file what a docstring says of Python's values: no None, no milliseconds."""
    text = _UNIT.sub("", text)
    text = re.sub(r"(?<=[;,] )None for", "left out for", text)
    text = re.sub(r"(?<=\. )None (for|stands for)", r"Left out, it stands for", text)
    return text.replace("``", "`")
