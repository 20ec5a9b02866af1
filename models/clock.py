"""A clock that stands still while code is compiled, which only a first run does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tell = Callable[[int], None]


class CompileTimer:
    """How long the process has been compiling, told of every function as it begins and ends.

    Compiling a function compiles those that it calls: only the outermost counts. numba compiles
    under a lock of the whole process, so that threads wait for one another; the clock stands still
    for all of them. One that needs nothing compiled gains as much time, none ever loses any.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = 0
        self._since = 0.0
        self._seconds = 0.0
        self._functions = 0
        self._tell: Tell | None = None

    def begin(self) -> None:
        """A function begins to be compiled."""
        with self._lock:
            if self._open == 0:
                self._since = time.monotonic()
            self._open += 1
            self._functions += 1
            tell, functions = self._tell, self._functions
        if tell is not None:
            tell(functions)

    def end(self) -> None:
        """It is compiled, or cannot be."""
        with self._lock:
            self._open -= 1
            if self._open == 0:
                self._seconds += time.monotonic() - self._since

    def working(self) -> float:
        """Seconds on a monotonic clock without those spent compiling."""
        with self._lock:
            now = self._since if self._open else time.monotonic()
            return now - self._seconds

    @contextmanager
    def telling(self, tell: Tell) -> Iterator[None]:
        """Call ``tell(functions so far)`` whenever a function begins to be compiled."""
        before, self._tell = self._tell, tell
        try:
            yield
        finally:
            self._tell = before


COMPILING = CompileTimer()
"""Of this process; `optgap.models.compiled` keeps it, and without that nothing is compiled."""


def working_time() -> float:
    """Seconds on a monotonic clock that stands still while code is compiled.

    What every limit is measured with: a first run would else do less than the same run later.
    """
    return COMPILING.working()
