"""A clock that stands still while code is compiled, which only a first run does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager

Tell = Callable[[str], None]


class CompileTimer:
    """Time that the process has spent compiling, measured as each function begins and ends.

    Compiling a function compiles those that it calls, so only the outermost counts. numba compiles
    under a lock of the whole process, so threads wait for one another, and the clock stands still
    for all of them. A thread that needs nothing compiled gains this time, but none ever loses any.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = 0
        self._since = 0.0
        self._seconds = 0.0
        self._begun: set[Hashable] = set()
        self._needed: set[Hashable] = set()
        self._tell: Tell | None = None

    def begin(self, function: Hashable = None, calls: Iterable[Hashable] = ()) -> None:
        """Note that the compilation of a function begins, and with it those that it calls.

        Parameters
        ----------
        function: the function, or None for one that is not counted.
        calls: functions that it calls at any depth and that no earlier run has left compiled.
        """
        with self._lock:
            if self._open == 0:
                self._since = time.monotonic()
            self._open += 1
            if function is not None:
                self._begun.add(function)
                self._needed.update((function, *calls))
            tell, begun, needed = self._tell, len(self._begun), len(self._needed)
        if tell is not None and needed:
            tell(f"compiling, once: {begun} of {needed} kernels")

    def end(self) -> None:
        """Note that the function is compiled, or cannot be."""
        with self._lock:
            self._open -= 1
            if self._open == 0:
                self._seconds += time.monotonic() - self._since

    @property
    def busy(self) -> bool:
        """Whether anything is being compiled; without the lock, so a signal's handler may ask."""
        return self._open > 0

    def working(self) -> float:
        """Seconds on a monotonic clock without those spent compiling."""
        with self._lock:
            now = self._since if self._open else time.monotonic()
            return now - self._seconds

    @contextmanager
    def telling(self, tell: Tell) -> Iterator[None]:
        """Call ``tell(line of progress)`` whenever a function begins to be compiled.

        The line counts what functions called so far need: another one may need more.
        """
        before, self._tell = self._tell, tell
        try:
            yield
        finally:
            self._tell = before


COMPILING = CompileTimer()
"""Timer of this process, which `optgap.models.compiled` keeps; nothing else compiles."""


def working_time() -> float:
    """Seconds on a monotonic clock that stands still while code is compiled.

    What every limit is measured with: a first run would else do less than the same run later.
    """
    return COMPILING.working()
