"""The table properties in which the pipeline stores what readers of a table need to know."""

from __future__ import annotations

DEFINITION = "windows_pipeline.definition"
"""The table property with the definition that the rows follow; comparisons use its digest."""
DIGEST = "windows_pipeline.digest"
"""The table property with the digest of the definition that the rows follow."""
CORRECTION_BEGUN = "windows_pipeline.correction"
"""The property of `corrections` with the number of the newest correction."""
CORRECTION_FINISHED = "windows_pipeline.corrections_finished"
"""The number of the newest finished correction."""
CORRECTION_DETAILS = "windows_pipeline.correction_details"
"""The other fields of the newest correction, as JSON."""
