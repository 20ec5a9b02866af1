"""When to stop: a time limit, an interrupt, or neither."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from optgap.models.clock import working_time
from optgap.models.result import Termination

Progress = Callable[[str, float | None, float | None], None]
"""``progress(phase, incumbent, bound)``; called as often as the method likes."""

NO_MEMORY = "out of memory"
"""What the message of a result says where there was not enough."""


def silent(phase: str, incumbent: float | None, bound: float | None) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class Limits:
    """How long a method may run, and whether it has been asked to stop.

    Parameters
    ----------
    time_limit: wall-clock seconds from now, compiling left out, or None for no limit.
    interrupted: set from outside (a signal handler) to ask for an early, clean end.
    progress: told the phase, the incumbent and the bound as they change.
    stuck: set from inside where code from outside the package cannot be made to stop.
    """

    time_limit: float | None = None
    interrupted: threading.Event = field(default_factory=threading.Event)
    progress: Progress = silent
    started: float = field(default_factory=working_time)
    stuck: threading.Event = field(default_factory=threading.Event)

    @property
    def elapsed(self) -> float:
        """Seconds since this limit was made, without those spent compiling."""
        return working_time() - self.started

    @property
    def remaining(self) -> float:
        """Seconds left, never negative; infinite without a time limit."""
        if self.time_limit is None:
            return float("inf")
        return max(0.0, self.time_limit - self.elapsed)

    @property
    def stop(self) -> Termination | None:
        """Why to stop now, or None to go on."""
        if self.interrupted.is_set():
            return Termination.INTERRUPTED
        if self.time_limit is not None and self.elapsed >= self.time_limit:
            return Termination.TIME_LIMIT
        return None

    def within(self, seconds: float) -> Limits:
        """The same limits for a part of the work that may take at most `seconds`."""
        return self.each(min(seconds, self.remaining))

    def each(self, time_limit: float | None, progress: Progress | None = None) -> Limits:
        """Limits for one run of several, which listens to the same interrupt."""
        told = self.progress if progress is None else progress
        return Limits(time_limit, self.interrupted, told, stuck=self.stuck)

    def part(self, label: str) -> Limits:
        """Limits without a time for a part of the work, whose name stands before each phase."""

        def tell(phase: str, incumbent: float | None, bound: float | None) -> None:
            self.progress(f"{label}: {phase}", incumbent, bound)

        return self.each(None, tell)
