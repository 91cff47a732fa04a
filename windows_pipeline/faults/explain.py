"""The door of faults: what an error means for the user, for the command line and for Dagster."""

from __future__ import annotations

from windows_pipeline.faults.causes import of_cause
from windows_pipeline.faults.chain import innermost, is_of_library
from windows_pipeline.faults.fault import BAD_FILE, MACHINE, UNEXPECTED, Fault
from windows_pipeline.faults.user_code import of_user_code
from windows_pipeline.sources.bad_files import bad_file_in
from windows_pipeline.storage.files.damage import damage_in
from windows_pipeline.text.problems import RefusedError


def explained(error: BaseException) -> Fault | None:
    """What an error means for the user; None for an error that nobody expected.

    A bad landed file comes first (rule A8), whatever made it so, then a window function of the
    user's (rule E3). Otherwise an error of ours decides by its class, as its message is in the
    user's words; for others a known cause is looked for among all errors of the chain.
    """
    bad = bad_file_in(error)  # a task's error, which Spark raises as its own
    if bad is not None:
        lines = "\n".join(str(each) for each in bad.all)
        return Fault(lines, status=BAD_FILE, is_foreign=False)
    of_function = of_user_code(error)
    if of_function is not None:
        return of_function
    if is_of_library(error):
        return of_cause(error) or _of_table(error) or _refused(error)
    return _refused(error) or of_cause(error) or _of_table(error)


def fault_of(error: BaseException) -> Fault:
    """What an error means for the user; of an unexpected one its innermost message, in one line."""
    line = " ".join(innermost(error).split())
    return explained(error) or Fault("", line, status=UNEXPECTED)


def _refused(error: BaseException) -> Fault | None:
    """The fault of an error of ours, whose message says what to do."""
    if isinstance(error, RefusedError):
        status = error.exit_status
        return Fault(str(error), status=status, is_foreign=status == MACHINE)
    if isinstance(error, FileNotFoundError | ValueError):
        return Fault(str(error), is_foreign=False)
    return None


def _of_table(error: BaseException) -> Fault | None:
    """The fault of a table's file that is gone or cannot be read."""
    damaged = damage_in(error)
    return None if damaged is None else Fault(*damaged.lines)
