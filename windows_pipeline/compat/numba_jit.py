"""Compiles loops with Numba once for all processes, and makes Numba's cache on disk safe.

Numba caches compiled code in files next to the source. With Numba's own cache (0.68) a process
may load the code of a different function, and then return wrong results or crash:

- Numba numbers compiled functions from 1 in each process and derives symbol names from these
  numbers, also for the parts of NumPy's `sort` and `argsort`. If two processes wrote two functions
  with equal names, Numba confuses them (its issue 10486). This module draws numbers that are
  unique across processes.
- Two processes that compile a function for two types at the same time write to the same file.
  This module lets one process compile; the others wait and load its result.
- A function's machine code contains the functions that it calls. Numba does not check whether
  their sources, or constants imported from other modules, have changed since it cached the code.
  This module does.

Numba also compiles a function again for each constant that a caller passes. This module treats a
constant as any value of its type, because compiling takes longer than most runs.
"""

from __future__ import annotations

import fcntl
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import numba
from numba.core.bytecode import FunctionIdentity
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.types import unliteral

Function = TypeVar("Function", bound=Callable[..., Any])
_CONSTANTS = (bool, int, float, str, tuple)


class _Numbers:
    """Random numbers that are unique across processes, also across forked processes."""

    def __next__(self) -> int:
        return secrets.randbits(63)


_identity: Any = FunctionIdentity
_identity._unique_ids = _Numbers()  # noqa: SLF001  Numba has no setting for this
_locked: set[Path] = set()


def compiled(function: Function) -> Function:
    """Compiles a function on its first call with arguments of new types.

    Args:
        function: A function that Numba can compile in nopython mode.

    Returns:
        The compiled function; the function itself if Numba's compiler is disabled.
    """
    dispatcher: Any = numba.njit(cache=True)(function)
    if dispatcher is function:
        return function
    compile_original, call_template = dispatcher.compile, dispatcher.get_call_template

    def compile_once(signature: object) -> object:
        cache = dispatcher._cache  # noqa: SLF001
        with global_compiler_lock, _exclusive(cache):
            cache._cache_file._source_stamp = _stamps(dispatcher)  # noqa: SLF001
            try:
                return compile_original(signature)
            except (AttributeError, ImportError):
                # The cache's index may name a class that the code no longer has.
                Path(cache._cache_file._index_path).unlink(missing_ok=True)  # noqa: SLF001
                return compile_original(signature)

    def call_by_type(args: Sequence[object], kws: Mapping[str, object]) -> object:
        named = {name: unliteral(kind) for name, kind in kws.items()}  # type: ignore[no-untyped-call]
        return call_template(tuple(map(unliteral, args)), named)

    dispatcher.compile, dispatcher.get_call_template = compile_once, call_by_type
    compiled_function: Function = dispatcher
    return compiled_function


@contextmanager
def _exclusive(cache: Any) -> Iterator[None]:
    """Holds the lock on a function's cache files; waits while another process holds it.

    Deadlock is impossible: a process that waits for a function's lock holds only locks of the
    function's callers.
    """
    cache._impl.locator.ensure_cache_path()  # noqa: SLF001
    path = Path(cache.cache_path) / f"{cache._impl.filename_base}.lock"  # noqa: SLF001
    if path in _locked:
        yield
        return
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _locked.add(path)
        try:
            yield
        finally:
            _locked.remove(path)


def _stamps(dispatcher: Any) -> dict[str, object]:
    """Stamps of the sources that a function is compiled from, and its constants, by name."""
    found: dict[str, object] = {}
    pending = [dispatcher]
    while pending:
        function = pending.pop()
        name = f"{function.py_func.__module__}.{function.py_func.__qualname__}"
        if name in found:
            continue
        found[name] = function._cache._impl.locator.get_source_stamp()  # noqa: SLF001
        for used, value in _used(function.py_func):
            if isinstance(value, Dispatcher):
                pending.append(value)
            elif isinstance(value, _CONSTANTS):
                found[f"{name}.{used}"] = value
    return found


def _used(function: Any) -> Iterator[tuple[str, object]]:
    """The names and values that a function may use from its module and from imported modules."""
    names = function.__code__.co_names
    scopes = [function.__globals__]
    scopes += [
        vars(value) for name in names if isinstance(value := scopes[0].get(name), ModuleType)
    ]
    for scope in scopes:
        yield from ((name, scope[name]) for name in names if name in scope)
