"""Compiled functions: numba with the one set of options that keeps floating point as written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from numba import types
from numba.core import config, event
from numba.core.caching import FunctionCache
from numba.core.registry import CPUDispatcher

from optgap.models.clock import COMPILING

F = TypeVar("F", bound=Callable[..., Any])

_INTERPRETED = ContextVar("interpreted", default=False)
_TWINS: dict[Kernel, Callable[..., Any]] = {}


@dataclass(frozen=True)
class Interpreted:
    """Sizes up to which Python runs a family's policies: half a second to one second of its time.

    Parameters
    ----------
    placement_cells: nodes times tasks; compiling takes 6 s.
    consolidation_cells: tasks times GPUs; compiling takes 1 s.
    elastic_jobs: jobs; compiling takes 8 s.
    queueing_jobs: jobs; compiling takes 18 s.
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
        kernel = event.data["dispatcher"]
        if isinstance(kernel, Kernel):
            COMPILING.begin(kernel, (k for k in _below(kernel) if not k.overloads))
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


class Kernel(CPUDispatcher):
    """A function with two ways to run it: compiled on its first call, or by Python as it stands."""

    def enable_caching(self) -> None:
        """Keep machine code for the next process, where a folder for it can be written to."""
        self._cache = _Kept(self.py_func)  # type: ignore[no-untyped-call]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _INTERPRETED.get() and not (self.overloads and loaded(self, args)):
            return python_of(self)(*args, **kwargs)
        return super().__call__(*args, **kwargs)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return the type of a call: one for all integers, where numba has one per literal."""
        whole: Any = types.unliteral
        return super().get_call_template(
            [whole(a) for a in args], {name: whole(a) for name, a in kws.items()}
        )


def loaded(kernel: Kernel, args: tuple[Any, ...]) -> bool:
    """Tell whether this process has the machine code of a kernel for such arguments."""
    return tuple(map(kernel.typeof_pyval, args)) in kernel.overloads


@contextmanager
def interpreted(small: bool) -> Iterator[None]:
    """Run kernels by Python within this context if the problem is `small`, else compiled.

    A compiler takes a dozen seconds for a family's policies, once on a machine; Python is through
    with a few hundred jobs sooner. What a larger problem has compiled or loaded already is used.
    Both ways run the same source and give the same answer.
    """
    before = _INTERPRETED.set(small)
    try:
        yield
    finally:
        _INTERPRETED.reset(before)


def python_of(kernel: Any) -> Callable[..., Any]:
    """Return the kernel as an ordinary function, which calls other kernels as such, too."""
    if not isinstance(kernel, Kernel):  # numba is switched off
        plain: Callable[..., Any] = kernel
        return plain
    if kernel not in _TWINS:
        function = kernel.py_func
        names = dict(function.__globals__)
        twin = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
        _TWINS[kernel] = twin
        names.update({name: python_of(called) for name, called in _called(kernel).items()})
    return _TWINS[kernel]


def _called(kernel: Kernel) -> dict[str, Kernel]:
    """Return the kernels that a kernel calls, by the names it has for them."""
    names = kernel.py_func.__globals__
    found = {name: names.get(name) for name in kernel.py_func.__code__.co_names}
    return {name: item for name, item in found.items() if isinstance(item, Kernel)}


def _below(kernel: Kernel) -> set[Kernel]:
    """Return all kernels that one calls at any depth."""
    found: set[Kernel] = set()
    left = [kernel]
    while left:
        fresh = set(_called(left.pop()).values()) - found
        found |= fresh
        left += fresh
    return found


def compiled(function: F) -> F:
    """Compile `function` on its first call, and keep the machine code for the next process.

    Never ``fastmath``: it would let sums be reordered and products fused, and truncated scores
    hang on the last bit. The lock on the interpreter is released, so threads may run runs side
    by side. None is called by a C library, for which numba would compile another way in.

    The kept code of a function is renewed when its own file changes, not when a file does
    whose functions it calls: after editing those, delete ``__pycache__``.
    """
    return _kernel(function, {"no_cfunc_wrapper": True})


def inner(function: F) -> F:
    """Compile a function that only compiled functions call.

    Without a way in from Python, which for functions of many arrays takes longer to compile than
    the function itself.
    """
    return _kernel(function, {"no_cpython_wrapper": True, "no_cfunc_wrapper": True})


def _kernel(function: F, options: dict[str, bool]) -> F:
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    kernel = Kernel(function, targetoptions={"nopython": True, "nogil": True, **options})
    with suppress(RuntimeError):  # no folder to keep machine code in: compile in every process
        kernel.enable_caching()
    return cast(F, kernel)
