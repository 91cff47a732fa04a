"""Mistakes in a pipeline's file: each has a field, its value, what is wrong and the fix."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import ClassVar

FieldPath = tuple[str, ...]
_MOST_LISTED = 30


@dataclass(frozen=True, slots=True)
class Problem:
    """A mistake in one field.

    Attributes:
        path: The path of the field, relative to the model that found the problem.
        value: The value that was read; None for no value.
        text: What is wrong and the fix, without the value.
    """

    path: FieldPath
    value: object
    text: str

    def __str__(self) -> str:
        """Returns the problem on one line: the field, the value, what is wrong, the fix."""
        value = "" if self.value is None else f"{self.value!r} "
        return f"{'.'.join(self.path)}: {value}{self.text}"


class FieldProblems(ValueError):
    """Problems between several fields of a model; pydantic hands it on as its error's cause."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        """Sets the problems of one model."""
        self.problems = tuple(problems)
        super().__init__("; ".join(str(problem) for problem in self.problems))


class RefusedError(Exception):
    """What was asked for cannot be done as things are; the message says what to do.

    Attributes:
        exit_status: The exit status of a command.
    """

    exit_status: ClassVar[int] = 2


class ConfigError(ValueError):
    """All mistakes in one or more pipeline files.

    Attributes:
        problems: One line for each: ``file:line: field.path: 'value' what is wrong; fix``.
    """

    def __init__(self, problems: Iterable[str]) -> None:
        """Sets the lines."""
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


def nearest(name: str, known: Iterable[str], otherwise: str) -> str:
    """Returns the fix for an unknown name: the nearest known name, else the text `otherwise`."""
    near = get_close_matches(name, list(known), 1)
    return f"did you mean {near[0]!r}?" if near else otherwise


def listed(names: Iterable[str]) -> str:
    """Joins names with commas; shows the first of many and how many more there are."""
    names = list(names)
    more = len(names) - _MOST_LISTED
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:_MOST_LISTED])} and {more:,} more"


def without_value(message: str, field: str, value: object) -> str:
    """Removes field and value from the start of a message: the problem's line has both already."""
    text = message.removeprefix(f"{field}: ").removeprefix(repr(value))
    return text.removeprefix(":").strip()
