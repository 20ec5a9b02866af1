"""Policy that chooses the node and GPU of least increase in the problem's objective, unrounded.

Over time the increase is that at the current moment. Ties go to the lowest rank, then to the lowest
GPU. Under ``accepted_gpu`` every feasible node accepts the task alike, so fragmentation decides,
because later tasks cannot use fragmented GPUs.
"""

from __future__ import annotations

from optgap.heuristics.placement.engine import simulate
from optgap.heuristics.placement.rule import EXACT, Rule
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.result import Outcome


def greedy_exact(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """Run the policy of least increase in the objective."""
    rule = rule_of(problem)
    return simulate(problem, rule, limits=limits, seed=seed, label="greedy-exact")


def rule_of(problem: PlacementProblem) -> Rule:
    """Return the rule whose scores are the negated increase of the objective."""
    watts, fragments = problem.objective.weights
    if problem.objective.at_a_moment.goal == "accepted_gpu":
        fragments = 1.0
    return Rule(EXACT, gpu=EXACT, watt_weight=float(watts), fragment_weight=float(fragments))
