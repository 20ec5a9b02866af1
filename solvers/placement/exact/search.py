"""Exact placement of small clusters: a bound from pooled nodes, then a search node by node.

1. A greedy placement.
2. *Pooling*: nodes of one type taken together (``counted.py``). The relaxation is small
   and has no symmetry; its optimum is a bound, and on most problems one that can be reached.
3. *Placing*: the same formulation with one unit per node, by HiGHS, which ends when a solution
   meets the best bound of all.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

from optgap.models.errors import RefereeError
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem, PlacementSolution
from optgap.models.placement.arrays import FloatArray
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.backends import solve
from optgap.solvers.backends.linear import Solved
from optgap.solvers.placement.aggregate import Contents
from optgap.solvers.placement.exact.counted import CountedModel, Unit
from optgap.solvers.placement.exact.infeasible import at_most, impossible, together
from optgap.solvers.placement.exact.pooled import (
    TOLERANCE,
    pooled_model,
    solve_pooled,
    valid_bound,
)
from optgap.solvers.placement.exact.tables import Counted, is_share
from optgap.solvers.placement.nodes import Node, expand, inserted
from optgap.solvers.placement.nodes import counted as contents_of

POOLING_SHARE = 0.4
"""Share of the work that is left for the bound from pooled nodes."""
CLOSE = 1e-6
"""An objective within this of its bound, relative to its size, is optimal: what the solvers'
own arithmetic is good for."""
MOST_NODES = 200
MOST_TASKS = 2000
"""Beyond this the node-by-node model has millions of columns, and nothing would come of it."""


def exact(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """Return the best placement, proven.

    The minimising objectives place every task; a proof is good to one part in a million.

    Raises
    ------
    InputError: for more than `MOST_NODES` nodes or `MOST_TASKS` tasks.
    """
    at_most(problem, "an exact method", MOST_NODES, MOST_TASKS)
    reason = "" if problem.objective.goal == "accepted_gpu" else impossible(problem)
    if reason:
        return Outcome(None, Status.INFEASIBLE, bound_by="capacities", message=reason)
    return ExactSearch(Counted(problem), limits, seed).run()


def greedy(counted: Counted) -> PlacementSolution | None:
    """Place each task where the objective grows least, the largest first; None without room."""
    nodes = inserted(counted, [], counted.accepting)
    return None if nodes is None else expand(counted, nodes)


def objective_of(counted: Counted, solution: PlacementSolution) -> float:
    """Return the objective of a placement by the costs of its nodes' contents."""
    if counted.accepting:
        return float(counted.problem.tasks.demand_milli[solution.node >= 0].sum())
    costs = [counted.cost(t, contents) for t, contents in contents_of(counted, solution)]
    return math.fsum([counted.base, *costs])


def decode(model: CountedModel, values: FloatArray) -> PlacementSolution:
    """Return the placement behind the columns' values, where every unit is a single node."""
    nodes: list[Node] = []
    for unit, columns in zip(model.units, model.columns, strict=True):
        of_size: dict[int, list[int]] = defaultdict(list)
        gpus: list[tuple[int, ...]] = []
        multi: list[int] = []
        lone: list[int] = []
        for c, column in columns.tasks.items():
            task, here = model.counted.classes[c], [c] * round(values[column])
            if is_share(task):
                of_size[task.gpu_milli] += here
            elif task.num_gpu == 1:
                gpus += [(c,) for c in here]
            else:
                (multi if task.num_gpu else lone).extend(here)
        for room in columns.filling.take(values) if columns.filling is not None else []:
            gpus.append(tuple(of_size[milli].pop() for milli in room if of_size[milli]))
        contents = Contents(tuple(filter(None, gpus)), tuple(multi), tuple(lone))
        nodes.append((unit.type_index, contents))
    return expand(model.counted, nodes)


