"""The door of faults: what an error means for the user, for the command line and for Dagster."""

from __future__ import annotations

from windows_pipeline.faults.causes import of_cause
from windows_pipeline.faults.chain import is_of_library
from windows_pipeline.faults.fault import BAD_FILE, MACHINE, Fault
from windows_pipeline.faults.user_code import of_user_code
from windows_pipeline.storage.files.damage import damage_in


def explained(error: BaseException) -> Fault | None:
    """What an error means for the user; None for an error that nobody expected.

    A bad landed file comes first (rule A8), whatever made it so, then a window function of the
    user's (rule E3). Otherwise an error of ours decides by its class, as its message is in the
    user's words; for others a known cause is looked for among all errors of the chain.
    """
    bad = _bad_file(error)
    if bad is not None:
        return bad
    of_function = of_user_code(error)
    if of_function is not None:
        return of_function
    if is_of_library(error):
        return of_cause(error) or _of_table(error) or _refused(error)
    return _refused(error) or of_cause(error) or _of_table(error)


def _refused(error: BaseException) -> Fault | None:
    """The fault of an error of ours, whose message says what to do."""
    if isinstance(error, _refusals()):
        return Fault(str(error), is_foreign=False)
    if isinstance(error, OSError):
        return None
    from windows_pipeline.compat.spark_session import SparkStartError

    if isinstance(error, SparkStartError):
        return Fault(str(error), status=MACHINE)
    if isinstance(error, _refusals_of_spark()):
        return Fault(str(error), is_foreign=False)
    return None


def _of_table(error: BaseException) -> Fault | None:
    """The fault of a table's file that is gone or cannot be read."""
    damaged = damage_in(error)
    return None if damaged is None else Fault(*damaged.lines)


def _bad_file(error: BaseException) -> Fault | None:
    from windows_pipeline.sources.bad_files import bad_file_in

    found = bad_file_in(error)  # a task's error, which Spark raises as its own
    if found is None:
        return None
    lines = "\n".join(str(bad) for bad in found.all)
    return Fault(lines, status=BAD_FILE, is_foreign=False)


def _refusals() -> tuple[type[Exception], ...]:
    """The errors that the user can fix, of code that needs no Spark."""
    from windows_pipeline.config import ConfigError
    from windows_pipeline.query.tables.local import UnreadableTableError
    from windows_pipeline.settings import SettingsError

    return ConfigError, SettingsError, UnreadableTableError, FileNotFoundError, ValueError


def _refusals_of_spark() -> tuple[type[Exception], ...]:
    """The errors that the user can fix, of code whose import takes a second or two."""
    from windows_pipeline.compat.kafka_admin import NoConnectorError
    from windows_pipeline.jobs.correction_marker import CorrectionUnfinishedError
    from windows_pipeline.jobs.raw_events import FedByStreamError
    from windows_pipeline.jobs.raw_rows import RawRowsMissingError
    from windows_pipeline.jobs.unfinished_batch import BatchUnfinishedError
    from windows_pipeline.sources.kafka.state import KafkaDataLostError
    from windows_pipeline.storage.table import DefinitionChangedError, TableMissingError
    from windows_pipeline.streaming import StreamBehindError

    return (
        BatchUnfinishedError,
        CorrectionUnfinishedError,
        DefinitionChangedError,
        FedByStreamError,
        KafkaDataLostError,
        NoConnectorError,
        RawRowsMissingError,
        StreamBehindError,
        TableMissingError,
    )
