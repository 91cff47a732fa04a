"""Loops that Numba compiles, once for all processes that run them.

Numba keeps compiled code in files beside the source. As it does so by itself (0.68), a process may
be handed the code of another function, and compute something else or end:

- It numbers what it compiles from 1 in each process and names it by that number, also what NumPy's
  `sort` and `argsort` are made of. Two of one name, of files that two processes wrote, are taken
  for the same (its issue 10486). Here each has a number of its own, wherever it is compiled.
- Two processes that compile one function for two types at once write one file for both. Here one
  of them compiles, and the others wait and take what it wrote.
- A function's code holds that of the functions that it calls. Their sources, and the constants
  that it has from other modules, do not count when Numba asks whether a file is still good. Here
  they do.

It also compiles a function anew for each constant that another one calls it with. Here a constant
is of its type, as any value: compiling takes longer than most runs.
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
    """Numbers of which no two processes draw the same, forked ones neither."""

    def __next__(self) -> int:
        return secrets.randbits(63)


_identity: Any = FunctionIdentity
_identity._unique_ids = _Numbers()  # noqa: SLF001  Numba has no setting of it
_locked: set[Path] = set()


def compiled(function: Function) -> Function:
    """Has a function compiled when it is first called with arguments of some types.

    Args:
        function: What Numba compiles without Python's objects.

    Returns:
        The same function; where Numba is told to compile nothing, as it is.
    """
    dispatcher: Any = numba.njit(cache=True)(function)
    if dispatcher is function:
        return function
    compile_alone, call_template = dispatcher.compile, dispatcher.get_call_template

    def compile_once(signature: object) -> object:
        cache = dispatcher._cache  # noqa: SLF001
        with global_compiler_lock, _alone(cache):
            cache._cache_file._source_stamp = _stamps(dispatcher)  # noqa: SLF001
            return compile_alone(signature)

    def call_by_type(args: Sequence[object], kws: Mapping[str, object]) -> object:
        named = {name: unliteral(kind) for name, kind in kws.items()}  # type: ignore[no-untyped-call]
        return call_template(tuple(map(unliteral, args)), named)

    dispatcher.compile, dispatcher.get_call_template = compile_once, call_by_type
    taken: Function = dispatcher
    return taken


@contextmanager
def _alone(cache: Any) -> Iterator[None]:
    """Waits until no other process compiles the function, or reads or writes its files.

    No two wait for each other: who waits for a function compiles one that calls it.
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
    """What the code of a function is made of, by name: sources that it calls, and constants."""
    found: dict[str, object] = {}
    open_still = [dispatcher]
    while open_still:
        function = open_still.pop()
        name = f"{function.py_func.__module__}.{function.py_func.__qualname__}"
        if name in found:
            continue
        found[name] = function._cache._impl.locator.get_source_stamp()  # noqa: SLF001
        for used, value in _used(function.py_func):
            if isinstance(value, Dispatcher):
                open_still.append(value)
            elif isinstance(value, _CONSTANTS):
                found[f"{name}.{used}"] = value
    return found


def _used(function: Any) -> Iterator[tuple[str, object]]:
    """What a function may use of its module, and of modules that it names, by name."""
    names = function.__code__.co_names
    scopes = [function.__globals__]
    scopes += [
        vars(value) for name in names if isinstance(value := scopes[0].get(name), ModuleType)
    ]
    for scope in scopes:
        yield from ((name, scope[name]) for name in names if name in scope)
