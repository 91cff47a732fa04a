"""Compiled code of one process is what another one would have compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SORTS = """
import numpy as np
from windows_pipeline.compat.numba_jit import compiled

@compiled
def ordered(values):
    return np.sort(values)

@compiled
def order_of(values):
    return np.argsort(values)
"""
"""NumPy's sort and argsort compile functions of one name; a number alone makes it unique."""
STEPS = """
from windows_pipeline.compat.numba_jit import compiled
from parts import FACTOR
import parts

@compiled
def scaled(value):
    return FACTOR * parts.shifted(value)
"""
PARTS = """
from windows_pipeline.compat.numba_jit import compiled

FACTOR = {factor}

@compiled
def shifted(value):
    return value + {shift}
"""
CONSTANTS = """
import parts
from windows_pipeline.compat.numba_jit import compiled

@compiled
def of(value):
    return parts.shifted(value) + parts.shifted(1) + parts.shifted(2)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sorts.py").write_text(SORTS)
    (tmp_path / "steps.py").write_text(STEPS)
    return tmp_path


def started(folder: Path, code: str) -> subprocess.Popen[str]:
    """Python in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (folder, ROOT)))}
    return subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True
    )


def printed(processes: Sequence[subprocess.Popen[str]]) -> list[str]:
    """What they print, once all of them have ended well."""
    outputs = [process.communicate()[0].strip() for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    return outputs


def test_numba_takes_what_is_put_into_its_private_parts(folder: Path) -> None:
    """Contract: drawn numbers name functions; a lock and all sources' stamps go with files."""
    (folder / "parts.py").write_text(PARTS.format(factor=2, shift=1))
    code = (
        "import steps; steps.scaled(1);"
        "from numba.core.bytecode import FunctionIdentity as I;"
        "of = I.from_function(steps.scaled.py_func);"
        "cache = steps.scaled._cache;"
        "print(of.unique_id > 10**6 and of.unique_name.endswith(str(of.unique_id)),"
        " *sorted(cache._cache_file._source_stamp))"
    )
    assert printed([started(folder, code)]) == [
        "True parts.shifted steps.scaled steps.scaled.FACTOR"
    ]
    assert [*folder.rglob("steps.scaled-*.lock")]
    assert [*folder.rglob("steps.scaled-*.nbi")]


@pytest.mark.long
def test_code_of_two_processes_is_distinguished_in_a_third(folder: Path) -> None:
    call = "import numpy, sorts; print(sorts.{0}(numpy.array([30, 10, 20])).tolist())"
    sort, argsort = call.format("ordered"), call.format("order_of")
    printed([started(folder, sort)])
    # By Numba's own numbers these have what both are made of be the 7th of its process.
    printed(
        [started(folder, f"import numba; [numba.njit(lambda: 0)() for _ in range(3)]; {argsort}")]
    )
    assert printed([started(folder, f"{sort}; {argsort}")]) == ["[10, 20, 30]\n[1, 2, 0]"]
    assert printed([started(folder, f"{argsort}; {sort}")]) == ["[1, 2, 0]\n[10, 20, 30]"]


@pytest.mark.long
def test_one_process_compiles_and_the_others_take_what_it_wrote(folder: Path) -> None:
    code = (
        "import numpy, sorts; given = numpy.array([30, 10, 20]);"
        "print(sorts.ordered(given)[0], sorts.ordered(given.astype('f8'))[0],"
        " sum(sorts.ordered.stats.cache_misses.values()))"
    )
    outputs = printed([started(folder, code) for _ in range(3)])
    assert [output.rsplit(" ", 1)[0] for output in outputs] == ["10 10.0"] * 3
    assert sum(int(output.rsplit(" ", 1)[1]) for output in outputs) == 2
    assert len([*folder.rglob("sorts.ordered-*.nbc")]) == 2


@pytest.mark.long
def test_code_follows_what_it_calls_and_the_constants_of_other_modules(folder: Path) -> None:
    code = "import steps; print(steps.scaled(1), sum(steps.scaled.stats.cache_hits.values()))"
    found = []
    for written_at, factor, shift in ((1, 2, 10), (1, 2, 10), (2, 2, 500), (3, 3, 500)):
        (folder / "parts.py").write_text(PARTS.format(factor=factor, shift=shift))
        # Python itself knows a source by its size and the second in which it was written.
        os.utime(folder / "parts.py", (written_at, written_at))
        found += printed([started(folder, code)])
    assert found == ["22 0", "22 1", "1002 0", "1503 0"]


def test_a_loop_is_compiled_once_whatever_constants_it_is_called_with(folder: Path) -> None:
    (folder / "parts.py").write_text(PARTS.format(factor=1, shift=0))
    (folder / "sums.py").write_text(CONSTANTS)
    code = "import parts, sums; print(sums.of(3), len(parts.shifted.signatures))"
    assert printed([started(folder, code)]) == ["6 1"]


PAIRS = """
from typing import NamedTuple
from windows_pipeline.compat.numba_jit import compiled

class {name}(NamedTuple):
    first: int

@compiled
def first_of(pair):
    return pair.first
"""


def test_a_cache_that_names_a_class_which_is_gone_is_made_again(folder: Path) -> None:
    """As after an update of the library that renames a class."""
    for name in ("Pair", "Renamed"):
        (folder / "pairs.py").write_text(PAIRS.format(name=name))
        code = f"import pairs; print(pairs.first_of(pairs.{name}(7)))"
        assert printed([started(folder, code)]) == ["7"]
