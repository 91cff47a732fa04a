"""What is compared of two engines' answers: exact sums that no order of rows changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields

_PLACE = "mod(window_end_ms + 31 * k, 1009)"

CHECKSUMS = tuple(
    f"sum({term})"
    for term in ("1", "n", "s", "m", _PLACE, *(f"{_PLACE} * {name}" for name in "nsm"))
)
"""SQL over windows (k, window_end_ms, n, s, m), all bigint: the fields of `Answer`, in order."""


class DifferentAnswersError(Exception):
    """Two engines computed something else; their times can't be compared."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Sums over all windows of (key, end, count n, sum s, maximum m).

    Attributes:
        windows: How many windows.
        counts: The sum of n.
        sums: The sum of s.
        maxima: The sum of m.
        weights: The sum of the windows' weights w: (end in ms + 31 * key) mod 1009.
        weighted_counts: The sum of w * n.
        weighted_sums: The sum of w * s.
        weighted_maxima: The sum of w * m.
    """

    windows: int
    counts: int
    sums: int
    maxima: int
    weights: int
    weighted_counts: int
    weighted_sums: int
    weighted_maxima: int


def require_same(what: str, answers: Mapping[str, Answer]) -> None:
    """Refuses answers of which one differs from the first.

    Raises:
        DifferentAnswersError: It names the engines and each field that differs.
    """
    first_name, first = next(iter(answers.items()))
    for name, answer in answers.items():
        pairs = zip(fields(Answer), astuple(first), astuple(answer), strict=True)
        wrong = [f"{field.name} {ours} and {own}" for field, ours, own in pairs if ours != own]
        if wrong:
            raise DifferentAnswersError(f"{what}: {first_name} and {name}: {', '.join(wrong)}")
