"""What every model of a pipeline's file has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from windows_pipeline.text.problems import FieldProblems, Problem


class Strict(BaseModel):
    """Takes the fields that it has, no others, and never changes."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def refuse(problems: list[Problem]) -> None:
    """Refuses a model with problems.

    Raises:
        FieldProblems: There are some.
    """
    if problems:
        raise FieldProblems(problems)
