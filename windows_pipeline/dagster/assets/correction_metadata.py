"""The metadata that Dagster shows for each day that a correction changed."""

from __future__ import annotations

from datetime import date

import dagster as dg

from windows_pipeline.dagster.assets.metadata import Metadata
from windows_pipeline.jobs.correction.run import CorrectionResult


def correction_metadata(result: CorrectionResult, cause: str) -> dict[date, Metadata]:
    """The correction's number, its cause and what changed, by each day that it changed."""
    of_all: Metadata = {
        "correction": dg.MetadataValue.int(result.number or 0),
        "cause": dg.MetadataValue.text(cause),
    }
    found = {}
    for day, corrected in result.by_day.items():
        counts = {f"windows_{kind}": number for kind, number in corrected.windows.items()}
        counts["alerts_retracted"] = corrected.alerts_retracted
        counts["alerts_raised"] = corrected.alerts_raised
        found[day] = of_all | {name: dg.MetadataValue.int(of) for name, of in counts.items()}
    return found
