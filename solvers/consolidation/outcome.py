"""A lower bound with the name of its proof, and the `Outcome` of an incumbent and a bound."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.consolidation.incumbent import Incumbent
from optgap.solvers.consolidation.numerics import CLOSE, Counts


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
        """The larger of this bound and another, with this one's counts."""
        return replace(self, watts=watts, by=by) if watts > self.watts else self


def closed(incumbent: Incumbent, bound: Bound) -> bool:
    """Whether the gap is closed, up to rounding."""
    return incumbent.watts <= bound.watts * (1 + CLOSE)


def bound_only(bound: Bound, limits: Limits) -> Outcome:
    """The outcome of a method that only bounds."""
    return Outcome(
        None,
        Status.BOUND_ONLY,
        limits.stop or Termination.COMPLETED,
        bound=bound.watts,
        bound_by=bound.by,
    )


def outcome(incumbent: Incumbent, bound: Bound, termination: Termination) -> Outcome:
    """The outcome of the best placement and the best bound."""
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