@dataclass
class ExactSearch:
    """One exact solve: the best placement and the best bound so far, and what proved that."""

    counted: Counted
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
    def sign(self) -> int:
        """Factor that turns values into ones to be minimised."""
        return -1 if self.counted.accepting else 1

    @property
    def proven(self) -> bool:
        """Whether the placement is as good as the bound allows."""
        if self.claimed is None or self.bound is None:
            return False
        return self.sign * (self.claimed - self.bound) <= CLOSE * max(1.0, abs(self.claimed))

    def run(self) -> Outcome:
        """Greedy, pooling, placing."""
        start = greedy(self.counted)
        if start is not None:
            self._offer(start)
        self.limits.progress("greedy", self.claimed, self.bound)
        for step in (self._pool, self._place):
            if self.limits.stop is not None or self.proven:
                break
            infeasible_by = step()
            if infeasible_by and self.found is not None:  # its tables know nothing of the solver
                raise RefereeError(f"{infeasible_by} calls a problem infeasible that is not")
            if infeasible_by:
                words = together(infeasible_by)
                return Outcome(
                    None, Status.INFEASIBLE, bound_by=infeasible_by, info=self.info, message=words
                )
        return self._outcome()

    def _offer(self, solution: PlacementSolution) -> None:
        """Keep a placement if it is the best so far."""
        value = objective_of(self.counted, solution)
        if self.claimed is None or self.sign * value < self.sign * self.claimed:
            self.found, self.claimed = solution, value

    def _better(self, bound: float | None) -> float | None:
        """Return the better of this bound and the one that is known."""
        known = [value for value in (self.bound, bound) if value is not None]
        return max(known, key=lambda value: self.sign * value, default=None)

    def _told(self, phase: str, limits: Limits) -> Limits:
        """Limits for a solver whose progress is shown beside what is known."""

        def tell(_phase: str, found: float | None, proven: float | None) -> None:
            self.limits.progress(phase, found or self.claimed, self._better(proven))

        return limits.telling(tell)

    def _proved(self, solved: Solved, bound: float | None, by: str) -> str:
        """Keep a solver's bound if it is the best; who proved that there is no placement, or ""."""
        if solved.status is Status.INFEASIBLE:
            return by
        if bound is not None and self._better(bound) != self.bound:
            self.bound, self.bound_by = bound, by
        return ""

    def _pool(self) -> str:
        """Bound by pooled nodes."""
        if len(self.counted.types) == len(self.counted.problem.cluster):
            return ""  # placing is the same model
        share = self.limits.within(POOLING_SHARE * self.limits.remaining)
        limits = self._told("pooled nodes", share)
        solved = solve_pooled(pooled_model(self.counted), limits, self.seed)
        self.info["pooled_status"] = str(solved.status)
        return self._proved(solved, solved.bound, f"pooled nodes, {solved.solver}")

    def _place(self) -> str:
        """Search node by node."""
        types = self.counted.problem.cluster.type_of.tolist()
        order = sorted(range(len(types)), key=lambda n: (types[n], n))
        placing = CountedModel(self.counted, [Unit(types[n], (n,)) for n in order])
        target = self.bound
        if target is not None:
            target += self.sign * CLOSE / 2 * max(1.0, abs(target))
        solved = solve(
            placing.model,
            backend="highs",
            limits=self._told("node by node", self.limits),
            seed=self.seed,
            target=target,
            tolerance=TOLERANCE,
        )
        self.info["variables"] = placing.model.variables
        self.info["placing_status"], self.ended = str(solved.status), solved.termination
        if solved.status is Status.ERROR:
            self.message = f"{solved.solver}: {solved.message}"
        if solved.values is not None:
            self._offer(decode(placing, solved.values))
        bound = None if solved.bound is None else valid_bound(placing, solved.bound)
        return self._proved(solved, bound, f"node by node, {solved.solver}")

    def _outcome(self) -> Outcome:
        status, ended, bound = Status.OPTIMAL, Termination.COMPLETED, self.bound
        if not self.proven:
            ended = self.limits.stop or self.ended
            status = Status.FEASIBLE
            if self.found is None:
                status = Status.NO_SOLUTION if bound is None else Status.BOUND_ONLY
        elif self.claimed is not None and bound is not None:
            # a bound past the solution it proves is rounding
            bound = self.sign * min(self.sign * bound, self.sign * self.claimed)
        return Outcome(
            self.found, status, ended, self.claimed, bound, self.bound_by, self.info, self.message
        )
