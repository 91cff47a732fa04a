"""Programs for the JVM: their libraries from Maven Central, compiled from one source file."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pyspark

from benchmarks.data import CACHE

_IVY_SETTINGS = Path(__file__).parent.parent / "windows_pipeline" / "ivysettings.xml"
_OPENS = ("java.util", "java.lang", "java.time", "java.nio", "java.net", "sun.nio.ch")


class Program:
    """A Java class whose main method answers commands, a line each.

    It prints `ready`, then a line `= words` for each line it reads; what else it prints is
    for people.
    """

    def __init__(
        self,
        source: Path,
        libraries: Sequence[str],
        memory_gib: int,
        *arguments: str,
        options: Sequence[str] = (),
    ) -> None:
        """Fetches, compiles and starts it.

        Args:
            source: The Java file, named like its class.
            libraries: What it needs, as `organisation:module:version`.
            memory_gib: The heap.
            arguments: Of the main method.
            options: Of the JVM.

        Raises:
            RuntimeError: A library can't be fetched, or the source does not compile.
        """
        class_path = f"{_compiled(source, fetched(libraries))}"
        opens = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENS]
        log = CACHE / f"{source.stem}.log"
        java = [_java("java"), f"-Xmx{memory_gib}g", *options, *opens]
        with log.open("w") as errors:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [*java, "-cp", class_path, source.stem, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._log = log

    def ask(self, *words: object) -> list[str]:
        """Sends a command and waits for its answer's words.

        Raises:
            RuntimeError: The program ended.
        """
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the program has no pipes")
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("= "):
                return line[2:].split()
        raise RuntimeError(f"{self._log.name}: {_last_error(self._log)}")

    def close(self) -> None:
        """Ends it."""
        self._process.kill()
        self._process.wait()


def fetched(libraries: Sequence[str], *, transitive: bool = True) -> Path:
    """The folder of the libraries' jars, fetched by the Ivy that Spark brings.

    Args:
        libraries: As `organisation:module:version`.
        transitive: Fetch what they need in turn, too.

    Raises:
        RuntimeError: They can't be fetched.
    """
    named = [*libraries] if transitive else [*libraries, "alone"]
    folder = CACHE / "jars" / _digest("\n".join(named))
    if folder.exists():
        return folder
    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    unfinished = folder.with_suffix(".unfinished")
    follow = f'conf="default" transitive="{str(transitive).lower()}"'
    wanted = "".join(
        '<dependency org="{}" name="{}" rev="{}" {}/>'.format(*one.split(":"), follow)
        for one in libraries
    )
    module = '<info organisation="benchmarks" module="jars"/>'
    file = CACHE / "jars" / "ivy.xml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        f'<ivy-module version="2.0">{module}<dependencies>{wanted}</dependencies></ivy-module>'
    )
    fetch = [_java("java"), "-jar", str(ivy), "-settings", str(_IVY_SETTINGS)]
    where = ["-cache", str(CACHE / "ivy"), "-ivy", str(file)]
    into = ["-retrieve", f"{unfinished}/[artifact]-[revision].[ext]"]
    _run([*fetch, *where, *into], "libraries could not be fetched")
    return unfinished.rename(folder)


def _compiled(source: Path, jars: Path) -> str:
    """The class path of the compiled source and its libraries."""
    folder = CACHE / "classes" / _digest(source.read_text(encoding="utf-8"))
    if not folder.exists():
        command = [_java("javac"), "-cp", f"{jars}/*", "-d", str(folder), str(source)]
        _run(command, f"{source.name} does not compile")
    return f"{folder}{os.pathsep}{jars}/*"


def _java(program: str) -> str:
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/{program}" if home else program


def _run(command: Sequence[str], failure: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise RuntimeError(f"{failure}: {(done.stderr or done.stdout).strip()[-500:]}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _last_error(log: Path) -> str:
    text = log.read_text(encoding="utf-8").splitlines()
    lines = [line for line in text if line.startswith(("Exception in", "Caused by"))]
    return lines[-1].strip()[:300] if lines else "it ended; see its log under .cache/bench"
