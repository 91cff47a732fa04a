"""An error of the machine, or of stored tables, is a few lines: what, why, and what helps."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.errors import PySparkException

from tests.support.command_line import call
from tests.support.fault_texts import TEXTS
from tests.support.pipeline_texts import FLIGHTS
from windows_pipeline.cli.terminal.log_file import FOLDER
from windows_pipeline.faults.chain import innermost
from windows_pipeline.faults.explain import explained
from windows_pipeline.faults.fault import MACHINE, USERS, Fault
from windows_pipeline.settings import SETTINGS_VARIABLE, Settings

ROOT = Path(__file__).parents[2]
ROWS = pa.table({"a": list(range(50_000)), "b": ["x" * 20] * 50_000})
NOBODY = 65534
MOST_LINES = 5
FULL = "the disk must have room, but is full"
FORBIDDEN = "this user must be able to read and write there, but is not"


@contextmanager
def forbidden(folder: Path) -> Iterator[None]:
    """The folder's files may not be read or written; root, whom rights do not bind, is nobody."""
    if os.geteuid() == 0:
        os.seteuid(NOBODY)
        try:
            yield
        finally:
            os.seteuid(0)
        return
    folder.chmod(0)
    try:
        yield
    finally:
        folder.chmod(0o700)


def raised(do: Callable[[], object]) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011  any error is looked at
        do()
    return caught.value


def fault_of(error: BaseException) -> Fault:
    fault = explained(error)
    assert fault is not None, repr(error)
    assert fault.title
    assert len(str(fault).splitlines()) < MOST_LINES
    return fault


def write_to_a_full_disk() -> None:
    with open("/dev/full", "wb", 0) as full:  # noqa: PTH123  a device
        full.write(b"x")


def test_a_full_disk() -> None:
    fault = fault_of(raised(write_to_a_full_disk))
    assert (fault.title, fault.status) == (FULL, MACHINE)
    assert "No space left on device" in fault.cause
    assert "Free space" in fault.fix


def test_an_error_that_hides_its_cause_is_the_fault_of_the_cause() -> None:
    def hide() -> None:
        try:
            write_to_a_full_disk()
        except OSError:
            raise RuntimeError("no table was written") from None

    assert fault_of(raised(hide)).title == FULL


def test_a_note_names_the_table() -> None:
    error = raised(write_to_a_full_disk)
    error.add_note("p/raw_events (/data/warehouse/p/raw_events)")
    assert fault_of(error).title == f"p/raw_events (/data/warehouse/p/raw_events): {FULL}"


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "warehouse"
    folder.mkdir(mode=0o700)
    (folder / "a").touch()
    with forbidden(folder):
        error = raised((folder / "a").read_bytes)
    fault = fault_of(error)
    assert (fault.title, fault.status) == (FORBIDDEN, MACHINE)
    assert f"{folder}/a" in fault.cause


def test_a_table_that_delta_rs_may_not_write(tmp_path: Path) -> None:
    folder = tmp_path / "warehouse"
    folder.mkdir(mode=0o700)
    with forbidden(folder):
        error = raised(lambda: write_deltalake(folder / "t", ROWS))
    fault = fault_of(error)
    assert (fault.title, fault.status) == (FORBIDDEN, MACHINE)
    assert str(folder) in fault.cause


def test_a_table_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "warehouse").touch()
    fault = fault_of(raised(lambda: write_deltalake(tmp_path / "warehouse" / "t", ROWS)))
    assert fault.title == "a folder must be there, but it is a file"
    assert (fault.status, str(tmp_path) in fault.cause) == (USERS, True)


