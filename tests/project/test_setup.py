"""What a fresh machine meets: requirements, the lock, Dagster's own files."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import tomllib
from pathlib import Path

import dagster as dg
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from windows_pipeline.dagster import range_tags

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCK = (ROOT / "requirements.lock").read_text()


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder for PATH with the shell's tools, and neither Python nor Java."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("bash", "sed", "dirname"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return folder


def write_program(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{shutil.which('bash')}\n{script}\n")
    path.chmod(0o755)


def write_python(path: Path, version: str, *, venv: bool = True) -> None:
    """Answers as a Python of that version does, asked for it or to import venv."""
    import_venv = "exit 0" if venv else "exit 1"
    write_program(path, f'case "$2" in *venv*) {import_venv} ;; *) echo {version} ;; esac')


def run(script: str, programs: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [programs / "bash", "-c", f". tools/require.sh; {script}"],
        cwd=ROOT,
        env={"PATH": str(programs), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def refusal(script: str, programs: Path, **variables: str) -> str:
    """The one line that says what is missing."""
    ended = run(script, programs, **variables)
    assert (ended.returncode, ended.stdout) == (2, "")
    (line,) = ended.stderr.splitlines()
    return line


@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.4", "25-ea"])
def test_java_from_17_on_will_do(programs: Path, version: str) -> None:
    options = 'echo "Picked up JAVA_TOOL_OPTIONS: -Dversion=1"'
    write_program(programs / "java", f"({options}; echo 'openjdk version \"{version}\" 2024') >&2")
    assert run("require_java", programs).returncode == 0


@pytest.mark.parametrize(
    ("version", "found"), [("1.8.0_292", "found: 8, java"), ("11.0.2", "found: 11, java")]
)
def test_an_older_java_is_named(programs: Path, version: str, found: str) -> None:
    write_program(programs / "java", f"echo 'java version \"{version}\"' >&2")
    assert found in refusal("require_java", programs)


def test_without_java_the_message_names_the_fix(programs: Path) -> None:
    assert "found: none" in refusal("require_java", programs)
    write_program(programs / "java", "echo 'No Java runtime present' >&2; exit 1")
    line = refusal("require_java", programs)
    assert "found: none" in line
    assert "install a JDK 17 or 21" in line


def test_the_java_of_java_home_counts_as_it_does_for_spark(programs: Path, tmp_path: Path) -> None:
    write_program(programs / "java", "echo 'java version \"1.8.0\"' >&2")
    write_program(tmp_path / "jdk/bin/java", "echo 'openjdk version \"21.0.1\"' >&2")
    assert run("require_java", programs, JAVA_HOME=str(tmp_path / "jdk")).returncode == 0
    assert "JAVA_HOME is /nowhere" in refusal("require_java", programs, JAVA_HOME="/nowhere")


def test_the_first_python_that_is_3_11_with_venv_is_taken(programs: Path) -> None:
    write_python(programs / "mine", "3.12")
    write_python(programs / "python3.11", "3.11", venv=False)
    write_python(programs / "python3", "3.11")
    ended = run("find_python", programs, PYTHON="mine")
    assert ended.stdout == "python3\n"
    assert "PYTHON is mine, which is no Python 3.11 with venv; using python3" in ended.stderr
    assert run("find_python", programs, PYTHON="python3").stderr == ""


def test_without_a_fitting_python_each_one_found_is_named(programs: Path) -> None:
    assert "(found: none)" in refusal("find_python", programs)
    write_python(programs / "python3.11", "3.11", venv=False)
    write_python(programs / "python3", "3.13")
    line = refusal("find_python", programs)
    assert "python3.11 has no venv or ensurepip module" in line
    assert "python3 is 3.13" in line
    assert "make PYTHON=" in line
    assert "PYTHON is /nowhere)" in refusal("find_python", programs, PYTHON="/nowhere")


def test_a_port_in_use_is_named_before_the_ui_starts(programs: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert f"port {port} is in use" in refusal(f"require_free_port {port}", programs)
    assert run(f"require_free_port {port}", programs).returncode == 0


def test_without_a_browser_the_error_names_the_fix(programs: Path) -> None:
    line = refusal("require_browser", programs)
    assert "found: none" in line
    assert "install Chromium" in line
    assert "BROWSER_BINARY must be a program, but is /nowhere" in refusal(
        "require_browser", programs, BROWSER_BINARY="/nowhere"
    )


def test_the_browser_that_is_named_or_else_found_is_taken(programs: Path, tmp_path: Path) -> None:
    write_program(programs / "google-chrome", "")
    assert run("require_browser", programs).stdout == f"{programs}/google-chrome\n"
    write_program(programs / "chromium", "")
    assert run("require_browser", programs).stdout == f"{programs}/chromium\n"
    mine = tmp_path / "my browser"
    write_program(mine, "")
    assert run("require_browser", programs, BROWSER_BINARY=str(mine)).stdout == f"{mine}\n"


def locked_packages() -> dict[str, str]:
    entries = re.findall(r"^([a-z0-9-]+)==(\S+) \\$", LOCK, re.MULTILINE)
    return {str(canonicalize_name(name)): version for name, version in entries}


def declared_requirements() -> list[Requirement]:
    project = PROJECT["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    groups += [PROJECT["dependency-groups"]["dev"], PROJECT["build-system"]["requires"]]
    declared = [Requirement(text) for group in groups for text in group]
    return [each for each in declared if each.name != project["name"]]


@pytest.mark.parametrize("requirement", declared_requirements(), ids=str)
def test_the_lock_holds_what_the_project_asks_for(requirement: Requirement) -> None:
    version = locked_packages()[str(canonicalize_name(requirement.name))]
    assert requirement.specifier.contains(version, prereleases=True)


@pytest.mark.parametrize("folder", [".", "tests/browser"])
def test_every_line_of_a_lock_is_a_version_or_its_hash(folder: str) -> None:
    entry = r"[a-z0-9-]+==\S+( ; [^/\\]+)? \\"
    digest = r"    --hash=sha256:[0-9a-f]{64}( \\)?"
    lines = (ROOT / folder / "requirements.lock").read_text().splitlines()
    assert [line for line in lines if not re.fullmatch(f"{entry}|{digest}", line)] == []


def test_dagster_takes_the_instance_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    shutil.copy(ROOT / "windows_pipeline/dagster/dagster.yaml", tmp_path)
    days = dg.DailyPartitionsDefinition("2013-01-01", end_date="2013-02-10")

    @dg.asset(partitions_def=days, backfill_policy=dg.BackfillPolicy.single_run())
    def noted() -> None:
        """An asset that a run materializes for a range of days."""

    keys = days.get_partition_keys()
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        tags = range_tags(keys[0], keys[-1])
        assert dg.materialize([noted], instance=instance, tags=tags).success
        assert instance.get_materialized_partitions(noted.key) == set(keys)
        assert not instance.telemetry_enabled
        assert not instance.nux_enabled
        concurrency = instance.get_concurrency_config()
        assert concurrency.run_queue_config is not None
        assert concurrency.run_queue_config.max_concurrent_runs == 4
        assert concurrency.pool_config.default_pool_limit == 1
        assert str(concurrency.pool_config.pool_granularity).endswith("RUN")
        assert instance.run_monitoring_enabled
        assert instance.run_retries_max_retries == 1
    # A second one finds what the first one stored, below its own folder.
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert instance.get_materialized_partitions(noted.key) == set(keys)


def test_no_instance_file_lies_where_dagster_dev_would_warn_of_it() -> None:
    """`dagster dev` warns of a file in its working directory that is not DAGSTER_HOME's."""
    assert [path.name for path in ROOT.glob("dagster.y*ml")] == []
    makefile = (ROOT / "Makefile").read_text()
    assert "$(DAGSTER_FILE): windows_pipeline/dagster/dagster.yaml" in makefile


def test_the_workspace_names_files_that_are_there() -> None:
    (location,) = yaml.safe_load((ROOT / "workspace.yaml").read_text())["load_from"]
    assert (ROOT / location["python_file"]["relative_path"]).is_file()
    assert (ROOT / location["python_file"]["working_directory"] / "assets").is_dir()


def test_make_alone_lists_every_target() -> None:
    listed = subprocess.run(
        ["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {line.split()[1] for line in listed.splitlines()} == targets - {"java", "chromium"}
