"""Writes docs/reference/pipeline.md and the JSON Schema: `python -m tools.reference`."""

from __future__ import annotations

from tools.reference.files import generated

for file, text in generated().items():
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
