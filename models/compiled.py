"""Compiled functions: numba with the one set of options that keeps floating point as written."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum, auto
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from numba import njit
from numba.core import config, event
from numba.core.caching import FunctionCache
from numba.extending import overload

from optgap.models.clock import COMPILING

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Interpreted:
    """Sizes up to which Python runs a family's policies: half a second to one second of its time.

    Parameters
    ----------
    placement_cells: nodes times tasks; compiling takes 5 s.
    consolidation_cells: tasks times GPUs; compiling takes 1 s.
    elastic_jobs: jobs; compiling takes 7 s.
    queueing_jobs: jobs; compiling takes 20 s.
    """

    placement_cells: int = 5_000
    consolidation_cells: int = 10_000
    elastic_jobs: int = 500
    queueing_jobs: int = 2_000


UP_TO = Interpreted()


def floats(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return an array of the type that kernels are compiled for.

    Whole numbers, or an array in another order of memory, would make them compile once more.
    """
    return np.ascontiguousarray(values, dtype=np.float64)


class _Listener(event.Listener):
    """Stops the clock of limits while numba compiles, and counts what is compiled."""

    def on_start(self, event: Any) -> None:
        function = event.data["dispatcher"].py_func
        if function in _OURS:
            COMPILING.begin(function, _below(function))
        else:  # numba's own
            COMPILING.begin()

    def on_end(self, event: Any) -> None:
        COMPILING.end()


event.register("numba:compile", _Listener())  # type: ignore[no-untyped-call]


class _Kept(FunctionCache):
    """Machine code of earlier processes; what cannot be read or kept is compiled again."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception:  # a file that was cut off: pickle raises whatever it comes upon
            with suppress(OSError):  # a full disk
                self.flush()  # type: ignore[no-untyped-call]
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError, EOFError):
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]


class Way(Enum):
    """How compiled functions run: by machine code, by Python until there is any, by Python."""

    MACHINE = auto()
    EITHER = auto()
    PYTHON = auto()


_WAY = ContextVar("way", default=Way.MACHINE)
_OURS: set[Callable[..., Any]] = set()
_OPTIONS: Any = {"no_cfunc_wrapper": True}  # none is called by a C library


@contextmanager
def _taking(way: Way) -> Iterator[None]:
    before = _WAY.set(way)
    try:
        yield
    finally:
        _WAY.reset(before)


@contextmanager
def interpreted(small: bool) -> Iterator[None]:
    """Run compiled functions by Python within this context if the problem is `small`.

    A compiler takes a dozen seconds for a family's policies, once on a machine; Python is through
    with a few hundred jobs sooner. What a larger problem has compiled or loaded already is used.
    Both ways run the same source and give the same answer.
    """
    with _taking(Way.EITHER if small else Way.MACHINE):
        yield


def loaded(kernel: Any, args: tuple[Any, ...]) -> bool:
    """Tell whether this process has the machine code of a function for such arguments."""
    return tuple(map(kernel.typeof_pyval, args)) in kernel.overloads


def python_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a compiled function as one that Python runs, with all that it calls."""
    source = inspect.unwrap(function)

    @wraps(source)
    def by_python(*args: Any, **kwargs: Any) -> Any:
        with _taking(Way.PYTHON):
            return source(*args, **kwargs)

    return by_python


def _below(function: Callable[..., Any]) -> set[Callable[..., Any]]:
    """Return all functions of ours that one calls at any depth."""
    found: set[Callable[..., Any]] = set()
    left = [function]
    while left:
        caller = left.pop()
        named = map(caller.__globals__.get, caller.__code__.co_names)
        fresh = ({inspect.unwrap(item) for item in named if callable(item)} & _OURS) - found
        found |= fresh
        left += fresh
    return found


def compiled(function: F) -> F:
    """Compile `function` on its first call, and keep the machine code for the next process.

    Never ``fastmath``: it would let sums be reordered and products fused, and truncated scores
    hang on the last bit. The lock on the interpreter is released, so threads may run runs side
    by side.

    The kept code of a function is renewed when its own file changes, not when a file does
    whose functions it calls: after editing those, delete ``__pycache__``.
    """
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    kernel = njit(nogil=True, **_OPTIONS)(function)
    with suppress(RuntimeError):  # no folder to keep machine code in: compile in every process
        kernel._cache = _Kept(function)  # type: ignore[no-untyped-call]

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        way = _WAY.get()
        if way is Way.MACHINE or (way is Way.EITHER and kernel.overloads and loaded(kernel, args)):
            return kernel(*args, **kwargs)
        if way is Way.PYTHON:
            return function(*args, **kwargs)
        with _taking(Way.PYTHON):
            return function(*args, **kwargs)

    run.kernel = kernel  # type: ignore[attr-defined]
    _within(run, function)
    return cast(F, run)


def inner(function: F) -> F:
    """Let compiled functions call `function`, which is compiled as a part of them."""
    if not config.DISABLE_JIT:  # type: ignore[attr-defined]
        _within(function, function)
    return function


def _within(name: Callable[..., Any], function: Callable[..., Any]) -> None:
    """Have numba compile `function` where a compiled function calls it by `name`.

    For all integers at once, where a call of one dispatcher by another compiles for each literal.
    """
    _OURS.add(function)
    overload(name, jit_options=_OPTIONS, strict=False)(lambda *_, **__: function)
