"""What is wrong in a pipeline's file, said with place, value and cure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

FieldPath = tuple[str, ...]
_MOST_LISTED = 30


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong in one field.

    Attributes:
        path: The field, from the model that found the problem.
        value: The value, as it was read; None where there is none.
        text: What is wrong and the cure, without the value.
    """

    path: FieldPath
    value: object
    text: str

    def __str__(self) -> str:
        """The problem on one line."""
        value = "" if self.value is None else f"{self.value!r} "
        return f"{'.'.join(self.path)}: {value}{self.text}"


class FieldProblems(ValueError):
    """Problems that need several fields to see; pydantic keeps it as the error's cause."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        """Takes all problems of one model."""
        self.problems = tuple(problems)
        super().__init__("; ".join(str(problem) for problem in self.problems))


class ConfigError(ValueError):
    """All that is wrong in one or more pipeline files.

    Attributes:
        problems: One line a problem: ``file:line: field.path: 'value' what is wrong; cure``.
    """

    def __init__(self, problems: Iterable[str]) -> None:
        """Takes the lines."""
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


def nearest(name: str, known: Iterable[str], else_say: str) -> str:
    """The cure for an unknown name: the nearest known one, or else the words given."""
    near = get_close_matches(name, list(known), 1)
    return f"did you mean {near[0]!r}?" if near else else_say


def listed(names: Iterable[str]) -> str:
    """Names with commas between; of many the first."""
    each = list(names)
    more = len(each) - _MOST_LISTED
    return ", ".join(each) if more <= 0 else f"{', '.join(each[:_MOST_LISTED])} and {more:,} more"


def without_value(message: str, field: str, value: object) -> str:
    """A message that names its field and value, without them: the line has both."""
    text = message.removeprefix(f"{field}: ").removeprefix(repr(value))
    return text.removeprefix(":").strip()
