"""The generated files with their texts."""

from __future__ import annotations

import json
from pathlib import Path

from tools.reference.examples import EXAMPLES
from tools.reference.page import page_of
from tools.reference.schema import schema_of
from windows_pipeline.config import Pipeline

_ROOT = Path(__file__).parents[2]
PAGE = _ROOT / "docs" / "reference" / "pipeline.md"
SCHEMA = _ROOT / "windows_pipeline" / "config" / "pipeline.schema.json"


def generated() -> dict[Path, str]:
    """Returns the text of each generated file."""
    schema = schema_of(Pipeline)
    text = json.dumps(schema, indent=1, ensure_ascii=False, sort_keys=True)
    return {PAGE: page_of(Pipeline, schema, EXAMPLES), SCHEMA: f"{text}\n"}
