"""The main job on real data: `python -m demo` lands a year of flights and materializes it all."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

from rich.console import Console

from demo.prepare_flights import prepare
from demo.status import Status
from windows_pipeline.cli.console import PlainConsole, coloured

_ROOT = Path(__file__).parent.parent
_LOG = _ROOT / ".cache" / "demo.log"
_FLIGHTS = _ROOT / "data" / "flights"


def main() -> int:
    """Prepares, materializes and sums up; returns the exit status."""
    console = PlainConsole(file=os.fdopen(os.dup(sys.stdout.fileno()), "w"))
    _log_to_file()
    try:
        return _run(console)
    except FileExistsError as error:
        console.print(coloured(str(error), "red"), soft_wrap=True)
        return 1
    except Exception:  # noqa: BLE001  the file has what would be printed
        console.print_exception()
        return 1


def _run(console: Console) -> int:
    started = time.monotonic()
    # Imported here: they take a second or more, and log.
    from windows_pipeline.compat.spark_session import start_session
    from windows_pipeline.config import ConfigError, load_pipeline
    from windows_pipeline.settings import SettingsError, load_settings

    try:
        settings = load_settings(_ROOT)
        load_pipeline(settings.pipelines / "flights.yaml")
    except (ConfigError, SettingsError) as error:
        console.print(coloured(str(error), "red"), soft_wrap=True)
        return 2
    # Spark starts meanwhile; the run takes this session.
    threading.Thread(target=start_session, args=[settings], daemon=True).start()
    with Status(console, "landing the flights of 2013 ..."):
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
    # Dagster and the definitions take seconds.
    from pyspark.sql import SparkSession

    from demo.run import materialize_year
    from demo.summary import print_summary

    if not materialize_year(console):
        console.print(coloured("the run failed", "red", f"; its log: {_LOG.relative_to(_ROOT)}"))
        return 1
    print_summary(console, SparkSession.getActiveSession())
    console.print(f"done in {time.monotonic() - started:.0f} s")
    return 0


def _log_to_file() -> None:
    """Sends what Spark's JVM and Dagster print to a file; the console keeps the progress."""
    _LOG.parent.mkdir(exist_ok=True)
    with _LOG.open("wb") as log:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(log.fileno(), stream.fileno())


if __name__ == "__main__":
    sys.exit(main())
