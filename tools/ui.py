"""Starts the Dagster UI for `make ui`, and ends all of its processes when it is stopped.

`dagster dev` ends by itself at SIGINT only; killed in another way, it leaves its web server, its
daemon and its code server behind.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from windows_pipeline.cli.terminal.console import CONSOLE, ERRORS
from windows_pipeline.cli.terminal.log_file import FOLDER, LogFile
from windows_pipeline.cli.terminal.printed import say
from windows_pipeline.cli.terminal.progress import Status

_HOST = "127.0.0.1"
_POLL_SECONDS = 0.2
_MOST_SECONDS = {signal.SIGINT: 60.0, signal.SIGTERM: 10.0, signal.SIGKILL: 5.0}
"""How long processes may take to end after each signal, in the order in which they get them."""
_LAST_LINES = 5
_COLOURS = re.compile(r"\x1b\[[0-9;]*m|\\x1b\[[0-9;]*m")
"""Colours in Dagster's log: as escape characters, or as the text `\\x1b[...m`."""
_COMMAND = (
    *("-W", "ignore:Function `dev_command`", "-m", "dagster", "dev"),
    *("--workspace", "workspace.yaml", "--host", _HOST, "--port"),
)


def main(port: int) -> int:
    """Runs the UI on a port of this machine until it is stopped; returns the exit status."""
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: stopped.set())
    log = LogFile(Path.cwd() / FOLDER, "ui")
    # In a session of its own, so that only this process gets a terminal's signals.
    dagster = subprocess.Popen(  # noqa: S603  the project's own program
        [sys.executable, *_COMMAND, str(port)],
        stdin=subprocess.DEVNULL,
        stdout=log.open(),
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        with Status(CONSOLE, "starting the Dagster UI", lines=CONSOLE):
            _tell_mistakes()
            _wait(stopped, lambda: dagster.poll() is not None or _answers(port))
        if dagster.poll() is None and not stopped.is_set():
            CONSOLE.print(
                f"the Dagster UI: http://{_HOST}:{port}\nits log: {log.path}", soft_wrap=True
            )
            CONSOLE.print("Ctrl-C stops it")
            _wait(stopped, lambda: dagster.poll() is not None)
        if not stopped.is_set():
            text = f"error: Dagster has ended with {dagster.poll()}; {log.path} ends with:"
            ERRORS.print(text, soft_wrap=True)
            for line in log.path.read_text(errors="replace").splitlines()[-_LAST_LINES:]:
                ERRORS.print(f"  {_COLOURS.sub('', line)}", soft_wrap=True)
            return 1
        CONSOLE.print("stopping the Dagster UI")
        return 0
    finally:
        _end(dagster)


def _tell_mistakes() -> None:
    """Names the mistakes of settings and pipeline files, which Dagster writes to its log only."""
    # Imported here: loading the models takes a second, while Dagster starts.
    from windows_pipeline.config import ConfigError, load_folder
    from windows_pipeline.settings import SettingsError, load_settings

    try:
        settings = load_settings(Path.cwd())
        mistakes = load_folder(settings.pipelines, settings.modules).all_problems
    except (ConfigError, SettingsError) as error:
        say("error", str(error))
        return
    for mistake in mistakes:
        say("error", mistake)
    if mistakes:
        say("note", "the UI leaves out these files' pipelines; correct the files, then reload")


def _wait(stopped: threading.Event, is_over: Callable[[], bool]) -> None:
    """Waits until this program is to stop, or a condition holds."""
    while not is_over() and not stopped.wait(_POLL_SECONDS):
        pass


def _answers(port: int) -> bool:
    """Whether the UI answers on a port."""
    connection = HTTPConnection(_HOST, port, timeout=2)
    try:
        connection.request("GET", "/server_info")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _end(dagster: subprocess.Popen[bytes]) -> None:
    """Ends Dagster as Ctrl-C does, then kills whatever is left of the processes it started."""
    with suppress(ProcessLookupError):
        for number, most_seconds in _MOST_SECONDS.items():
            if number is signal.SIGINT:
                dagster.send_signal(number)  # Dagster then ends the others
            else:
                os.killpg(dagster.pid, number)
            end = time.monotonic() + most_seconds
            while time.monotonic() < end:
                if dagster.poll() is not None and (number is signal.SIGINT or _is_over(dagster)):
                    break
                time.sleep(_POLL_SECONDS)


def _is_over(leader: subprocess.Popen[bytes]) -> bool:
    """Whether no process of a process's group is left."""
    try:
        os.killpg(leader.pid, 0)
    except ProcessLookupError:
        return True
    return False


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
