"""Random: any feasible node, and any GPU that fits a fractional task, drawn from the seed."""

from __future__ import annotations

from optgap.heuristics.placement.rule import NONE, RANDOM, Rule, simulate
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.result import Outcome


def random(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """Random."""
    rule = Rule.of(NONE, gpu=RANDOM, random_node=True)
    return simulate(problem, rule, limits=limits, seed=seed, label="random")
