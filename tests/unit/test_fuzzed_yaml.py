"""Any bytes as a pipeline's file or as settings end in a value or in the product's own error."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.mutations import mutated
from tests.support.pipeline_texts import FLIGHTS, PIPELINES, changed, line_of, problems_of
from windows_pipeline.config import ConfigError, load_pipeline
from windows_pipeline.settings import SettingsError, load_settings
from windows_pipeline.text.limits import MAX_DEPTH, MAX_ENTRIES, MAX_PROBLEMS, MAX_VALUES

SIGNS = [
    *(b": ", b":", b"- ", b"\n", b"\n  ", b"\t", b"'", b'"', b"#", b"? ", b"|\n", b">", b"%", b"@"),
    *(b"[", b"]", b"{", b"}", b",", b"&a ", b"*a", b"!!int ", b"!!set ", b"!!timestamp ", b"!a "),
    *(b"<<: ", b"---\n", b"...\n", b"~", b"null", b"true", b"1e999", b".nan", b"0x1F", b"1:30"),
    *(b"2013-02-30", b"-1", b"0", b"9" * 50, b"\xff", b"\x00", b"\xef\xbb\xbf", b"\xc2\x85"),
    *(b'"\\0"', b'"\\ud800"', b'"a\\nb"', b"\xe2\x80\xae", b"\r", b"unbounded", b"5 rows", b"50 %"),
]
OTHER_KINDS = [
    "kind: session\n    gap: 5 minutes",
    "kind: slide_rows\n    preceding: 5 rows\n    following: 1 row",
    "kind: count\n    size: 5\n    advance: 2",
]
SETTINGS = (PIPELINES.parent / "settings.yaml").read_bytes()
LONGEST_ERROR = 4_500
SECONDS = 10.0
"""Steps that are quadratic in the file's size would take minutes or more."""


def require_readable(problems: tuple[str, ...], file: Path) -> None:
    """A problem is one line that any terminal shows, and names the file."""
    assert 0 < len(problems) <= MAX_PROBLEMS + 1
    for problem in problems:
        assert problem.startswith(f"{file}:")
        assert problem.isprintable(), problem
        assert len(problem) < LONGEST_ERROR


def load_bytes(folder: Path, content: bytes) -> bool:
    """Whether the bytes are a pipeline; their problems must be readable."""
    file = folder / "flights.yaml"
    file.write_bytes(content)
    try:
        load_pipeline(file)
    except ConfigError as error:
        require_readable(error.problems, file)
        return False
    return True


def load_settings_bytes(folder: Path, content: bytes) -> bool:
    file = folder / "settings.yaml"
    file.write_bytes(content)
    try:
        load_settings(folder)
    except SettingsError as error:
        require_readable(tuple(str(error).split("\n")), file)
        return False
    return True


def fuzz_pipelines(folder: Path, seeds: range) -> None:
    kinds = ["kind: sliding\n    time_difference: 60 minutes", *OTHER_KINDS]
    whole = [FLIGHTS.replace(kinds[0], kind).encode() for kind in kinds]
    loaded = [load_bytes(folder, mutated(Random(seed), whole[seed % 4], SIGNS)) for seed in seeds]
    assert {True, False} == set(loaded)  # else the changes are too few, or too many


def fuzz_settings(folder: Path, seeds: range) -> None:
    loaded = [load_settings_bytes(folder, mutated(Random(seed), SETTINGS, SIGNS)) for seed in seeds]
    assert {True, False} == set(loaded)


def test_a_changed_pipeline_is_right_or_refused(tmp_path: Path) -> None:
    fuzz_pipelines(tmp_path, range(200))


def test_changed_settings_are_right_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WINDOWS_PIPELINE_SETTINGS", raising=False)
    fuzz_settings(tmp_path, range(200))


@pytest.mark.long
def test_many_changed_files_are_right_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WINDOWS_PIPELINE_SETTINGS", raising=False)
    fuzz_pipelines(tmp_path, range(1_000, 9_000))
    fuzz_settings(tmp_path, range(1_000, 9_000))


