"""Bounds and offline solutions at the full size of a cluster, from node patterns.

``bound-patterns`` is Dantzig-Wolfe's bound over node types, ``patterns`` adds a placement of
every task built from the same patterns. They suit many nodes: what the bound gives away is that
the number of nodes with the same contents is whole, which matters on ten and hardly on 1,213.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem, PlacementSolution
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.placement.aggregate import Aggregate
from optgap.solvers.placement.columns import ColumnGeneration, cpu_units, stand_alone_cost
from optgap.solvers.placement.exact.infeasible import hopeless
from optgap.solvers.placement.nodes import counted, expand
from optgap.solvers.placement.offline import Rounding, RoundingEffort

BOUND_BY = "column generation over node patterns (Lagrangian bound)"
COARSE, FINE = 1300, 70_000
"""CPU units per node, at most: for finding the prices, and for proving with them."""
FRAGMENT_FINE = 2600
"""The same where fragmentation counts: every CPU band then has tables of its own."""
BOUND_SHARE = 0.6
"""Largest share of a budget of work for the bound."""
OPEN = (0.9, 0.8, 0.5, 0.0)
"""Shares of the patterns that are kept where a placement is known, in turn."""
ROUNDING_ERROR = 1e-9
"""Relative: what floating-point sums may have added to a bound, taken off again."""


def bound_patterns(
    problem: PlacementProblem,
    *,
    limits: Limits,
    seed: int,
    tolerance: float = 1e-3,
    found: dict[str, Any] | None = None,
    start: PlacementSolution | None = None,
) -> Outcome:
    """Return a proven bound for placing every task (or for the GPU demand that can be accepted).

    Parameters
    ----------
    tolerance: stop once the bound is within this share of the LP that the patterns found so
        far give, which no bound of this kind can pass.
    found: the column generation of an earlier call; where that was for more tasks on the same
        nodes, its prices prove the bound and no round is added. It takes that of this call where
        it is empty.
    start: a placement of every task that is known; its nodes are the first patterns.
    """
    lost = hopeless(problem)
    if lost is not None:
        return lost
    kept: dict[str, Any] = {} if found is None else found
    known: ColumnGeneration | None = kept.get("generation")
    if known is not None:
        outcome = _by_known_prices(problem, known)
        if outcome is not None:
            return outcome
    generation = generate(generation_for(Aggregate(problem), start), limits, tolerance)
    kept.setdefault("generation", generation)
    return _bound_outcome(problem, generation, limits)


def _by_known_prices(problem: PlacementProblem, known: ColumnGeneration) -> Outcome | None:
    """Return what prices for more tasks prove; None where they are for another problem."""
    other, best = known.aggregate.problem, known.best
    same = other.cluster is problem.cluster and other.workload is problem.workload
    same = same and other.power == problem.power and other.objective == problem.objective
    place = {task: c for c, task in enumerate(known.aggregate.classes)}
    if best is None or not same or not set(problem.tasks.classes) <= set(place):
        return None
    own = np.array([place[task] for task in problem.tasks.classes], dtype=np.int64)
    demand = np.bincount(own[problem.tasks.class_of], minlength=len(place))
    demand = np.where(known.aggregate.weightless, 0, demand)
    bound = known.with_idle(known.proven(best, demand))
    return _bounded(problem, known, bound, Termination.COMPLETED, info={"rounds": 0})


def patterns(
    problem: PlacementProblem,
    *,
    limits: Limits,
    seed: int,
    tolerance: float = 1e-3,
    patience: int = 0,
    first_nodes: int = 60,
    rounds: int = 30,
    found: dict[str, Any] | None = None,
    start: PlacementSolution | None = None,
) -> Outcome:
    """Return a placement of every task, with the bound of `bound_patterns` beside it.

    Parameters
    ----------
    tolerance: as for `bound_patterns`.
    patience: go on with fine prices after so many coarse rounds that bring little; 0: to the end.
    first_nodes: nodes of the search tree for the first integer program.
    rounds: neighbourhoods of nodes that are re-solved to improve the placement.
    found, start: as for `bound_patterns`. With a start, a tenth of the program's patterns or more
        are open to the first integer program: a cluster that is full has no room for less.

    Of a budget of work, 60 % goes to the bound at most.
    """
    lost = hopeless(problem)
    if lost is not None:
        return lost
    share = limits.within(BOUND_SHARE * limits.remaining)
    generation = generation_for(Aggregate(problem), start)
    generate(generation, share, tolerance, patience=patience)
    if found is not None:
        found.setdefault("generation", generation)
    outcome = _bound_outcome(problem, generation, limits)
    if outcome.status is Status.INFEASIBLE:
        return outcome
    effort = RoundingEffort(first_nodes=_more(first_nodes, limits), rounds=_more(rounds, limits))
    if start is not None:
        effort = replace(effort, keep=OPEN)
    rounding = Rounding(generation, effort, np.random.default_rng(seed))
    nodes = rounding.build(limits)
    if nodes is None:
        return outcome
    nodes = rounding.improve(nodes, limits, generation.bound)
    claimed = _in_sense(problem, rounding.cost(nodes))
    bound = outcome.bound
    proven = bound is not None and abs(claimed - bound) <= 1e-8 * max(1.0, abs(bound))
    return Outcome(
        expand(generation.aggregate, nodes),
        Status.OPTIMAL if proven else Status.FEASIBLE,
        _stop(generation, limits),
        claimed,
        bound,
        outcome.bound_by,
        outcome.info,
        outcome.message,
    )


def _more(count: int, limits: Limits) -> int:
    """Return a count of the default budget, times the effort asked for."""
    return max(1, round(count * limits.effort)) if count else 0


def generation_for(
    aggregate: Aggregate, start: PlacementSolution | None = None
) -> ColumnGeneration:
    """Column generation before its first round; tasks may be left out where that is the goal."""
    if optional(aggregate.problem):
        unserved = (aggregate.num_gpu * aggregate.gpu_milli).astype(float)
        return ColumnGeneration(aggregate, unserved, may_leave_out=True)
    generation = ColumnGeneration(aggregate, 1.0 + 3.0 * stand_alone_cost(aggregate))
    if start is not None:
        generation.begin(counted(aggregate, start))
    return generation


def generate(
    generation: ColumnGeneration,
    limits: Limits,
    tolerance: float,
    fine: int = FINE,
    *,
    patience: int = 0,
) -> ColumnGeneration:
    """Column generation until bound and program agree, with so many CPU units in the end."""
    aggregate = generation.aggregate
    fine = min(fine, FRAGMENT_FINE) if aggregate.frag_weight else fine
    coarse_unit, fine_unit = cpu_units(aggregate, COARSE), cpu_units(aggregate, fine)
    if fine_unit < coarse_unit:
        # cheap rounds find the prices; the few fine ones make the bound tight
        until = 0.0 if patience else tolerance
        generation.run(coarse_unit, limits, tolerance=until, patience=patience)
    generation.run(fine_unit, limits, tolerance=tolerance)
    return generation


def optional(problem: PlacementProblem) -> bool:
    """Tell whether tasks may be left out: the goal is how much GPU demand is accepted."""
    return problem.objective.at_a_moment.goal == "accepted_gpu"


def _in_sense(problem: PlacementProblem, cost: float) -> float:
    """Return the accepted amount from the cost of what is left out, if that is the objective."""
    return float(problem.tasks.demand_milli.sum()) - cost if optional(problem) else cost


def _bound_outcome(
    problem: PlacementProblem, generation: ColumnGeneration, limits: Limits
) -> Outcome:
    stop = _stop(generation, limits)
    info: dict[str, float | int | str] = {
        "rounds": generation.rounds,
        "patterns": len(generation.master.columns),
    }
    if generation.short:
        proof = too_much(problem, limits)
        if proof is not None:
            return proof
    if not math.isfinite(generation.bound):
        return Outcome(None, Status.NO_SOLUTION, stop, info=info)
    if not generation.short:
        info["lp_value"] = _in_sense(problem, generation.upper)
    return _bounded(problem, generation, generation.bound, stop, info=info)


def _bounded(
    problem: PlacementProblem,
    generation: ColumnGeneration,
    bound: float,
    stop: Termination,
    *,
    info: dict[str, float | int | str],
) -> Outcome:
    """Return the outcome of a bound on costs, less what rounding may have added."""
    lower = bound - ROUNDING_ERROR * (abs(bound) + generation.aggregate.base)
    return Outcome(
        None,
        Status.BOUND_ONLY,
        stop,
        bound=_in_sense(problem, lower),
        bound_by=BOUND_BY,
        info=info,
    )


def _stop(generation: ColumnGeneration, limits: Limits) -> Termination:
    return limits.stop or generation.stopped or Termination.COMPLETED


def too_much(problem: PlacementProblem, limits: Limits) -> Outcome | None:
    """Return a proof that some task must be left out, by pricing only tasks left out."""
    aggregate = Aggregate(problem, weights=(0.0, 0.0))
    count = ColumnGeneration(aggregate, np.ones(len(aggregate.classes)), may_leave_out=True)
    for most in (COARSE, FINE):
        count.run(cpu_units(aggregate, most), limits, tolerance=1e-6)
        if count.lower > 1e-6:
            left = math.ceil(count.lower - 1e-6)
            return Outcome(
                None,
                Status.INFEASIBLE,
                message=f"at least {left} of {len(problem.tasks)} tasks cannot be placed together",
            )
    return None
