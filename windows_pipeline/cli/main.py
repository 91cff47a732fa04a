"""The door of the command line: all commands, and how their errors are printed."""

from __future__ import annotations

import typer

from windows_pipeline.cli.arguments import StartSession
from windows_pipeline.cli.corrections import correct
from windows_pipeline.cli.days import check, run
from windows_pipeline.cli.printed import tell
from windows_pipeline.cli.streams import stream
from windows_pipeline.cli.tables import forget, maintain, rebuild
from windows_pipeline.cli.trace import episodes, trace
from windows_pipeline.cli.validate import validate
from windows_pipeline.compat.spark_session import SparkStartError, start_session
from windows_pipeline.config import ConfigError
from windows_pipeline.jobs.correction_marker import CorrectionUnfinishedError
from windows_pipeline.jobs.raw_events import FedByStreamError
from windows_pipeline.jobs.raw_rows import RawRowsMissingError
from windows_pipeline.jobs.unfinished_batch import BatchUnfinishedError
from windows_pipeline.settings import SettingsError
from windows_pipeline.sources.kafka_errors import KafkaSourceError
from windows_pipeline.storage.damage import damage_in
from windows_pipeline.storage.table import DefinitionChangedError, TableMissingError
from windows_pipeline.streaming import StreamBehindError

app = typer.Typer(
    help="Exact event-time windows on Spark and Delta.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (
    validate,
    check,
    run,
    rebuild,
    stream,
    correct,
    forget,
    maintain,
    episodes,
    trace,
):
    app.command()(command)


def main(start: StartSession = start_session) -> None:
    """Runs the command line; an error that the user can fix is one line, with exit status 2.

    Args:
        start: Starts the Spark session, once a command's arguments are known to be right.
    """
    try:
        app(obj=start)
    except (
        ConfigError,
        SettingsError,
        BatchUnfinishedError,
        CorrectionUnfinishedError,
        DefinitionChangedError,
        FedByStreamError,
        KafkaSourceError,
        RawRowsMissingError,
        SparkStartError,
        TableMissingError,
        StreamBehindError,
        FileNotFoundError,
        ValueError,
    ) as error:
        tell("error", str(damage_in(error) or error))
        raise SystemExit(2) from None
    except Exception as error:
        damaged = damage_in(error)
        if damaged is None:
            raise
        tell("error", str(damaged))
        raise SystemExit(2) from None