@given(
    st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode(errors="replace"))
)
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_bytes_are_right_or_refused(tmp_path: Path, content: bytes) -> None:
    assert not load_bytes(tmp_path, content)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.dates(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = [
    *(
        "name",
        "source",
        "partitions",
        "windows",
        "limits",
        "  path",
        "  format",
        "  columns",
        "  key",
    ),
    *("  event_time", "  arrival", "  max_ahead", "  start", "    flight", "    kind", "    grace"),
    *("    time_difference", "    aggregates", "      avg_dep_delay", "    alerts", "        when"),
    *("        severity", "    emit_empty", "    trigger", "  stream", "  encoding", "  delimiter"),
    *("  source_partition", "  idle_after", "  max_per_batch", "    first_window_start"),
]


@given(st.sampled_from(FIELDS), VALUES)
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_value_of_a_field_is_right_or_refused(
    tmp_path: Path, field: str, value: object
) -> None:
    lines = FLIGHTS.split("\n")
    found = [n for n, line in enumerate(lines) if line.startswith(f"{field}:")]
    level = len(field) - len(field.lstrip())
    parent = {
        0: "name:",
        2: "source:",
        4: "  hourly:",
        6: "    aggregates:",
        8: "      disruption:",
    }
    at = (
        found[0]
        if found
        else next(n for n, line in enumerate(lines) if line.startswith(parent[level])) + 1
    )
    text = f"{field}: {json.dumps(value, default=str)}"
    load_bytes(tmp_path, "\n".join([*lines[:at], text, *lines[at + len(found) :]]).encode())


def test_a_file_has_at_most_so_many_levels(tmp_path: Path) -> None:
    deep = "{a: " * (MAX_DEPTH - 1) + "1" + "}" * (MAX_DEPTH - 1)
    assert not any("levels" in one for one in problems_of(tmp_path, f"name: {deep[4:-1]}"))
    (problem,) = problems_of(tmp_path, f"# deep\nname: {deep}")
    assert problem == (
        f"{tmp_path / 'flights.yaml'}:2: is nested too deeply: a file must have at most 20 "
        "levels, and here level 21 begins; simplify it"
    )


def with_columns(count: int) -> str:
    more = "".join(f"    c{number}: bigint\n" for number in range(count - 9))
    return changed("    flight: bigint\n", f"    flight: bigint\n{more}")


def test_a_mapping_has_at_most_so_many_entries(tmp_path: Path) -> None:
    assert load_bytes(tmp_path, with_columns(MAX_ENTRIES).encode())
    text = with_columns(MAX_ENTRIES + 1)
    (problem,) = problems_of(tmp_path, text)
    first = line_of(text, "    origin: string")
    assert problem == (
        f"{tmp_path / 'flights.yaml'}:{first + MAX_ENTRIES}: a mapping or list must have at most "
        f"2,000 entries, and the one that begins in line {first} has more; remove entries"
    )


def test_a_file_has_at_most_so_many_values(tmp_path: Path) -> None:
    rows = ("[" + "1, " * 1_900 + "1], ") * (MAX_VALUES // 1_900 + 1)
    (problem,) = problems_of(tmp_path, f"name: [{rows}[1]]")
    assert problem.endswith(
        ":1: a file must have at most 10,000 names and values, but has more from here on; divide "
        "it into several files, or remove some"
    )


def test_an_error_lists_so_many_mistakes(tmp_path: Path) -> None:
    more = "".join(f"    c{number}: bgint\n" for number in range(250))
    problems = problems_of(tmp_path, changed("    flight: bigint\n", f"    flight: bigint\n{more}"))
    assert len(problems) == MAX_PROBLEMS + 1
    assert problems[-1].endswith("flights.yaml: has 150 more mistakes; correct those above first")


def test_a_column_name_has_at_most_so_many_characters(tmp_path: Path) -> None:
    assert load_bytes(tmp_path, changed("flight: bigint", f"{'a' * 255}: bigint").encode())
    (problem,) = problems_of(tmp_path, changed("flight: bigint", f"{'a' * 256}: bigint"))
    assert problem.endswith("is longer than 255 characters; rename the column")


@pytest.mark.parametrize("escape", [r"\0", r"\ud800", r"a\udfffb"])
def test_an_escape_for_what_is_no_text_is_refused(tmp_path: Path, escape: str) -> None:
    text = changed("path: data/flights", f'path: "{escape}"')
    (problem,) = problems_of(tmp_path, text)
    line = line_of(text, f'path: "{escape}"')
    assert problem == (
        f"{tmp_path / 'flights.yaml'}:{line}: source.path: holds an escape for NUL or half a "
        r"character (\0, \ud800); write text without it"
    )


def test_a_line_break_in_a_name_breaks_no_error(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path, f'{FLIGHTS}"a\\nb\\u202e": 1\n')
    assert r": a\nb\u202e: 'a\nb\u202e' is not a field here" in problem


SLOW = ["# a\n" * 2**18, "\n" * (2**20 - 1), "a: 'b\n" + "x\n" * (2**19 - 9), "&a " * 2**18]
QUICK = ["[" * 2**20, "{a: " * 2**18, "- " * 2**19, "? " * 2**19, "- 1\n" * 2**18]


@pytest.mark.parametrize(
    "text",
    [*QUICK, *(pytest.param(text, marks=pytest.mark.long) for text in SLOW)],
    ids=range(len(QUICK + SLOW)),
)
def test_the_largest_file_is_refused_in_time(tmp_path: Path, text: str) -> None:
    began = time.monotonic()
    problems_of(tmp_path, text)
    assert time.monotonic() - began < SECONDS


def test_a_deep_stack_changes_nothing(tmp_path: Path) -> None:
    """As in a run of Dagster, where a hundred calls and more stand above the loader."""

    def called(times: int) -> bool:
        return load_bytes(tmp_path, FLIGHTS.encode()) if times == 0 else called(times - 1)

    assert sys.getrecursionlimit() == 1_000
    assert called(300)
