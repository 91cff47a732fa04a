"""What the reader of a run says of a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_WRONG_TYPE = "wrong_type: "


@dataclass(frozen=True, slots=True)
class Rejection:
    """Records of a sample that a run rejects for one reason.

    Attributes:
        reason: The reason, as rejected_records has it.
        count: How many records have it.
        example: The text of one of them.
    """

    reason: str
    count: int
    example: str

    @property
    def column(self) -> str | None:
        """The column whose type a value does not fit; None for another reason."""
        is_of_type = self.reason.startswith(_WRONG_TYPE)
        return self.reason.removeprefix(_WRONG_TYPE).split(":")[0] if is_of_type else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the reader of a run says of a sample.

    Attributes:
        accepted: How many records it accepts.
        rejections: The reasons of the others, most frequent first.
    """

    accepted: int
    rejections: Sequence[Rejection]

    @property
    def judged(self) -> int:
        """How many records were read."""
        return self.accepted + sum(each.count for each in self.rejections)
