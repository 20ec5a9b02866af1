"""FirstFit: the feasible node of the lowest rank and its lowest GPU that fits.

The simulators have no such policy; it is the plainest baseline.
"""

from __future__ import annotations

from optgap.heuristics.placement.rule import FIRST, NONE, Rule, simulate
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.result import Outcome


def first_fit(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """FirstFit."""
    rule = Rule.of(NONE, gpu=FIRST)
    return simulate(problem, rule, limits=limits, seed=seed, label="firstfit")
