"""The best placement so far, a lower bound with its proof, and the `Outcome` of both."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import CLOSE, Counts, IntArray, Placement


class Incumbent:
    """Keeps the best of the placements that it is offered.

    Attributes
    ----------
    placement: the GPUs of each task, or None. watts: its power, W; infinite before there is one.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.watts = math.inf
        self.placement: Placement | None = None

    def offer(self, placement: Placement | None) -> bool:
        """Take a placement if it is better; whether it was."""
        if placement is None:
            return False
        watts = self.instance.total(placement)
        if watts >= self.watts - 1e-9:
            return False
        self.watts, self.placement = watts, placement
        return True

    def offer_flat(self, entries: IntArray) -> bool:
        """Return the same for a flat placement: the GPU of each entry of `Instance.entry_task`."""
        return self.offer(self.instance.placement(entries))

    @property
    def cutoff(self) -> float:
        """The power that a better placement stays below, W: nodes above it are pruned."""
        return self.watts * (1 - 0.5 * CLOSE)

    @property
    def flat(self) -> IntArray:
        """The GPU of each entry."""
        entries = [g for gpus in self.placement or [] for g in gpus]
        return np.array(entries, dtype=np.int64)

    @property
    def contents(self) -> list[list[int]]:
        """The residents of each GPU in use; empty before there is a placement."""
        return list(self.instance.residents(self.placement or []).values())


@dataclass(frozen=True)
class Bound:
    """A proven lower bound.

    Parameters
    ----------
    watts: W; over time the energy, J. by: what proved it, in words.
    counts: (Q,) lower bounds on the GPUs of each level or more; empty over time.
    """

    watts: float
    by: str
    counts: Counts

    def raised(self, watts: float, by: str) -> Bound:
        """Return the larger of this bound and another, with this one's counts."""
        return replace(self, watts=watts, by=by) if watts > self.watts else self


def closed(incumbent: Incumbent, bound: Bound) -> bool:
    """Tell whether the gap is closed, up to rounding."""
    return incumbent.watts <= bound.watts * (1 + CLOSE)


def bound_only(bound: Bound, limits: Limits) -> Outcome:
    """Return the outcome of a method that only bounds."""
    return Outcome(
        None,
        Status.BOUND_ONLY,
        limits.stop or Termination.COMPLETED,
        bound=bound.watts,
        bound_by=bound.by,
    )


def outcome(incumbent: Incumbent, bound: Bound, termination: Termination) -> Outcome:
    """Return the outcome of the best placement and the best bound."""
    placement = incumbent.placement
    info = {"bound_gpus": int(bound.counts[0]) if bound.counts else 0}
    if placement is None:
        status = Status.BOUND_ONLY if bound.watts > 0 else Status.NO_SOLUTION
        return Outcome(None, status, termination, bound=bound.watts, bound_by=bound.by, info=info)
    done = closed(incumbent, bound)
    return Outcome(
        incumbent.instance.solution(placement),
        Status.OPTIMAL if done else Status.FEASIBLE,
        Termination.COMPLETED if done else termination,
        claimed=math.fsum([incumbent.watts]),
        bound=min(bound.watts, incumbent.watts) if done else bound.watts,
        bound_by=bound.by,
        info=info,
    )
