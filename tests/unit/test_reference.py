"""The reference page and the JSON Schema are made of the models, and say what the loader says."""

from __future__ import annotations

import json
from datetime import date, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import jsonschema
import pytest
import yaml
from pydantic import BaseModel, Field, PlainValidator

from tests.support.doc_blocks import PAGES, blocks_of
from tests.support.doc_yaml import in_a_pipeline, part_of
from tests.support.pipeline_texts import FLIGHTS, changed, of_kind
from tools.reference.examples import EXAMPLES
from tools.reference.files import PAGE, SCHEMA, generated
from tools.reference.models import meaning, sections
from tools.reference.page import page_of
from tools.reference.schema import schema_of
from windows_pipeline.config import Pipeline, load_pipeline
from windows_pipeline.config.fields import DurationMs, Identifier
from windows_pipeline.config.strict import Strict

ROOT = Path(__file__).parents[2]
MADE_AGAIN = "must be what the models say; run: python -m tools.reference"


def plain(value: Any) -> Any:
    """Data of YAML as JSON has it: an editor reads days and times as text."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value.isoformat() if isinstance(value, (date, datetime)) else value


@cache
def of_pipelines() -> Any:
    return jsonschema.Draft202012Validator(schema_of(Pipeline))


def refused(data: object) -> list[str]:
    """The paths of what the schema refuses."""
    errors = of_pipelines().iter_errors(plain(data))
    return [".".join(map(str, error.absolute_path)) for error in errors]


@pytest.mark.parametrize("file", [PAGE, SCHEMA], ids=["page", "schema"])
def test_a_generated_file_is_what_the_models_say(file: Path) -> None:
    """`python -m tools.reference` writes it."""
    assert file.read_text() == generated()[file], f"{file.relative_to(ROOT)} {MADE_AGAIN}"


def test_the_page_has_each_field_of_each_model() -> None:
    found = sections(Pipeline)
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    for section in found:
        for name in section.fields:
            text = meaning(section.model, name)
            assert text, (section.model, name)
            assert "None" not in text, (section.model, name, text)
            written = section.model.model_fields[name].alias or name
            assert any(row.startswith(f"| `{written}` |") for row in rows), (section.model, name)


def test_each_field_has_an_example_that_the_schema_accepts() -> None:
    schema, rows, used = schema_of(Pipeline), PAGE.read_text().splitlines(), set()
    for section in sections(Pipeline):
        below = [each.model for each in sections(Pipeline) if issubclass(each.model, section.model)]
        of_model = next(
            (schema["$defs"][each.__name__] for each in below if each.__name__ in schema["$defs"]),
            schema,
        )
        for name, info in section.fields.items():
            written = info.alias or name
            keys = (f"{section.model.__name__}.{written}", written)
            used |= {key for key in keys if key in EXAMPLES}
            text = next((EXAMPLES[key] for key in keys if key in EXAMPLES), None)
            if text is not None:
                whole = {"$defs": schema["$defs"], **of_model["properties"][written]}
                value = plain(yaml.safe_load(f"{written}: {text}")[written])
                jsonschema.Draft202012Validator(whole).validate(value)
    assert used == set(EXAMPLES)
    assert not [row for row in rows if row.startswith("| `") and row.endswith("|  |")]


def test_the_schema_is_one_and_is_in_the_package() -> None:
    schema = json.loads((files("windows_pipeline.config") / SCHEMA.name).read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    for name, model in schema["$defs"].items():
        for field, of_field in model["properties"].items():
            if "default" in of_field:
                whole = {"$defs": schema["$defs"], **of_field}
                jsonschema.Draft202012Validator(whole).validate(of_field["default"])
            for example in of_field.get("examples", []):
                jsonschema.Draft202012Validator(of_field).validate(example)
            assert of_field["description"], (name, field)


PIPELINES = sorted((ROOT / "pipelines").glob("*.yaml"))


@pytest.mark.parametrize("file", PIPELINES, ids=lambda file: file.name)
def test_the_schema_accepts_the_projects_pipelines(file: Path) -> None:
    assert refused(yaml.safe_load(file.read_text())) == []


BLOCKS = [
    block
    for page in PAGES
    for block in blocks_of(page)
    if block.language == "yaml" and block.marker not in ("other", "settings")
]


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_the_schema_accepts_the_pages_pipelines(block: Any) -> None:
    data = yaml.safe_load(block.code)
    part = block.marker or part_of(data)
    if part != "settings":
        whole = data if part == "pipeline" and "name" in data else in_a_pipeline(str(part), data)
        assert refused(whole) == []


KINDS = [
    "kind: tumble_rows\n    size: 5 rows",
    "kind: slide_rows\n    preceding: ' UNBOUNDED  Rows'\n    following: 2 rows",
    "kind: session_rows\n    gap: 1 Hour 30min",
    "kind: count\n    size: 7\n    advance: 5 rows\n    short_first: true",
    "kind: hopping\n    size: 1 h\n    advance: +5 min\n    trigger: {early_every: update}",
    "kind: tumbling\n    size: 1 day\n    first_window_start: 2013-01-01T00:00:00+01:00",
]


@pytest.mark.parametrize("fields", KINDS)
def test_the_schema_accepts_each_kind_as_the_loader_does(tmp_path: Path, fields: str) -> None:
    file = tmp_path / "flights.yaml"
    file.write_text(of_kind(fields))
    load_pipeline(file)
    assert refused(yaml.safe_load(file.read_text())) == []


MISTAKES = [
    ("time_difference: 60 minutes", "time_difference: 60", "windows.hourly"),
    ("kind: sliding", "kind: slidng", "windows.hourly"),
    ("emit_empty: true", "emit_empty: 'yes'", "windows.hourly"),
    ("format: jsonl", "format: json", "source.format"),
    ("dep_delay: double  ", "dep_delay: float  ", "source.columns.dep_delay"),
    ("start: 2013-01-01", "start: January", "partitions.start"),
    ("name: flights", "name: Flights", "name"),
    ("name: flights", "name: flights\nlimits: {late: 5}", "limits.late"),
    ("key: origin", "key: [origin, 'no. 1']", "source.key"),
    ("dep_delay: double  ", "dep_delay: {type: double, from: card.x}  ", "source.columns.dep_del"),
    ("avg(dep_delay)", "mean dep_delay", "windows.hourly"),
    ("emit_empty: true", "process: {function: 'm:f', columns: {n: array<x>}}", "windows.hourly"),
    ("kind: sliding", "kind: slide_rows\n    preceding: three", "windows.hourly"),
    ("name: flights", "name: flights\nchecks: {a: {expect_nothing: {}}}", "checks.a"),
    (
        "name: flights",
        "name: flights\nchecks: {a: {distinct: {column: dest, least: -1}}}",
        "checks.a.distinct",
    ),
]


@pytest.mark.parametrize(("old", "new", "path_start"), MISTAKES)
def test_the_schema_refuses_what_types_can_say(old: str, new: str, path_start: str) -> None:
    found = refused(yaml.safe_load(changed(old, new)))
    assert found
    assert all(path.startswith(path_start) for path in found), found
    assert refused(yaml.safe_load(FLIGHTS)) == []


class Part(Strict):
    """A part.

    Attributes:
        title: What it is called.
    """

    title: Identifier


class Long(Part):
    """A long part.

    Attributes:
        sort: Which it is.
        length: How long it is, ms; None for no end.
        origin: Where it is from.
    """

    sort: Literal["long"]
    length: DurationMs | None = None
    origin: Annotated[str | tuple[str, ...], PlainValidator(str)] = Field("here", alias="from")


class Wide(Part):
    """A wide part.

    Attributes:
        sort: Which it is.
    """

    sort: Literal["wide"]


class Made(Strict):
    """Something made of parts.

    Attributes:
        parts: Its parts.
        spare: More of them.
    """

    parts: dict[Identifier, Annotated[Long | Wide, Field(discriminator="sort")]]
    spare: list[Part] = Field(default_factory=list)


class Silent(Strict):
    """A model whose field has no meaning."""

    field: int


def test_fields_of_any_models_are_found() -> None:
    """The generator knows no model and no field by name."""
    schema = schema_of(Made)
    page = page_of(Made, schema)
    assert "| `parts` | names, each with [parts.NAME](#partsname) | required | Its parts. |" in page
    assert "| `spare` | list of [parts.NAME](#partsname) |  | More of them. |  |" in page
    assert "## parts.NAME, sort: long\n\nA long part.\n\nBesides these, it has the fields" in page
    assert (
        "| `length` | [duration](#types) |  | How long it is; left out for no end. | "
        "`length: 90 minutes` |"
    ) in page
    assert "| `from` | any value | `here` | Where it is from. |  |" in page
    assert "| `title` | [name](#types) | required | What it is called. | `title: hourly` |" in page
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid({"parts": {"a": {"sort": "wide", "title": "b"}}})
    assert validator.is_valid({"parts": {"a": {"sort": "long", "title": "b", "from": "c"}}})
    assert not validator.is_valid({"parts": {"a": {"sort": "long", "title": "b", "origin": "c"}}})
    assert not validator.is_valid({"parts": {"A": {"sort": "wide", "title": "b"}}})
    assert not validator.is_valid({"parts": {"a": {"sort": "wide"}}})


def test_a_field_without_a_meaning_is_an_error() -> None:
    with pytest.raises(LookupError, match=r"Silent\.field must have a line under 'Attributes:'"):
        meaning(Silent, "field")


def test_a_docstrings_section_ends_where_the_next_one_begins() -> None:
    class Described(BaseModel):
        """A model.

        Attributes:
            first: One
                and more: of it.
            second: Two.

        Note:
            third: No attribute.
        """

        first: int
        second: int
        third: int

    assert [meaning(Described, name) for name in ("first", "second")] == [
        "One and more: of it.",
        "Two.",
    ]
    with pytest.raises(LookupError):
        meaning(Described, "third")
