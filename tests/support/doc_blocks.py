"""The fenced blocks of README, CONTRIBUTING and docs, each with the job that its language gives it.

A page needs no entry anywhere: `PAGES` are collected. How to write a block:

- ``python`` runs, ``sql`` too, in order and in one namespace a page; a ``text`` block right after
  one is what it prints;
- ``yaml`` is a pipeline, or a part of a pipeline or of the settings; `<!-- yaml: other -->` on the
  line before it says that it is neither;
- ``sh``, ``bash`` or no language are commands; ``console`` commands after ``$``, and what they
  print;
- ``json``, ``jsonl``, ``csv``, ``toml`` and ``nginx`` are parsed;
- ``text`` is read by nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
# The changelog names what is gone, but its blocks and links have to be right, too.
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
PROGRAMS, COMMANDS = ("python", "sql"), ("sh", "bash", "", "console")
DATA = ("json", "jsonl", "csv", "toml", "nginx")
LANGUAGES = (*PROGRAMS, *COMMANDS, *DATA, "yaml", "text")

FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>```+)(?P<language>[^`\n]*)\n(?P<code>.*?)^ *(?P=fence) *$",
    re.DOTALL | re.MULTILINE,
)
_MARKER = re.compile(r"<!-- *yaml: *(\w+) *-->\s*\Z")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Attributes:
        page: The page's file.
        line: The line of the page on which its code begins.
        language: What follows the opening fence; empty for none.
        code: The text between the fences, without the fences' indentation.
        marker: The word of a comment `<!-- yaml: word -->` right before it; empty without one.
        expected: What the block prints, as a text block right after it says; None without one.
        is_output: Whether it is what the program right before it prints.
    """

    page: Path
    line: int
    language: str
    code: str
    marker: str = ""
    expected: str | None = None
    is_output: bool = False

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line}"


@cache
def blocks_of(page: Path) -> tuple[Block, ...]:
    """The blocks of a page, in its order."""
    return tuple(blocks_in(page.read_text(), page))


def blocks_in(text: str, page: Path) -> list[Block]:
    """The blocks of a page's text."""
    found = list(FENCE.finditer(text))
    blocks: list[Block] = []
    for number, here in enumerate(found):
        before, after = found[number - 1] if number else None, (*found, None)[number + 1]
        marker = _MARKER.search(text[: here.start()])
        blocks.append(
            Block(
                page,
                text[: here.start("code")].count("\n") + 1,
                here["language"].strip(),
                re.sub(rf"^ {{,{len(here['indent'])}}}", "", here["code"], flags=re.MULTILINE),
                marker[1] if marker else "",
                after["code"] if after and _is_output(text, here, after) else None,
                before is not None and _is_output(text, before, here),
            )
        )
    return blocks


def _is_output(text: str, program: re.Match[str], here: re.Match[str]) -> bool:
    """Whether a block follows a program's with nothing between them."""
    is_program = program["language"].strip() in PROGRAMS
    is_text = here["language"].strip() in ("", "text")
    return is_program and is_text and not text[program.end() : here.start()].strip()


def pages_with(*languages: str) -> list[Path]:
    """The pages that have a block in one of some languages."""
    return [page for page in PAGES if any(one.language in languages for one in blocks_of(page))]


def name_of(page: Path) -> str:
    """A page's path in the repository, as a test's id."""
    return page.relative_to(ROOT).as_posix()
