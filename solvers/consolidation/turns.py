"""Budgets inside a search that comes back to what they leave: their ends are no cuts."""

from __future__ import annotations

from dataclasses import dataclass

from optgap.models.limits import Limits, Meter
from optgap.models.result import Termination


@dataclass(frozen=True)
class Turn(Limits):
    """Limits whose budget is a turn. Who asked for the turn is not told that the budget ended."""

    def note(self, why: Termination) -> None:
        """Remember a cut here; tell of those by the time limit and by a person alone."""
        self.meter.note(why)
        if self.whole is not None and why is not Termination.WORK_LIMIT:
            self.whole.note(why)


def turn(limits: Limits, units: float) -> Turn:
    """Return limits for a part of the work of at most so many units, which is taken up again."""
    return Turn(
        limits.time_limit, limits.interrupted, limits.progress, limits.started, units,
        limits.effort, Meter(), limits,
    )  # fmt: skip


def affordable(limits: Limits, units: float) -> bool:
    """Return whether a search that nothing stops on its way, of about so many units, may begin.

    A unit is about a second: a search that a user's time limit would end half-way is cut here.
    """
    if units > limits.remaining:
        return False
    if units > limits.seconds_left:
        limits.note(Termination.TIME_LIMIT)
        return False
    return True
