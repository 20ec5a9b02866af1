"""The node and GPU that raise the problem's own objective least, without any rounding.

Over time it is the objective at that moment. Ties go to the lowest rank, then to the lowest GPU.
Under ``accepted_gpu`` every feasible node accepts the task alike, so fragmentation decides: what it
leaves unusable is what later tasks cannot be given.
"""

from __future__ import annotations

from optgap.heuristics.placement.engine import simulate
from optgap.heuristics.placement.rule import EXACT, Rule
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.result import Outcome


def greedy_exact(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """Least increase of the objective."""
    rule = rule_of(problem)
    return simulate(problem, rule, limits=limits, seed=seed, label="greedy-exact")


def rule_of(problem: PlacementProblem) -> Rule:
    """Scores are the objective's own increase, negated."""
    watts, fragments = problem.objective.weights
    if problem.objective.at_a_moment.goal == "accepted_gpu":
        fragments = 1.0
    return Rule(EXACT, gpu=EXACT, watt_weight=float(watts), fragment_weight=float(fragments))
