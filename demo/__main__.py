"""Runs a pipeline on real data: `python -m demo` lands and materializes a year of flights."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

from rich.console import Console

from benchmarks.process_tree import processor_s
from demo.prepare_flights import prepare
from windows_pipeline.cli.terminal.console import CONSOLE, coloured
from windows_pipeline.cli.terminal.log_file import FOLDER, LogFile
from windows_pipeline.cli.terminal.progress import Status

_ROOT = Path(__file__).parent.parent
_FLIGHTS = _ROOT / "data" / "flights"
_INTERRUPTED = 130
"""The exit status after Ctrl-C, as of other programs."""


def main() -> int:
    """Lands the flights, materializes the assets, prints a summary; returns the exit status.

    An interrupt ends the process.
    """
    # The console shows the progress; what Spark's JVM and Dagster print goes to the log.
    log = LogFile(_ROOT / FOLDER, "demo")
    with log.captured():
        try:
            return _run(CONSOLE, log.path.relative_to(_ROOT))
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            CONSOLE.print("stopped; to run the demo again: make demo")
            CONSOLE.file.flush()
            # Python's own end would wait for the thread that still runs a step. Ended here, what
            # a JVM prints that is just being started goes to the log, too.
            os._exit(_INTERRUPTED)
        except FileExistsError as error:
            CONSOLE.print(coloured(str(error), "red"), soft_wrap=True)
        except Exception as error:  # noqa: BLE001  the log has the trace
            log.add_trace(error)
            text = f"{type(error).__name__}: {error}\n"
            CONSOLE.print(coloured(text, "red", f"the trace: {log.path}"), soft_wrap=True)
        return 1


def _run(console: Console, log: Path) -> int:
    started = time.monotonic()
    # Imported here, as the imports take a second and may print, which must go to the log.
    from windows_pipeline.compat.spark_session import start_session
    from windows_pipeline.config import ConfigError, load_pipeline
    from windows_pipeline.settings import SettingsError, load_settings

    try:
        settings = load_settings(_ROOT)
        load_pipeline(settings.pipelines / "flights.yaml")
    except (ConfigError, SettingsError) as error:
        console.print(coloured(str(error), "red"), soft_wrap=True)
        return 2
    # Spark starts while files are written; the run uses this session.
    threading.Thread(target=start_session, args=[settings], daemon=True).start()
    with Status(console, "landing the flights of 2013 ...", lines=console):
        summary = prepare(_FLIGHTS)
    console.print(
        coloured(
            "landed",
            "green",
            f" {summary.records:,} flights in {summary.days} arrival days under ",
            f"{_FLIGHTS.relative_to(_ROOT)}/\n",
            f"  {summary.diverted:,} of them diverted, without arrival time",
        )
    )
    # Imported here, as Dagster and the definitions take seconds.
    from demo.run import materialize_year
    from demo.summary import print_summary

    if not materialize_year(console):
        console.print(coloured("the run failed", "red", f"; see its log: {log}"))
        return 1
    print_summary(console, start_session(settings))
    seconds, spent_s = time.monotonic() - started, processor_s(os.getpid())
    console.print(f"done in {seconds:.0f} s, {spent_s:.0f} processor s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