def test_a_limit_of_a_file_s_size_is_a_full_disk(tmp_path: Path) -> None:
    """A quota's error comes the same way as this limit's."""
    script = (
        "import resource, sys\n"
        "from tests.unit.test_faults import ROWS, explained, write_deltalake\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try:\n"
        f"    write_deltalake({str(tmp_path / 't')!r}, ROWS)\n"
        "except Exception as error:\n"
        "    print(explained(error))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert FULL in ended.stdout
    assert "File too large" in ended.stdout


def test_too_little_memory() -> None:
    fault = fault_of(raised(lambda: bytearray(2**62)))
    assert ("enough memory" in fault.title, fault.status) == (True, MACHINE)


def test_a_port_that_is_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as used:
        fault = fault_of(raised(lambda: socket.create_server(used.getsockname())))
    assert ("able to listen" in fault.title, fault.status) == (True, MACHINE)


def test_a_jvm_that_no_longer_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as ended:
        address = ended.getsockname()
    fault = fault_of(raised(lambda: socket.create_connection(address)))
    assert ("processes must run" in fault.title, fault.status) == (True, MACHINE)


def test_a_missing_package() -> None:
    fault = fault_of(raised(lambda: import_module("a_package_that_nobody_has.parts")))
    assert "'a_package_that_nobody_has'" in fault.cause
    assert (fault.status, "pip install" in fault.fix) == (MACHINE, True)


def test_a_data_file_that_was_deleted(tmp_path: Path) -> None:
    """Of a table of a pipeline, and of another one; test_unreadable_files has more."""
    for name, title, fix in (
        ("p/w/keyed_windows", "p/w/keyed_windows", "windows-pipeline rebuild p --from keyed_windo"),
        ("followed", str(tmp_path / "followed"), "or correct what the pipeline reads"),
    ):
        table = tmp_path / name
        write_deltalake(table, ROWS)
        (file,) = table.glob("*.parquet")
        file.unlink()
        fault = fault_of(raised(lambda: DeltaTable(table).to_pyarrow_table()))  # noqa: B023
        assert fault.title == f"{title}: a file of the table is gone or cannot be read"
        assert fault.cause == f"{file}: is gone"
        assert fix in fault.fix
        assert fault.status == USERS


@pytest.mark.parametrize(("text", "title", "status"), TEXTS.values(), ids=TEXTS)
def test_what_spark_says(text: str, title: str, status: int) -> None:
    fault = fault_of(PySparkException(text))
    assert title in fault.title
    assert fault.status == status
    assert "\n" not in fault.cause
    assert "Exception: " not in fault.cause


@pytest.mark.parametrize(
    "error",
    [
        KeyError("x"),
        RuntimeError("java.io.IOException: No space left on device"),
        OSError("a text without a number: Permission denied"),
        PySparkException("a key is 'No space left on device'"),
        OSError(errno.EIO, "Input/output error"),
    ],
)
def test_an_unexpected_error_is_no_fault(error: Exception) -> None:
    """The words of a user's data are no sign of a fault."""
    assert explained(error) is None


def test_the_message_of_a_worker_comes_first() -> None:
    """Spark's error has the trace of the Python process in front of the message."""
    text = (
        "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
        '  File "/x/windows_pipeline/kernels/aggregates/sums.py", line 59, in integer_sum\n'
        "    raise ArithmeticError(integer_overflow(aggregate))\n"
        "ArithmeticError: sum(v) overflows bigint in the window of key 'a'\n"
    )
    said = "ArithmeticError: sum(v) overflows bigint in the window of key 'a'"
    assert innermost(PySparkException(text)) == said


def test_a_window_function_that_fails_is_the_users_to_correct() -> None:
    """Rule E3."""
    text = (
        "my_module:warn failed in firing 0 of the window of key ('a', None) "
        "from 2026-03-08 20:05:00 to 2026-03-08 20:10:00: "
        "ValueError('boom') (/p/my_module.py, line 3, in warn)"
    )
    trace = f"Traceback (most recent call last):\n    call()\nRuntimeError: {text}\n"
    for error in (PySparkException(trace), RuntimeError(text)):
        found = explained(error)
        assert found is not None
        assert (found.title, found.status) == (text, USERS)
        assert "windows-pipeline rebuild PIPELINE" in found.fix
    assert explained(RuntimeError("the window of key failed in firing")) is None


def test_a_command_prints_the_fault_and_the_log_has_the_trace(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_settings: Settings) -> None:
        write_to_a_full_disk()

    in_project(tmp_path, monkeypatch)
    status, said = call(capfd, monkeypatch, "run", "flights", start=fail)  # type: ignore[arg-type]
    (log,) = (tmp_path / FOLDER).iterdir()
    assert status == MACHINE
    assert said.startswith(f"error: {FULL} [Errno 28] No space left on device Free space")
    assert said.endswith(f" log: {log} has the trace ")
    assert "Traceback" not in said
    assert "Traceback (most recent call last)" in log.read_text()


def test_without_a_place_for_the_log_a_fault_stays_short(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_settings: Settings) -> None:
        write_to_a_full_disk()

    in_project(tmp_path, monkeypatch)
    (tmp_path / ".cache").touch()
    status, said = call(capfd, monkeypatch, "run", "flights", start=fail)  # type: ignore[arg-type]
    assert (status, FULL in said) == (MACHINE, True)
    assert "no log is written" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("home", ["/nonexistent", ""])
def test_spark_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    in_project(tmp_path, monkeypatch)
    program = Path(sys.executable).with_name("windows-pipeline")
    only_basics = tmp_path / "bin"
    only_basics.mkdir()
    for name in ("bash", "sh", "dirname", "readlink", "env"):
        (only_basics / name).symlink_to(f"/bin/{name}")
    ended = subprocess.run(
        [program, "run", "flights"],
        cwd=tmp_path,
        env={**os.environ, "JAVA_HOME": home, "PATH": str(only_basics), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == MACHINE, ended.stderr
    assert ended.stderr.startswith("error: Spark needs Java: JAVA_HOME is ")
    assert len(ended.stderr.splitlines()) <= MOST_LINES


@pytest.mark.parametrize("every", ["-1s", "-1 minute"])
def test_a_negative_interval_is_refused_before_spark_starts(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, every: str
) -> None:
    def fail(_settings: Settings) -> None:
        raise AssertionError("Spark must not start")

    in_project(tmp_path, monkeypatch)
    args = ("stream", "flights", f"--every={every}")
    status, said = call(capfd, monkeypatch, *args, start=fail)  # type: ignore[arg-type]
    refused = f"error: --every: '{every}' must not be negative; write '0 seconds' or more "
    assert (status, said) == (USERS, refused)


def in_project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory is a project with the flights' pipeline."""
    monkeypatch.delenv(SETTINGS_VARIABLE, raising=False)
    monkeypatch.chdir(folder)
    (folder / "settings.yaml").write_text(
        "warehouse: warehouse\npipelines: pipelines\nlanding: .\nspark: {}\n"
    )
    (folder / "pipelines").mkdir()
    (folder / "pipelines" / "flights.yaml").write_text(FLIGHTS)
