"""Limits of a run: a budget of work, a user's time limit, an interrupt, or none of them.

Results are decided by work and not by the clock: a method counts what it does in *units*, about a
second of one quiet core each, by the fixed constants of `optgap.models.work`. A budget in units
ends a run at the same place on every machine. A time limit only cuts; nothing is planned by it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from optgap.models.clock import working_time
from optgap.models.errors import InputError
from optgap.models.result import Termination

Progress = Callable[[str, float | None, float | None], None]
"""``progress(phase, incumbent, bound)``; called as often as the method likes."""

EARLY_S = 0.5
"""Time before its limit at which a returning solver still counts as stopped by it, s."""
NO_MEMORY = "out of memory"
"""Messages of results that a limit cut."""


class Amount(float):
    """A number that knows its unit, for whoever shows progress."""

    unit: str

    def __new__(cls, value: float, unit: str) -> Amount:
        """Return the number with its unit."""
        amount = super().__new__(cls, value)
        amount.unit = unit
        return amount

    def __reduce__(self) -> tuple[type[Amount], tuple[float, str]]:
        """Return what another process makes the number of."""
        return Amount, (float(self), self.unit)


def with_unit(progress: Progress, unit: str) -> Progress:
    """Return `progress` with the unit of the objective beside incumbents and bounds."""

    def tell(phase: str, incumbent: float | None, bound: float | None) -> None:
        shown = [None if value is None else Amount(value, unit) for value in (incumbent, bound)]
        progress(phase, *shown)

    return tell


def silent(phase: str, incumbent: float | None, bound: float | None) -> None:
    """Report nothing."""


class Meter:
    """The work done under some limits, and whether anything there was cut short.

    Attributes
    ----------
    spent
        Work so far, units.
    cut
        Why a loop or a part was cut short, or None while everything ran to its own end.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.spent = 0.0
        self.cut: Termination | None = None

    def add(self, units: float) -> None:
        """Count work that was done."""
        with self._lock:
            self.spent += units

    def note(self, why: Termination) -> None:
        """Remember that something was cut; the first reason stays, unless a person's came later."""
        if self.cut is None or self.cut is Termination.WORK_LIMIT:
            self.cut = why


@dataclass(frozen=True)
class Limits:
    """Limits on the work and time of a method, and requests to stop.

    Parameters
    ----------
    time_limit
        Wall-clock seconds from now, compiling left out, or None. A time limit only cuts.
    interrupted
        An event that is set from outside (a signal handler) to ask for an early, clean end.
    progress
        A function that is told the phase, the incumbent and the bound as they change.
    started
        When the time limit began to run, seconds of `working_time`.
    work
        Budget in units, or None for no budget.
    effort
        Factor by which a method multiplies the budgets that it sets itself. Default 1.
    meter
        Meter of the work done under these limits.
    whole
        Limits of which these are a part; the work counts there, too.

    Examples
    --------
    >>> limits = optgap.Limits(time_limit=60)
    >>> result = optgap.solve(optgap.generate("coscheduling", size=4), limits=limits)
    >>> limits.elapsed < 60, limits.spent > 0, limits.cut is None
    (True, True, True)
    """

    time_limit: float | None = None
    interrupted: threading.Event = field(default_factory=threading.Event)
    progress: Progress = silent
    started: float = field(default_factory=working_time)
    work: float | None = None
    effort: float = 1.0
    meter: Meter = field(default_factory=Meter)
    whole: Limits | None = None

    def __post_init__(self) -> None:
        limit = self.time_limit
        if limit is not None and not (isinstance(limit, (int, float)) and limit >= 0):
            raise InputError("time_limit", "", limit, "a number of seconds, at least 0")

    @property
    def elapsed(self) -> float:
        """Seconds since the time limit began to run, without those spent compiling."""
        return working_time() - self.started

    @property
    def seconds_left(self) -> float:
        """Seconds to the user's time limit, for handing to a solver; infinite without one."""
        if self.time_limit is None:
            return math.inf
        return max(0.0, self.time_limit - self.elapsed)

    @property
    def spent(self) -> float:
        """Work done under these limits, units."""
        return self.meter.spent

    @property
    def remaining(self) -> float:
        """Work left in the budget, units, never negative; infinite without a budget."""
        own = math.inf if self.work is None else max(0.0, self.work - self.meter.spent)
        return own if self.whole is None else min(own, self.whole.remaining)

    @property
    def cut(self) -> Termination | None:
        """Reason why anything under these limits was cut short, or None."""
        return self.meter.cut

    @property
    def stop(self) -> Termination | None:
        """Return the reason to stop now, or None; the meter remembers that something was cut."""
        why: Termination | None = None
        if self.interrupted.is_set():
            why = Termination.INTERRUPTED
        elif self.time_limit is not None and self.elapsed >= self.time_limit:
            why = Termination.TIME_LIMIT
        elif self.remaining <= 0:
            why = Termination.WORK_LIMIT
        if why is not None:
            self.note(why)
        return why

    def note(self, why: Termination) -> None:
        """Remember that something under these limits was cut short."""
        self.meter.note(why)
        if self.whole is not None:
            self.whole.note(why)

    def spend(self, units: float) -> None:
        """Count work that was done, here and in all that these limits are a part of."""
        self.meter.add(units)
        if self.whole is not None:
            self.whole.spend(units)

    def within(self, units: float) -> Limits:
        """Return limits for a part of the work that may take at most `units`."""
        work = units if math.isfinite(units) else None
        return replace(self, work=work, meter=Meter(), whole=self)

    def alone(self) -> Limits:
        """Return limits for one of several threads: what is left, counted by a meter of its own.

        The threads' order decides nothing that way. Whoever joins them spends the most that one of
        them has spent.
        """
        left = self.remaining
        work = left if math.isfinite(left) else None
        return replace(self, work=work, meter=Meter(), whole=None)

    def telling(self, progress: Progress) -> Limits:
        """Return the same limits with another function that is told about progress."""
        return replace(self, progress=progress)

    def each(
        self,
        time_limit: float | None,
        progress: Progress | None = None,
        work: float | None = None,
    ) -> Limits:
        """Return limits for one run of several, which listens to the same interrupt."""
        told = self.progress if progress is None else progress
        return Limits(time_limit, self.interrupted, told, work=work, effort=self.effort)

    def part(self, label: str) -> Limits:
        """Return limits without a time for a part whose name stands before each phase."""

        def tell(phase: str, incumbent: float | None, bound: float | None) -> None:
            self.progress(f"{label}: {phase}", incumbent, bound)

        return self.each(None, tell)


def why_stopped(limits: Limits) -> Termination:
    """Return why a solver call that came back early was stopped, and remember it.

    The limits themselves know; a call that was given a part of the work, and used it up to the last
    iteration, has met its budget.
    """
    stop = limits.stop
    if stop is None:
        budget = math.isfinite(limits.remaining) and limits.seconds_left > EARLY_S
        met = limits.time_limit is None or budget
        stop = Termination.WORK_LIMIT if met else Termination.TIME_LIMIT
        limits.note(stop)
    return stop
