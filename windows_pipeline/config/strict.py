"""The base of the models of a pipeline's file."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from windows_pipeline.text.problems import FieldProblems, Problem


class Strict(BaseModel):
    """A frozen model that refuses unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def refuse(problems: list[Problem]) -> None:
    """Raises the problems of a model, if there are any.

    Raises:
        FieldProblems: The list is not empty.
    """
    if problems:
        raise FieldProblems(problems)
