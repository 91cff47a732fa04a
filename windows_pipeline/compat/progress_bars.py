"""Turns Great Expectations' progress bars off; the type of this setting has no public name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from great_expectations.data_context import AbstractDataContext


def without_progress_bars(context: AbstractDataContext) -> None:
    """Has the validations of a context print no progress."""
    # Imported here, as the import takes seconds.
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context.variables.progress_bars = ProgressBarsConfig(globally=False)
