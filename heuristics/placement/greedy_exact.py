"""The node and GPU that raise the problem's own objective least, without any rounding.

Over time it is the objective at that moment. Ties go to the lowest rank, then to the lowest GPU.
Under ``accepted_gpu`` every feasible node accepts the task alike, so fragmentation decides: what it
leaves unusable is what later tasks cannot be given.
"""

from __future__ import annotations

from optgap.heuristics.placement.rule import EXACT, Rule, simulate
from optgap.models.compiled import compiled
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.placement.kernels import Row, Table, cpu_w, fragment_increase
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
    return Rule.of(EXACT, gpu=EXACT, watts=watts, fragments=fragments)


@compiled
def exact_score(
    watt_weight: float,
    fragment_weight: float,
    node: Row,
    workload: Table,
    cpu_before: int,
    cpu_after: int,
    woken: int,
    free: int,
    profile: Table,
    moved: int,
    old: int,
    new: int,
) -> float:
    """−(watt_weight·ΔP + fragment_weight·ΔF) of a move; arguments as for `buckets`."""
    cost = 0.0
    if watt_weight != 0:
        watts = (node["gpu_full_w"] - node["gpu_idle_w"]) * woken
        watts += cpu_w(node, cpu_after) - cpu_w(node, cpu_before)
        cost += watt_weight * watts
    if fragment_weight != 0:
        cost += fragment_weight * fragment_increase(
            workload, cpu_before, cpu_after, free, profile, moved, old, new
        )
    return -cost
