"""Compiled functions: numba with the one set of options that keeps floating point as written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit
from numba.core import event

from optgap.models.clock import COMPILING

F = TypeVar("F", bound=Callable[..., Any])


class _Listener(event.Listener):
    """Stops the clock of limits while numba compiles."""

    def on_start(self, event: Any) -> None:
        COMPILING.begin()

    def on_end(self, event: Any) -> None:
        COMPILING.end()


event.register("numba:compile", _Listener())  # type: ignore[no-untyped-call]


def compiled(function: F) -> F:
    """Compile `function` on its first call, and keep the machine code for the next process.

    Never ``fastmath``: it would let sums be reordered and products fused, and truncated scores
    hang on the last bit. The lock on the interpreter is released, so threads may run runs side
    by side.

    The kept code of a function is renewed when its own file changes, not when a file does
    whose functions it calls: after editing those, delete ``__pycache__``.
    """
    try:
        return cast(F, njit(cache=True, nogil=True)(function))
    except RuntimeError:  # no folder to keep machine code in: compile in every process
        return cast(F, njit(nogil=True)(function))


def inner(function: F) -> F:
    """Compile a function that only compiled functions call.

    Without a way in from Python, which for functions of many arrays takes longer to compile than
    the function itself.
    """
    untyped: Any = njit  # its type hints leave these two options out
    options = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    try:
        return cast(F, untyped(cache=True, **options)(function))
    except RuntimeError:  # as above
        return cast(F, untyped(**options)(function))
