"""The wheel, alone in an environment with the packages that it asks for and no others."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.doc_blocks import blocks_of

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = str(tmp_path_factory.mktemp("wheel"))
    (path,) = WheelBuilder(str(ROOT)).build(directory=folder, versions=["standard"])
    return Path(path)


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new virtual environment with the wheel, and with links to the packages that it needs."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", wheel], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for needed in closure(requirements(own(folder))):
        for name in entries(needed):
            (packages / name).symlink_to(str(needed.locate_file(name)))
    return folder


def own(environment: Path) -> Distribution:
    """What the wheel says of itself."""
    paths = [str(path) for path in environment.glob("lib/python*/site-packages")]
    (found,) = distributions(name="windows-pipeline", path=paths)
    return found


def requirements(of: Distribution, *extras: str) -> Iterator[Requirement]:
    """What a distribution asks for by itself, and with extras of its own."""
    for requirement in map(Requirement, of.requires or ()):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": each}) for each in ("", *extras)):
            yield requirement


def closure(asked: Iterable[Requirement]) -> list[Distribution]:
    """The distributions of this environment that requirements need, and all that these need."""
    found: dict[str, Distribution] = {}
    waiting = list(asked)
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name not in found or requirement.extras:
            found[name] = distribution(name)
            waiting += requirements(found[name], *requirement.extras)
    return list(found.values())


def entries(of: Distribution) -> set[str]:
    """The files and folders of a distribution beside those of others."""
    return {file.parts[0] for file in of.files or ()} - {"..", "__pycache__"}


def call(environment: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a program of the environment in its folder, without the variables of this project."""
    kept = {name: os.environ[name] for name in ("HOME", "JAVA_HOME", "PATH") if name in os.environ}
    return subprocess.run(
        [environment / "bin" / program, *arguments],
        cwd=environment,
        env=kept,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_wheel_holds_the_library_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {"windows_pipeline/py.typed", "windows_pipeline/ivysettings.xml"} <= names
    folders = {name.split("/")[0] for name in names}
    assert folders == {"windows_pipeline", "windows_pipeline-0.1.0.dist-info"}


def test_the_readmes_example_runs_without_any_extra(installed: Path) -> None:
    """It prints the rows that README shows: KIP-450's 7 windows (rule B4)."""
    (example,) = (block for block in blocks_of(README) if "wp.windowed" in block.code)
    (installed / "example.py").write_text(example.code)
    ended = call(installed, "python", "example.py")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip() == str(example.expected).strip()


def test_no_package_of_an_extra_is_there(installed: Path) -> None:
    names = ["confluent_kafka", "dagster", "deltalake", "great_expectations", "typer"]
    find = "from importlib.util import find_spec; import windows_pipeline"
    found = f"{{name for name in {['pyspark', *names]} if find_spec(name)}}"
    ended = call(installed, "python", "-c", f"{find}; print({found})")
    assert ended.stdout.strip() == "{'pyspark'}", ended.stderr


def test_the_command_names_the_extra_that_it_needs(installed: Path) -> None:
    """And a module of each package of the extra that is missing: here all."""
    ended = call(installed, "windows-pipeline", "--help")
    assert (ended.returncode, ended.stdout) == (2, "")
    (line,) = ended.stderr.splitlines()
    assert line.endswith("install the extra `pipeline`: pip install 'windows-pipeline[pipeline]'")
    named = line.removeprefix("error: ").partition(" must be installed")[0].split(", ")
    asked = {each.name for each in requirements(own(installed), "pipeline")}
    asked -= {each.name for each in requirements(own(installed))}
    package_of = {name: each for each in asked for name in entries(distribution(each))}
    assert sorted(package_of[name] for name in named) == sorted(asked)
