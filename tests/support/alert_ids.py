"""The id of an alert as docs/query.md says that it is made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence


def digest(named: Sequence[object]) -> str:
    """The first 12 hex digits of the SHA-256 of a JSON list without blanks."""
    text = json.dumps(list(named), separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]
