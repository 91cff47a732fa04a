"""A fault: an error in words for the user, with the exit status of the command."""

from __future__ import annotations

from dataclasses import dataclass

from windows_pipeline.text.values import cut

UNEXPECTED = 1
"""The exit status for an error that nobody expected."""
USERS = 2
"""The exit status for wrong arguments, files or tables."""
BAD_FILE = 3
"""The exit status for bad landed files (rule A8)."""
MACHINE = 4
"""The exit status for a failure of the machine: disk, memory, rights, ports, installed parts."""
_MOST_CHARACTERS = 300


@dataclass(frozen=True)
class Fault:
    """What is wrong, why, and what helps.

    Attributes:
        title: Which table or file, and what is wrong with it.
        cause: What the system said; empty if the title says all.
        fix: What the user can do; empty if the title says that, too.
        status: The exit status of a command.
        is_foreign: Whether another program raised the error, so that its trace may help.
    """

    title: str
    cause: str = ""
    fix: str = ""
    status: int = USERS
    is_foreign: bool = True

    @property
    def is_unexpected(self) -> bool:
        """Whether nobody expected the error, so that only its trace says more."""
        return self.status == UNEXPECTED

    def __str__(self) -> str:
        """The fault as lines, one for each of its parts."""
        return "\n  ".join(
            part for part in (self.title, cut(self.cause, _MOST_CHARACTERS), self.fix) if part
        )
