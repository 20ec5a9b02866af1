"""Exact placement of small clusters: a bound from pooled nodes, then a search node by node.

1. A greedy placement.
2. *Pooling*: nodes of one type taken together (``counted.py``). The relaxation is small
   and has no symmetry; its optimum is a bound, and on most problems one that can be reached.
3. *Placing*: the same formulation with one unit per node, by HiGHS, which ends when a solution
   meets the best bound of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from optgap.models.errors import RefereeError
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem, PlacementSolution
from optgap.models.result import Outcome, Sense, Status, Termination
from optgap.solvers.backends import solve
from optgap.solvers.placement.aggregate import Aggregate
from optgap.solvers.placement.exact.code import claim, decode, encode
from optgap.solvers.placement.exact.counted import CountedModel, Unit
from optgap.solvers.placement.exact.infeasible import at_most, impossible, together
from optgap.solvers.placement.exact.pooled import (
    TOLERANCE,
    pooled_model,
    solve_pooled,
    valid_bound,
)
from optgap.solvers.placement.exact.tables import Counted
from optgap.solvers.placement.nodes import expand, inserted

POOLING_SHARE = 0.4
"""Of the work that is left, for the bound from pooled nodes."""
CLOSE = 1e-6
"""An objective within this of its bound, relative to its size, is optimal: what the solvers'
own arithmetic is good for."""
MOST_NODES = 200
MOST_TASKS = 2000
"""Beyond this the node-by-node model has millions of columns, and nothing would come of it."""


def exact(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """The best placement, proven.

    The minimising objectives place every task; a proof is good to one part in a million.

    Raises
    ------
    InputError: for more than `MOST_NODES` nodes or `MOST_TASKS` tasks.
    """
    return ExactSearch(problem, limits, seed).run()


def meets(found: float | None, bound: float | None, sense: Sense) -> bool:
    """Whether a solution is as good as a bound allows."""
    if found is None or bound is None:
        return False
    excess = found - bound if sense == "min" else bound - found
    return excess <= CLOSE * max(1.0, abs(found))


def first_solutions(problem: PlacementProblem) -> Iterator[PlacementSolution]:
    """Put one task after another where the objective grows least, in a few orders.

    What is hardest to place goes first, by three notions of hard.
    """
    aggregate, accepting = Aggregate(problem), problem.objective.goal == "accepted_gpu"
    for key in (
        lambda c: (-c.num_gpu, not c.gpu_spec, -c.gpu_milli, -c.cpu_milli),
        lambda c: (not c.gpu_spec, -c.num_gpu, -c.cpu_milli, -c.gpu_milli),
        lambda c: (-c.demand_milli / 1000 - c.cpu_milli / 12000, -c.memory_mib),
    ):
        nodes = inserted(aggregate, [], accepting, key)
        if nodes is not None:
            yield expand(aggregate, nodes)


@dataclass
class ExactSearch:
    """One exact solve and what it has found so far."""

    problem: PlacementProblem
    limits: Limits
    seed: int
    found: PlacementSolution | None = None
    claimed: float | None = None
    bound: float | None = None
    bound_by: str | None = None
    ended: Termination = Termination.COMPLETED
    message: str = ""
    info: dict[str, float | int | str] = field(default_factory=dict)

    @property
    def sense(self) -> Sense:
        return self.problem.objective.described.sense

    def run(self) -> Outcome:
        """Greedy, pooling, placing."""
        at_most(self.problem, "an exact method", MOST_NODES, MOST_TASKS)
        self.counted = Counted(self.problem)
        self.pooled = pooled_model(self.counted)
        if not self.counted.accepting:
            reason = impossible(self.problem)
            if reason:
                return Outcome(None, Status.INFEASIBLE, bound_by="capacities", message=reason)
        else:
            self._known_bound(self._demand_that_fits(), "the demand of tasks that fit a node")
        for start in first_solutions(self.problem):
            self._offer(start)
            self.info["start"] = float(self.claimed or 0.0)
        self.limits.progress("greedy", self.claimed, self.bound)
        for step in (self._pool, self._place):
            if self._done():
                break
            infeasible_by = step()
            if infeasible_by:
                return self._infeasible(infeasible_by)
        return self._outcome()

    def _demand_that_fits(self) -> float:
        tasks = self.problem.tasks
        lost = sum(int(tasks.demand_milli[k]) for k in self.problem.never_fits)
        return float(int(tasks.demand_milli.sum()) - lost)

    def _offer(self, solution: PlacementSolution) -> None:
        """Keep a solution if it is the best so far."""
        value = claim(self.pooled, solution)
        if self.claimed is None or (value < self.claimed) == self._minimising:
            self.found, self.claimed = solution, value

    def _known_bound(self, bound: float, by: str) -> None:
        """Keep a bound if it is the best so far."""
        if self.bound is not None:
            gain = bound - self.bound if self._minimising else self.bound - bound
            if gain <= 1e-9 * max(1.0, abs(self.bound)):
                return
        self.bound, self.bound_by = bound, by

    def _done(self) -> bool:
        return self.limits.stop is not None or meets(self.claimed, self.bound, self.sense)

    def _pool(self) -> str:
        """Bound by pooled nodes; returns who proved that there is no placement, or ""."""
        if len(self.counted.types) == len(self.problem.cluster):
            return ""  # placing is the same model
        share = self.limits.within(POOLING_SHARE * self.limits.remaining)
        limits = share.telling(
            lambda _phase, _found, proven: self.limits.progress(
                "pooled nodes", self.claimed, proven
            ),
        )
        solved = solve_pooled(self.pooled, limits, self.seed)
        self.info["pooled_status"] = str(solved.status)
        if solved.status is Status.INFEASIBLE:
            return f"pooled nodes, {solved.solver}"
        if solved.bound is not None:
            self._known_bound(solved.bound, f"pooled nodes, {solved.solver}")
            self.info["pooled_bound"] = solved.bound
        return ""

    @property
    def _minimising(self) -> bool:
        return self.sense == "min"

    def _place(self) -> str:
        """Search node by node; returns who proved that there is no placement, or ""."""
        types = self.problem.cluster.type_of.tolist()
        order = sorted(range(len(types)), key=lambda n: (types[n], n))
        placing = CountedModel(self.counted, [Unit(types[n], (n,)) for n in order])
        start = None if self.found is None else encode(placing, self.found)
        target = None
        if self.bound is not None:
            slack = 5e-7 * max(1.0, abs(self.bound))
            target = self.bound + (slack if self._minimising else -slack)
        limits = self.limits.telling(
            lambda _phase, found, proven: self.limits.progress(
                "node by node", found or self.claimed, self._better(proven)
            ),
        )
        solved = solve(
            placing.model,
            backend="highs",
            limits=limits,
            seed=self.seed,
            start=start,
            target=target,
            tolerance=TOLERANCE,
        )
        self.info["variables"] = placing.model.variables
        self.info["placing_status"], self.ended = str(solved.status), solved.termination
        if solved.status is Status.INFEASIBLE:
            return f"node by node, {solved.solver}"
        if solved.status is Status.ERROR:
            self.message = f"{solved.solver}: {solved.message}"
        if solved.values is not None:
            self._offer(decode(placing, solved.values))
        if solved.bound is not None:
            bound = valid_bound(placing, solved.bound)
            self._known_bound(bound, f"node by node, {solved.solver}")
        return ""

    def _better(self, proven: float | None) -> float | None:
        """The better of a solver's bound so far and the one that is known."""
        if proven is None or self.bound is None:
            return self.bound if proven is None else proven
        return max(proven, self.bound) if self._minimising else min(proven, self.bound)

    def _infeasible(self, by: str) -> Outcome:
        if self.found is not None:  # checked by tables that share nothing with the solver
            raise RefereeError(f"{by} calls a problem infeasible that has a placement")
        return Outcome(None, Status.INFEASIBLE, bound_by=by, info=self.info, message=together(by))

    def _outcome(self) -> Outcome:
        optimal = meets(self.claimed, self.bound, self.sense)
        if self.found is None:
            status = Status.NO_SOLUTION if self.bound is None else Status.BOUND_ONLY
        else:
            status = Status.OPTIMAL if optimal else Status.FEASIBLE
        termination = Termination.COMPLETED if optimal else self.limits.stop or self.ended
        bound = self.bound
        if optimal and self.claimed is not None and bound is not None:
            # a bound past the solution it proves is rounding
            bound = min(bound, self.claimed) if self._minimising else max(bound, self.claimed)
        return Outcome(
            self.found,
            status,
            termination,
            self.claimed,
            bound,
            self.bound_by if bound is not None else None,
            self.info,
            self.message,
        )
