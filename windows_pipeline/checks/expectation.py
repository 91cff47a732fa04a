"""A Great Expectations rule: a query that finds the rows that fail."""

from __future__ import annotations

from typing import Any, ClassVar

from great_expectations.constants import MAX_RESULT_RECORDS
from great_expectations.expectations.core import UnexpectedRowsExpectation

MOST_ROWS: int = MAX_RESULT_RECORDS
"""How many failing rows it fetches at most; where it fetched so many there may be more."""


class NoFailingRows(UnexpectedRowsExpectation):
    """Expects that a query over `{batch}` finds no row; runs it once.

    The class that it extends runs the query a second time, to count what it finds.
    """

    metric_dependencies: ClassVar[tuple[str, ...]] = ("unexpected_rows_query.table",)

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,
        execution_engine: object = None,
    ) -> dict[str, Any]:
        del runtime_configuration, execution_engine
        rows = metrics["unexpected_rows_query.table"]
        return {"success": not rows, "result": {"details": {"unexpected_rows": rows}}}
